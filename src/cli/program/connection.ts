// Flags about the way to the server.

import { Option } from 'commander'
import { TunnelError } from '../../errors.ts'
import type { LoginSettings } from '../commands/login.ts'
import type { ShareSettings } from '../commands/share.ts'
import { destinationOf } from '../settings/destination.ts'
import type { Flags } from '../settings/flags.ts'
import { Logins } from '../settings/logins.ts'
import { readAuthority, readKey, repeatable } from './values.ts'

export function connectionOptions(): Option[] {
  return [
    repeatable(
      '--server <address>',
      'tunnel server: ws://, wss://, http(s):// or host[:port]; repeatable, for servers of one cluster',
    ).env('TUNNEL_SERVER'),
    new Option('--token <token>', 'shared secret of the server (default: of "localtunnels login")').env(
      'TUNNEL_TOKEN',
    ),
    localOption(),
    new Option(
      '--proxy <url>',
      'proxy to the server: http://, https://, socks5:// or socks5h://, empty for none (default: HTTPS_PROXY and its like)',
    ).env('TUNNEL_PROXY'),
    new Option(
      '--ca <file>',
      "PEM of an authority to trust for the server's certificate (default: the usual ones)",
    ).env('TUNNEL_CA'),
    new Option('--cert <file>', "PEM of the client's own certificate, for servers that want one").env(
      'TUNNEL_CERT',
    ),
    new Option('--key <file>', 'PEM of its key').env('TUNNEL_KEY'),
    new Option('--pin <key>', "key that the server's certificate must have: sha256//… (default: any)").env(
      'TUNNEL_PIN',
    ),
    new Option('--insecure', 'accept any certificate of the server').env('TUNNEL_INSECURE'),
    new Option('--insecure-token', 'let the token go to another machine without TLS').env(
      'TUNNEL_INSECURE_TOKEN',
    ),
  ]
}

export const localOption = (): Option =>
  new Option('--local', 'a server in this process, whatever server is logged in to').env('TUNNEL_LOCAL')

export function connection(flags: Flags): Pick<ShareSettings, 'destination' | 'client'> {
  const given = { servers: flags.allGiven('server'), token: flags.given('token'), isLocal: isLocal(flags) }
  const destination = destinationOf(given, () => new Logins(process.env), process.env.TUNNEL_SERVER)
  return { destination, client: way(flags) }
}

/** How the server is reached. */
export function way(flags: Flags): LoginSettings['client'] {
  const proxy = flags.text('proxy')
  const ca = flags.text('ca')
  const cert = flags.text('cert')
  const key = flags.text('key')
  const pin = flags.text('pin')
  return {
    ...(ca !== undefined && { ca: readAuthority(ca, flags.label('ca')) }),
    ...(cert !== undefined && { cert: readAuthority(cert, flags.label('cert')) }),
    ...(key !== undefined && { key: readKey(key, flags.label('key')) }),
    ...(pin !== undefined && { pin }),
    ...(proxy !== undefined && { proxy }),
    ...(flags.isOn('insecure') && { verifyServer: false }),
    ...(flags.isOn('insecureToken') && { insecureToken: true }),
  }
}

/** Typed wins over variables, as everywhere. */
function isLocal(flags: Flags): boolean {
  if (!flags.isOn('local')) return false
  if (flags.list('server').length === 0) return true
  if (flags.isTyped('local') === flags.isTyped('server'))
    throw new TunnelError(
      'OPTION_INVALID',
      `${flags.label('local')} and ${flags.label('server')} exclude each other.`,
    )
  return flags.isTyped('local')
}
