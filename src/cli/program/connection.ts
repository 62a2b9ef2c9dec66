// The flags about the connection to the server.

import { optionInvalid } from '../../errors.ts'
import type { LoginSettings } from '../commands/login.ts'
import type { ShareSettings } from '../commands/share.ts'
import { destinationOf } from '../settings/destination.ts'
import type { Flags } from '../settings/flags.ts'
import { Logins } from '../settings/logins.ts'
import { type FlagTexts, given, readAuthority, readKey, type Texts } from './values.ts'

export const LOCAL_FLAG: Texts = { '--local': 'start a server in this process, and ignore the saved login' }

export const END_FLAG: Texts = {
  '--exit-on-disconnect': 'exit with code 8 if the connection to the server is lost (default: reconnect)',
}

export const CONNECTION_FLAGS: FlagTexts = {
  'Server connection:': {
    '--server <address>':
      'tunnel server: host[:port] or a URL (default: from the login); repeatable, for the servers of one cluster',
    '--token <token>': 'token (default: from the login); prefer TUNNEL_TOKEN',
    ...LOCAL_FLAG,
    '--proxy <url>':
      'proxy to the server: http://, https://, socks5:// or socks5h://, or empty for none (default: HTTPS_PROXY and similar variables)',
    '--ca <file>':
      "trust the server's certificate if these authorities signed it, PEM (default: the usual authorities)",
    '--cert <file>': 'client certificate, if the server requires one, PEM',
    '--key <file>': 'private key of the client certificate, PEM',
    '--pin <key>': "public key that the server's certificate must have: sha256//…",
    '--insecure': 'accept any certificate of the server',
    '--insecure-token': 'send the token to another machine even without TLS',
  },
}

/** The flags of a command that keeps a tunnel. */
export const LASTING_FLAGS: FlagTexts = {
  'Server connection:': { ...CONNECTION_FLAGS['Server connection:'], ...END_FLAG },
}

export function connection(flags: Flags): Pick<ShareSettings, 'destination' | 'client'> {
  const given = { servers: flags.allGiven('server'), token: flags.given('token'), isLocal: isLocal(flags) }
  const destination = destinationOf(given, () => new Logins(process.env), process.env.TUNNEL_SERVER)
  return {
    destination,
    client: { ...way(flags), ...(flags.isOn('exitOnDisconnect') && { reconnect: false }) },
  }
}

export function way(flags: Flags): LoginSettings['client'] {
  const [ca, cert, key] = [flags.text('ca'), flags.text('cert'), flags.text('key')]
  return {
    ...given({
      ca: ca === undefined ? undefined : readAuthority(ca, flags.label('ca')),
      cert: cert === undefined ? undefined : readAuthority(cert, flags.label('cert')),
      key: key === undefined ? undefined : readKey(key, flags.label('key')),
      pin: flags.text('pin'),
      proxy: flags.text('proxy'),
      insecureToken: flags.isOn('insecureToken'),
    }),
    ...(flags.isOn('insecure') && { verifyServer: false }),
  }
}

/** Whether to use a local server. Typed flags win over variables. */
function isLocal(flags: Flags): boolean {
  if (!flags.isOn('local')) return false
  if (flags.list('server').length === 0) return true
  if (flags.isTyped('local') === flags.isTyped('server'))
    throw optionInvalid(`${flags.label('local')} and ${flags.label('server')} exclude each other.`)
  return flags.isTyped('local')
}
