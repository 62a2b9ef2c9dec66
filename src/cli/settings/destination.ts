// Which server a command uses, and which token goes there. A token goes only to the server that the user has given it for.

import { parseServer, serverOrigin } from '../../client/server-address.ts'
import type { ConnectionOptions } from '../../config/client-config.ts'
import { TunnelError } from '../../errors.ts'
import { isLoopback } from '../../names.ts'
import type { Output } from '../output.ts'
import type { Login, Logins } from './logins.ts'

export interface Destination {
  /** `undefined`: a server in this process. */
  readonly server: string | undefined
  /** Empty: none, whatever the environment says. */
  readonly token: string
  /** The authority that was named at the login, unless the caller names one. */
  readonly ca?: string | undefined
  /** What the user should know about the two. */
  readonly notices: readonly Notice[]
}

export interface Notice {
  readonly code: 'TOKEN_WITHHELD' | 'TOKEN_IN_CLEAR'
  readonly message: string
}

/** A value of the command line, or of its variable. */
export interface Given {
  readonly text: string
  readonly isTyped: boolean
}

/** Read when they are needed only. */
export type ReadLogins = () => Logins

/** The destination of a command line; `other`: the server of TUNNEL_SERVER. */
export function destinationOf(
  {
    server,
    token,
    isLocal,
  }: { readonly server?: Given | undefined; readonly token?: Given | undefined; readonly isLocal: boolean },
  logins: ReadLogins,
  other: string | undefined,
): Destination {
  if (isLocal) return HERE
  if (server !== undefined) {
    // What stands beside TUNNEL_SERVER was meant for that one, if there is a login for this one.
    const isForOther = token?.isTyped === false && other !== undefined && !isSameServer(server.text, other)
    const kept = token === undefined || isForOther ? logins().of(server.text) : {}
    return { server: server.text, ca: kept.ca, token: kept.token ?? token?.text ?? '', notices: [] }
  }
  const standard = logins().standard
  if (standard === undefined) return HERE
  const { ca, token: own = '' } = logins().of(standard)
  // TUNNEL_TOKEN may belong to any server: it goes to one that is given with it.
  if (token?.isTyped) return { server: standard, ca, token: token.text, notices: [] }
  const notices =
    token === undefined ? [] : [withheld(standard, 'is your default server, and not that of TUNNEL_SERVER')]
  return { server: standard, ca, token: own, notices }
}

export interface FileSettings {
  readonly connection: ConnectionOptions
  /** The user has named the file; else it came with the folder. */
  readonly isNamed: boolean
  readonly path: string
  readonly isLocal: boolean
}

/** The destination of a configuration file. */
export function destinationOfFile(
  { connection, isNamed, path, isLocal }: FileSettings,
  { TUNNEL_SERVER, TUNNEL_TOKEN }: Readonly<Record<string, string | undefined>>,
  logins: ReadLogins,
): Destination {
  const server = isLocal ? undefined : (connection.server ?? (TUNNEL_SERVER || logins().standard))
  if (server === undefined) return HERE
  if (connection.token !== undefined) return { server, token: connection.token, notices: [] }
  const isFromEnvironment = isSameServer(server, TUNNEL_SERVER)
  const { ca, token: own }: Login =
    isFromEnvironment && TUNNEL_TOKEN ? { token: TUNNEL_TOKEN } : logins().of(server)
  const ways = WAYS.filter(([option]) => connection[option] !== undefined).map(([, key]) => key)
  if (own !== undefined && !isNamed && ways.length > 0) {
    const why = `${path} was found in this folder, and says by ${ways.join(' and ')} how the server is reached`
    const message = `No token is sent to ${server}: ${why}. If you trust the file, name it with --config.`
    return { server, token: '', notices: [{ code: 'TOKEN_WITHHELD', message }] }
  }
  const notices = own === undefined && TUNNEL_TOKEN ? [withheld(server, `is named by ${path}`)] : []
  return { server, ca, token: own ?? '', notices }
}

/** Whether both are given and mean the same: scheme, host and port. */
export function isSameServer(server: string, other: string | undefined): boolean {
  try {
    return Boolean(other) && serverOrigin(server) === serverOrigin(other ?? '')
  } catch (error) {
    // One of them is no address, which the dial will say.
    if (error instanceof TunnelError) return false
    throw error
  }
}

/** Whether a file may be trusted with variables for this server: the user has chosen it elsewhere. */
export function trustsServer(
  server: string,
  { TUNNEL_SERVER }: Readonly<Record<string, string | undefined>>,
  logins: ReadLogins,
): boolean {
  return isSameServer(server, TUNNEL_SERVER) || logins().servers.some(one => isSameServer(server, one))
}

/** Tells the notices of a destination, and of a token that others can read on its way. */
export function tellNotices(
  { server, token, notices }: Destination,
  isInsecureToken: boolean,
  output: Pick<Output, 'event'>,
): void {
  for (const notice of notices) output.event({ type: 'notice', ...notice })
  if (!isInsecureToken || server === undefined || token === '') return
  const { isSecure, host, address } = parseServer(server)
  if (isSecure || isLoopback(address.host ?? '')) return
  const message = `The token goes to ${host} unencrypted: everybody on the way can read it.`
  output.event({ type: 'notice', code: 'TOKEN_IN_CLEAR', message })
}

const HERE: Destination = { server: undefined, token: '', notices: [] }

/** Options, and keys of a file, by which others could come to read what is sent to the server. */
const WAYS = [
  ['proxy', 'proxy'],
  ['ca', 'ca'],
  ['verifyServer', 'verify-server'],
  ['insecureToken', 'insecure-token'],
] as const

function withheld(server: string, why: string): Notice {
  const mend = `set TUNNEL_SERVER beside it, or run: localtunnels login ${server}`
  return { code: 'TOKEN_WITHHELD', message: `TUNNEL_TOKEN is not sent to ${server}, which ${why}: ${mend}` }
}
