// `localtunnels login`, `logout` and `whoami`: saved tokens, one for each server.

import { serverOrigin } from '../../client/carriers/server-address.ts'
import type { TunnelClientOptions } from '../../client/options.ts'
import { reach } from '../../client/reach/reach.ts'
import { ERRORS, optionInvalid, TunnelError } from '../../errors.ts'
import { OPEN_HEADER } from '../../wire/control.ts'
import { checkWay } from '../doctor/checks.ts'
import { askPage } from '../doctor/control-page.ts'
import { EXIT } from '../exit-codes.ts'
import type { CommandIo } from '../run.ts'
import type { Logins } from '../settings/logins.ts'
import { visible } from '../terminal/format.ts'
import { askSecret, type Input, readLine } from '../terminal/secret-input.ts'

/** The time in milliseconds from the dial to the server's decision. */
const VERIFY_TIMEOUT_MS = 5_000
/**
 * The codes after which another token or address is needed, so that nothing is saved. After other errors the server
 * may only be away.
 */
const REFUSALS: ReadonlySet<string> = new Set([
  'TOKEN_REFUSED',
  'TOKEN_EXPIRED',
  'SERVER_REFUSED',
  'SERVER_SCHEME',
  'SERVER_UNTRUSTED',
  'TOKEN_UNENCRYPTED',
  'OPTION_INVALID',
])

export interface LoginSettings {
  readonly server: string
  /** Whether to read the token from standard input even if that is a terminal. */
  readonly isPiped: boolean
  /** Whether only to make the server the default, which already has a login. */
  readonly isPreferred: boolean
  /** Whether to save a token even if the server asks for none. */
  readonly isForced: boolean
  readonly client: Pick<
    TunnelClientOptions,
    'proxy' | 'ca' | 'cert' | 'key' | 'pin' | 'verifyServer' | 'insecureToken'
  >
}

export interface LoginIo extends Pick<CommandIo, 'environment' | 'write'> {
  readonly logins: Logins
  readonly input: Input
  /** Writes to standard error, at once. */
  readonly prompt: (text: string) => void
}

/** Logs in. Resolves with the exit code. */
export async function login(settings: LoginSettings, io: LoginIo): Promise<number> {
  const { logins, write } = io
  const path = logins.needPath()
  const server = serverOrigin(settings.server)
  if (settings.isPreferred) {
    if (!logins.has(server))
      throw optionInvalid(`There is no login for ${server}: run localtunnels login ${server}`)
    logins.prefer(server)
    write(`${server} is the default server.\n`)
    return EXIT.ok
  }
  const question = `Token for ${server} (empty: none): `
  const isPiped = settings.isPiped || !io.input.isTTY
  const token = isPiped ? await readLine(io.input) : await askSecret(io.input, io.prompt, question)
  if (token === undefined) return EXIT.interrupted
  if (token === '' && isPiped)
    throw optionInvalid(
      'No token came on standard input: pipe it in, or run this on a terminal, which asks for it.',
    )
  if (!/^[\x21-\x7e]{0,255}$/.test(token))
    throw optionInvalid('A token is up to 255 characters of visible ASCII without spaces.')
  const { ca } = { ...logins.of(server), ...settings.client }
  const client = { ...settings.client, ...(ca !== undefined && { ca }) }
  const unverified = await verify(server, token, client, io)
  const isOpen = token !== '' && unverified === undefined && (await takesAnyone(server, client, io))
  if (isOpen && !settings.isForced)
    throw optionInvalid(
      `${server} asks for no token: it would take any, and this one is not kept. Give an empty one to make it the default server, or keep this one with --force.`,
    )
  logins.add(server, { token: token === '' ? undefined : token, ca })
  if (unverified !== undefined) write(`Not verified: ${visible(unverified.message)}\n`)
  else write(isOpen ? `${server} asks for no token. ` : `${server} accepts it.\n`)
  write(`Saved in ${path}, which only you can read. ${server} is the default server now.\n`)
  return EXIT.ok
}

export function logout(server: string | undefined, { logins, write }: LoginIo): number {
  const named = server ?? logins.standard
  if (named === undefined) throw optionInvalid('There is no default server: name one.')
  const origin = serverOrigin(named)
  if (!logins.has(origin)) {
    write(`There is no login for ${origin}.\n`)
    return EXIT.ok
  }
  logins.remove(origin)
  write(`Removed the login for ${origin}.\n`)
  if (hasNoDefault(logins)) write(NO_DEFAULT)
  return EXIT.ok
}

const NO_DEFAULT = 'No server is the default now. Choose one with: localtunnels login --default <server>\n'

function hasNoDefault({ servers, standard }: Logins): boolean {
  return servers.length > 0 && standard === undefined
}

/** Prints the servers and where their tokens are, never a token. */
export function whoami({ logins, environment, write }: LoginIo): number {
  const { servers, standard } = logins
  const width = Math.max(0, ...servers.map(server => server.length))
  for (const server of servers) {
    const { token, ca } = logins.of(server)
    const saved = `${token === undefined ? 'no token' : 'token saved'}${ca === undefined ? '' : ', authority saved'}`
    write(`${server.padEnd(width)}  ${saved}${server === standard ? ', default' : ''}\n`)
  }
  write(servers.length === 0 ? 'Not logged in to any server.\n' : `\nSaved in ${logins.path}\n`)
  if (hasNoDefault(logins)) write(NO_DEFAULT)
  if (environment.TUNNEL_SERVER)
    write(`TUNNEL_SERVER is ${visible(environment.TUNNEL_SERVER)}: it wins over the default\n`)
  if (environment.TUNNEL_TOKEN)
    write('TUNNEL_TOKEN is set: it goes to the server of TUNNEL_SERVER or --server\n')
  return EXIT.ok
}

/** Connects without registering anything. Rejects if the server refuses. Resolves with the reason if it could not be asked. */
async function verify(
  server: string,
  token: string,
  client: LoginSettings['client'],
  { environment }: LoginIo,
): Promise<TunnelError | undefined> {
  try {
    const options = { ...client, server, token, connectTimeoutMs: VERIFY_TIMEOUT_MS }
    await reach(options, environment)
    return undefined
  } catch (error) {
    if (error instanceof TunnelError && !REFUSALS.has(error.code)) return error
    if (error instanceof TunnelError && error.code === 'TOKEN_REFUSED') {
      const action = 'Check it, or ask the operator for another one.'
      throw new TunnelError('TOKEN_REFUSED', ERRORS.TOKEN_REFUSED.meaning, { cause: error, action })
    }
    throw error
  }
}

/** Whether clients of the server need no token. `false` if that is unknown, for example because it is away. */
async function takesAnyone(
  server: string,
  client: LoginSettings['client'],
  { environment }: LoginIo,
): Promise<boolean> {
  // A login without a token would appear as a refusal in the server's log.
  const { way } = checkWay(server, client, environment)
  if (way === undefined) return false
  return askPage(way.dial, way.server, '/', VERIFY_TIMEOUT_MS).then(
    ({ headers }) => headers.has(OPEN_HEADER),
    () => false,
  )
}
