// The servers to which the user has logged in, with their tokens, in a file that only this user can read.

import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, isAbsolute, join } from 'node:path'
import { serverOrigin } from '../../client/carriers/server-address.ts'
import { TunnelError } from '../../errors.ts'
import { homeFolder } from '../../state-folder.ts'

type Environment = Readonly<Record<string, string | undefined>>

export interface Login {
  /** The token. `undefined` if the server needs none. */
  readonly token?: string | undefined
  /** The PEM text of the authority that was named at the login. */
  readonly ca?: string | undefined
}

export class Logins {
  /** The path. `undefined` if this user has no folder for it. */
  readonly path: string | undefined
  readonly #kept = new Map<string, Login>()
  #standard: string | undefined

  /** Reads the file; without one there are no logins. Throws `LOGIN_INVALID` if it cannot be used. */
  constructor(environment: Environment) {
    const folder = configFolder(environment)
    this.path = folder && join(folder, 'logins.json')
    if (this.path !== undefined) this.#read(this.path)
  }

  /** The server that is used if none is named. */
  get standard(): string | undefined {
    return this.#standard
  }

  get servers(): readonly string[] {
    return [...this.#kept.keys()]
  }

  has(server: string): boolean {
    return this.#kept.has(serverOrigin(server))
  }

  /** Returns the login of exactly this server: scheme, host and port. */
  of(server: string): Login {
    return this.#kept.get(serverOrigin(server)) ?? {}
  }

  /** Saves a login, and makes its server the default. */
  add(server: string, login: Login): void {
    const origin = serverOrigin(server)
    this.#kept.set(origin, login)
    this.#standard = origin
    this.#write()
  }

  prefer(server: string): void {
    this.#standard = serverOrigin(server)
    this.#write()
  }

  remove(server: string): void {
    const origin = serverOrigin(server)
    this.#kept.delete(origin)
    if (this.#standard === origin) this.#standard = undefined
    this.#write()
  }

  /** Returns the path of the file. Throws `LOGIN_INVALID` if there is no folder for it. */
  needPath(): string {
    if (this.path !== undefined) return this.path
    const text = 'This user has no home folder to keep logins in: set HOME or XDG_CONFIG_HOME.'
    throw new TunnelError('LOGIN_INVALID', text, { action: '' })
  }

  #read(path: string): void {
    const invalid = (why: string, options?: { readonly cause?: unknown; readonly action?: string }) =>
      new TunnelError('LOGIN_INVALID', `${path} ${why}.`, options)
    const mode = modeOf(path)
    if (mode === undefined) return
    // As ssh does with keys: what others could read is not a secret any more.
    if (process.platform !== 'win32' && (mode & 0o077) !== 0)
      throw invalid('may be read by other users', { action: `Run: chmod 600 ${path}` })
    let text: string
    try {
      text = readFileSync(path, 'utf8')
    } catch (cause) {
      throw invalid('cannot be read', { cause })
    }
    try {
      const { servers, default: standard } = recordOf(JSON.parse(text))
      for (const [server, login] of Object.entries(recordOf(servers))) {
        const { token, ca } = recordOf(login)
        if (serverOrigin(server) !== server || !isTextOrNone(token) || !isTextOrNone(ca))
          throw new Error('not a login')
        this.#kept.set(server, { token, ca })
      }
      if (typeof standard === 'string' && this.#kept.has(standard)) this.#standard = standard
    } catch (cause) {
      // The reason is left out, because it may quote the content.
      throw invalid('is not a file of logins', { cause })
    }
  }

  #write(): void {
    const servers = Object.fromEntries(this.#kept)
    const text = `${JSON.stringify({ version: 1, default: this.#standard, servers }, null, 2)}\n`
    // Writes a new file and then replaces the old one: no reader sees half a file, and the mode is right from the first byte.
    const path = this.needPath()
    const draft = `${path}.${process.pid}`
    try {
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
      writeFileSync(draft, text, { mode: 0o600, flag: 'wx' })
      // The umask may have reduced the mode above.
      chmodSync(draft, 0o600)
      renameSync(draft, path)
    } catch (cause) {
      removeDraft(draft)
      const why = cause instanceof Error && 'code' in cause ? ` (${String(cause.code)})` : ''
      throw new TunnelError('LOGIN_INVALID', `${path} cannot be written${why}.`, { cause })
    }
  }
}

function removeDraft(draft: string): void {
  try {
    rmSync(draft, { force: true })
  } catch {
    // The folder failed, so there is no draft.
  }
}

/** Returns the folder by the XDG base directory specification, which ignores relative paths. */
function configFolder({ XDG_CONFIG_HOME = '' }: Environment): string | undefined {
  if (isAbsolute(XDG_CONFIG_HOME)) return join(XDG_CONFIG_HOME, 'localtunnels')
  const home = homeFolder()
  return home && join(home, '.config', 'localtunnels')
}

function modeOf(path: string): number | undefined {
  try {
    return statSync(path).mode
  } catch {
    // There is no file, or this user cannot reach it, as for a service without a home folder.
    return undefined
  }
}

const isTextOrNone = (value: unknown): value is string | undefined =>
  value === undefined || typeof value === 'string'

function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) throw new Error('not an object')
  return value as Readonly<Record<string, unknown>> // an object has string keys
}
