// The checks of `localtunnels doctor` for servers that visitors reach with HTTPS. None rejects.

import { parseServer, type ServerTlsOptions } from '../../client/carriers/server-address.ts'
import { unreachable } from '../../client/carriers/unreachable.ts'
import { messageOf } from '../../errors.ts'
import type { Dial } from '../../socket.ts'
import type { Check } from './checks.ts'
import { askPage } from './control-page.ts'

const TIMEOUT_MS = 5_000
const HTTP_PORT = 80

/** Checks port 80: whether HTTP redirects to HTTPS, and whether checks of a certificate authority reach the server. */
export async function checkHttpPort(dial: Dial, host: string, port: number = HTTP_PORT): Promise<Check> {
  const what = 'http'
  const url = `http://${host}${port === HTTP_PORT ? '' : `:${port}`}`
  const fix = `Open port ${HTTP_PORT} and start the server with --http-port ${HTTP_PORT}: the checks of --acme come there, unless --acme-dns or --acme-challenge says otherwise.`
  try {
    const server = { address: { host, port }, host, path: '', isSecure: false }
    const { status, headers } = await askPage(dial, server, '/', TIMEOUT_MS)
    const location = headers.get('location') ?? ''
    if (status >= 301 && status <= 308 && location.startsWith('https://'))
      return { verdict: 'ok', what, found: `${url} leads to ${new URL(location).origin}` }
    return { verdict: 'note', what, found: `${url} returns ${status}, and does not redirect to https`, fix }
  } catch (error) {
    return { verdict: 'note', what, found: `${url} does not respond: ${messageOf(error)}`, fix }
  }
}

/** Returns why visitors get no response from this URL, as far as TLS and the connection show. `undefined` if they do. */
export async function whyNoAnswer(
  dial: Dial,
  url: string,
  options: ServerTlsOptions,
): Promise<string | undefined> {
  try {
    const server = parseServer(new URL(url).origin, options)
    try {
      await askPage(dial, server, '/', TIMEOUT_MS)
      return undefined
    } catch (error) {
      return unreachable(error, server).message
    }
  } catch (error) {
    return messageOf(error)
  }
}
