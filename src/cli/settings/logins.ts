// The servers that the user has logged in to, with their tokens: a file that only this user can read.

import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, isAbsolute, join } from 'node:path'
import { serverOrigin } from '../../client/server-address.ts'
import { TunnelError } from '../../errors.ts'

type Environment = Readonly<Record<string, string | undefined>>

export class Logins {
  readonly path: string
  /** Tokens by the address of their server; `undefined`: the server wants none. */
  readonly #tokens: Map<string, string | undefined>
  #standard: string | undefined

  /** Reads the file; without one there are no logins. `LOGIN_INVALID`: it cannot be used. */
  constructor(environment: Environment) {
    this.path = join(configFolder(environment), 'logins.json')
    const { standard, tokens } = readLogins(this.path)
    this.#standard = standard
    this.#tokens = tokens
  }

  /** The server that is used when none is named. */
  get standard(): string | undefined {
    return this.#standard
  }

  /** In the order of their logins. */
  get servers(): readonly string[] {
    return [...this.#tokens.keys()]
  }

  has(server: string): boolean {
    return this.#tokens.has(serverOrigin(server))
  }

  /** The token of this very server: scheme, host and port. */
  tokenOf(server: string): string | undefined {
    return this.#tokens.get(serverOrigin(server))
  }

  /** Keeps a token, and makes its server the standard. */
  add(server: string, token: string | undefined): void {
    const origin = serverOrigin(server)
    this.#tokens.set(origin, token)
    this.#standard = origin
    this.#write()
  }

  /** Makes a server the standard that there is a login for. */
  prefer(server: string): void {
    this.#standard = serverOrigin(server)
    this.#write()
  }

  remove(server: string): void {
    const origin = serverOrigin(server)
    this.#tokens.delete(origin)
    if (this.#standard === origin) this.#standard = undefined
    this.#write()
  }

  #write(): void {
    const servers = Object.fromEntries([...this.#tokens].map(([server, token]) => [server, { token }]))
    const text = `${JSON.stringify({ version: 1, default: this.#standard, servers }, null, 2)}\n`
    // Beside it and then in its place: a reader never sees half a file, and the mode is right from the first byte on.
    const draft = `${this.path}.${process.pid}`
    try {
      mkdirSync(dirname(this.path), { recursive: true, mode: 0o700 })
      writeFileSync(draft, text, { mode: 0o600, flag: 'wx' })
      // The mode above is one that the umask has made smaller.
      chmodSync(draft, 0o600)
      renameSync(draft, this.path)
    } catch (cause) {
      removeDraft(draft)
      const why = cause instanceof Error && 'code' in cause ? ` (${String(cause.code)})` : ''
      throw new TunnelError('LOGIN_INVALID', `${this.path} cannot be written${why}.`, { cause })
    }
  }
}

function removeDraft(draft: string): void {
  try {
    rmSync(draft, { force: true })
  } catch {
    // Its folder is what failed: there is no draft.
  }
}

/** By the XDG base directory specification, which wants relative paths to be ignored. */
function configFolder({ XDG_CONFIG_HOME = '' }: Environment): string {
  return join(isAbsolute(XDG_CONFIG_HOME) ? XDG_CONFIG_HOME : join(homedir(), '.config'), 'localtunnels')
}

interface Stored {
  readonly standard: string | undefined
  readonly tokens: Map<string, string | undefined>
}

function readLogins(path: string): Stored {
  const tokens = new Map<string, string | undefined>()
  const invalid = (why: string, cause?: unknown) =>
    new TunnelError('LOGIN_INVALID', `${path} ${why}.`, { cause })
  const mode = modeOf(path)
  if (mode === undefined) return { standard: undefined, tokens }
  // As ssh does with keys: what others could read is not a secret any more.
  if (process.platform !== 'win32' && (mode & 0o077) !== 0)
    throw invalid('may be read by other users: chmod 600')
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (cause) {
    throw invalid('cannot be read', cause)
  }
  try {
    const file: unknown = JSON.parse(text)
    for (const [server, login] of Object.entries(recordOf(recordOf(file).servers))) {
      const { token } = recordOf(login)
      if (serverOrigin(server) !== server || !(token === undefined || typeof token === 'string'))
        throw new Error('not a login')
      tokens.set(server, token)
    }
    const { default: standard } = recordOf(file)
    return { standard: typeof standard === 'string' && tokens.has(standard) ? standard : undefined, tokens }
  } catch (cause) {
    // Not the reason: it may quote what stands there.
    throw invalid('is not a file of logins', cause)
  }
}

function modeOf(path: string): number | undefined {
  try {
    return statSync(path).mode
  } catch {
    // There is no file, or none that this user can get to, as where a service has no home.
    return undefined
  }
}

function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) throw new Error('not an object')
  return value as Readonly<Record<string, unknown>> // an object has string keys
}
