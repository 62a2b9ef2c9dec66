// Finds the public URL of a tunnel on the JSON wire. Existing servers report a URL without their port, and `http`
// behind a TLS proxy; old ones report none.

import type { ServerAddress } from '../../../client/carriers/server-address.ts'
import { isLoopback } from '../../../names.ts'

/** Returns possible URLs, the most likely first; a probe decides. `isTrusted`: the server knows its URL. */
export function publicUrls(
  name: string,
  named: string | undefined,
  server: ServerAddress,
  isTrusted: boolean,
): readonly [string, ...string[]] {
  const parsed = named !== undefined && URL.canParse(named) ? new URL(named) : undefined
  const isUsable = parsed?.protocol === 'http:' || parsed?.protocol === 'https:'
  if (named !== undefined && isUsable && isTrusted) return [named]
  const { host: dialled = 'localhost', port } = server.address
  const hostname = isUsable ? parsed.hostname : `${name}.${dialled.replace(/^api\./, '')}`
  // The scheme and port with which the client itself reaches the server.
  const scheme = server.isSecure ? 'https' : 'http'
  const isUsual = port === (server.isSecure ? 443 : 80)
  const likeOurs = `${scheme}://${hostname}${isUsual ? '' : `:${port}`}`
  if (named === undefined || !isUsable || named === likeOurs) return [likeOurs]
  return isBelow(hostname, dialled) ? [likeOurs, named] : [named, likeOurs]
}

/** Whether the name is below the dialled address, whose port visitors then use too. */
function isBelow(hostname: string, dialled: string): boolean {
  const isBelowIt = hostname.endsWith(`.${dialled.replace(/^api\./, '')}`)
  return isBelowIt || (isLoopback(dialled) && hostname.endsWith('.localhost'))
}
