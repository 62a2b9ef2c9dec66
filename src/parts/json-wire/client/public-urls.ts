// Where visitors find a tunnel of the JSON wire. Existing servers name a URL without their port, and `http` behind a TLS
// front; old ones name none.

import type { ServerAddress } from '../../../client/carriers/server-address.ts'
import { isLoopback } from '../../../names.ts'

/** The most likely URL first: a probe of the public side decides. `isTrusted`: the server knows its URL. */
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
  // Scheme and port of the way that the client itself takes.
  const scheme = server.isSecure ? 'https' : 'http'
  const isUsual = port === (server.isSecure ? 443 : 80)
  const likeOurs = `${scheme}://${hostname}${isUsual ? '' : `:${port}`}`
  if (named === undefined || !isUsable || named === likeOurs) return [likeOurs]
  return isBelow(hostname, dialled) ? [likeOurs, named] : [named, likeOurs]
}

/** Whether the name belongs to the address that was dialled: then its port is that of visitors as well. */
function isBelow(hostname: string, dialled: string): boolean {
  const isBelowIt = hostname.endsWith(`.${dialled.replace(/^api\./, '')}`)
  return isBelowIt || (isLoopback(dialled) && hostname.endsWith('.localhost'))
}
