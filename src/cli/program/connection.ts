// Flags about the way to the server.

import { Option } from 'commander'
import { TunnelError } from '../../errors.ts'
import type { LoginSettings } from '../commands/login.ts'
import type { ShareSettings } from '../commands/share.ts'
import { destinationOf } from '../settings/destination.ts'
import type { Flags } from '../settings/flags.ts'
import { Logins } from '../settings/logins.ts'
import { under } from './help.ts'
import { readAuthority, readKey, repeatable } from './values.ts'

export function connectionOptions(): Option[] {
  return under('Server connection:', [
    repeatable(
      '--server <address>',
      'tunnel server: host[:port] or a URL (default: from the login); repeatable, for the servers of one cluster',
    ).env('TUNNEL_SERVER'),
    new Option('--token <token>', 'token (default: from the login); prefer TUNNEL_TOKEN').env('TUNNEL_TOKEN'),
    localOption(),
    new Option(
      '--proxy <url>',
      'proxy to the server: http://, https://, socks5:// or socks5h://, or empty for none (default: HTTPS_PROXY and similar variables)',
    ).env('TUNNEL_PROXY'),
    new Option(
      '--ca <file>',
      "trust the server's certificate if these authorities signed it, PEM (default: the usual authorities)",
    ).env('TUNNEL_CA'),
    new Option('--cert <file>', 'client certificate, if the server requires one, PEM').env('TUNNEL_CERT'),
    new Option('--key <file>', 'private key of the client certificate, PEM').env('TUNNEL_KEY'),
    new Option('--pin <key>', "public key that the server's certificate must have: sha256//…").env(
      'TUNNEL_PIN',
    ),
    new Option('--insecure', 'accept any certificate of the server').env('TUNNEL_INSECURE'),
    new Option('--insecure-token', 'send the token to another machine even without TLS').env(
      'TUNNEL_INSECURE_TOKEN',
    ),
  ])
}

export const localOption = (): Option =>
  new Option('--local', 'start a server in this process, and ignore the saved login').env('TUNNEL_LOCAL')

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
