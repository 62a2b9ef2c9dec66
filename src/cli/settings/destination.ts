// Chooses the server of a command, and the token for it. A token is only sent to the server that the user gave it for.

import { parseServer, serverList, serverOrigin } from '../../client/carriers/server-address.ts'
import type { OneServer } from '../../client/options.ts'
import type { ConnectionOptions } from '../../config/client-config.ts'
import { TunnelError } from '../../errors.ts'
import { isLoopback } from '../../names.ts'
import type { Output } from '../output.ts'
import type { Login, Logins } from './logins.ts'

export interface ServerDestination {
  readonly server: string
  /** The token. Empty for none, even if the environment has one. */
  readonly token: string
  /** The authority that was named at the login, unless the caller names one. */
  readonly ca?: string | undefined
}

export interface Destination {
  /** The servers in the order of attempts. None: a server in this process. */
  readonly servers: readonly ServerDestination[]
  /** The notices for the user about servers and tokens. */
  readonly notices: readonly Notice[]
}

/**
 * Returns the server option of TunnelClient. `undefined` for a server in this process. `ca`: an authority that wins
 * over those of logins.
 */
export function serverOption(
  { servers }: Destination,
  ca: string | undefined,
): readonly OneServer[] | undefined {
  if (servers.length === 0) return undefined
  return servers.map(({ server: url, token, ca: own }) => ({
    url,
    token,
    ...(ca === undefined && own !== undefined && { ca: own }),
  }))
}

export interface Notice {
  readonly code: 'TOKEN_WITHHELD' | 'TOKEN_UNENCRYPTED'
  readonly message: string
}

/** A value of the command line, or of its variable. */
export interface Given {
  readonly text: string
  readonly isTyped: boolean
}

export type ReadLogins = () => Logins

/** Returns the destination of a command line. `other`: the servers of TUNNEL_SERVER. */
export function destinationOf(
  {
    servers,
    token,
    isLocal,
  }: { readonly servers: readonly Given[]; readonly token?: Given | undefined; readonly isLocal: boolean },
  logins: ReadLogins,
  other: string | undefined,
): Destination {
  if (isLocal) return HERE
  if (servers.length > 0) {
    const named = servers.map(({ text: server }) => {
      // If this server has a login, a token next to TUNNEL_SERVER was meant for that other server.
      const isForOther = token?.isTyped === false && Boolean(other) && !isOneOf(server, other)
      const kept = token === undefined || isForOther ? logins().of(server) : {}
      return { server, ca: kept.ca, token: kept.token ?? token?.text ?? '' }
    })
    return { servers: named, notices: [] }
  }
  const standard = logins().standard
  if (standard === undefined) return HERE
  const { ca, token: own = '' } = logins().of(standard)
  // TUNNEL_TOKEN may belong to any server, so it is only sent to one that is given with it.
  if (token?.isTyped) return { servers: [{ server: standard, ca, token: token.text }], notices: [] }
  const notices =
    token === undefined ? [] : [withheld(standard, 'is your default server, and not that of TUNNEL_SERVER')]
  return { servers: [{ server: standard, ca, token: own }], notices }
}

export interface FileSettings {
  readonly connection: ConnectionOptions
  /** Whether the user named the file; otherwise it was found in the folder. */
  readonly isNamed: boolean
  readonly path: string
  readonly isLocal: boolean
}

export function destinationOfFile(
  file: FileSettings,
  environment: Readonly<Record<string, string | undefined>>,
  logins: ReadLogins,
): Destination {
  const { connection, isLocal } = file
  const others = () => serverList(environment.TUNNEL_SERVER || (logins().standard ?? ''))
  const named = isLocal ? [] : [connection.server ?? others()].flat()
  const each = named.map(server => placeOfFile(server, file, environment, logins))
  return { servers: each.map(({ place }) => place), notices: each.flatMap(({ notices }) => notices) }
}

function placeOfFile(
  server: string,
  { connection, isNamed, path }: FileSettings,
  { TUNNEL_SERVER, TUNNEL_TOKEN }: Readonly<Record<string, string | undefined>>,
  logins: ReadLogins,
): { readonly place: ServerDestination; readonly notices: readonly Notice[] } {
  if (connection.token !== undefined) return { place: { server, token: connection.token }, notices: [] }
  const isFromEnvironment = isOneOf(server, TUNNEL_SERVER)
  const { ca, token: own }: Login =
    isFromEnvironment && TUNNEL_TOKEN ? { token: TUNNEL_TOKEN } : logins().of(server)
  const ways = WAYS.filter(([option]) => connection[option] !== undefined).map(([, key]) => key)
  if (own !== undefined && !isNamed && ways.length > 0) {
    const why = `${path} was found in this folder, and says by ${ways.join(' and ')} how the server is reached`
    const message = `No token is sent to ${server}: ${why}. If you trust the file, name it with --config.`
    return { place: { server, token: '' }, notices: [{ code: 'TOKEN_WITHHELD', message }] }
  }
  const notices = own === undefined && TUNNEL_TOKEN ? [withheld(server, `is named by ${path}`)] : []
  return { place: { server, ca, token: own ?? '' }, notices }
}

function isOneOf(server: string, list: string | undefined): boolean {
  return serverList(list ?? '').some(one => isSameServer(server, one))
}

/** Whether both servers are given and mean the same: scheme, host and port. */
export function isSameServer(server: string, other: string | undefined): boolean {
  try {
    return Boolean(other) && serverOrigin(server) === serverOrigin(other ?? '')
  } catch (error) {
    // The address may be invalid, which the dial will report.
    if (error instanceof TunnelError) return false
    throw error
  }
}

/** Whether a file may get variables for this server, because the user chose the server independently of the file. */
export function trustsServer(
  server: string,
  { TUNNEL_SERVER }: Readonly<Record<string, string | undefined>>,
  logins: ReadLogins,
): boolean {
  return isOneOf(server, TUNNEL_SERVER) || logins().servers.some(one => isSameServer(server, one))
}

/** Prints the notices of a destination, and one about a token that others can read in transit. */
export function tellNotices(
  { servers, notices }: Destination,
  isInsecureToken: boolean,
  output: Pick<Output, 'event'>,
): void {
  for (const notice of notices) output.event({ type: 'notice', ...notice })
  if (!isInsecureToken) return
  for (const { server, token } of servers) {
    const { isSecure, host, address } = parseServer(server)
    if (token === '' || isSecure || isLoopback(address.host ?? '')) continue
    const message = `The token goes to ${host} unencrypted: everybody on the way can read it.`
    output.event({ type: 'notice', code: 'TOKEN_UNENCRYPTED', message })
  }
}

const HERE: Destination = { servers: [], notices: [] }

/** The options, and keys of a file, with which others could read what is sent to the server. */
const WAYS = [
  ['proxy', 'proxy'],
  ['ca', 'ca'],
  ['verifyServer', 'verify-server'],
  ['insecureToken', 'insecure-token'],
] as const

function withheld(server: string, why: string): Notice {
  const mend = `also set TUNNEL_SERVER, or run: localtunnels login ${server}`
  return { code: 'TOKEN_WITHHELD', message: `TUNNEL_TOKEN is not sent to ${server}, which ${why}: ${mend}` }
}
