// The admin listener of `localtunnels server`: its token, its files, and how commands of this user find it.

import { randomBytes } from 'node:crypto'
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { AdminConfig, ServerConfigOptions } from '../../config/server-config.ts'
import { optionInvalid } from '../../errors.ts'
import type { AuditLog, OperationsStore } from '../../operations.ts'
import type { AdminOptions, AdminUpgrade } from '../../server/settings/part-options.ts'
import { stateFolder } from '../../state-folder.ts'
import { openOperations } from '../../stores/open.ts'
import type { Place } from '../workers/workers.ts'

type Environment = Readonly<Record<string, string | undefined>>

export interface AdminAccess {
  readonly url: string
  readonly token: string
  /** The URL of the page on a site whose proxy passes requests on with the base path. */
  readonly siteUrl?: string | undefined
}

export class AdminListener {
  readonly options: AdminOptions
  readonly #store: (OperationsStore & AuditLog) | undefined
  readonly #environment: Environment
  readonly #config: string

  /**
   * Opens a listener. `undefined` if none is wanted. Without a token, it makes one for this run, which this user's commands find.
   */
  static async open(
    config: AdminConfig | undefined,
    environment: Environment,
    upgrade: AdminUpgrade,
  ): Promise<AdminListener | undefined> {
    if (config === undefined) return undefined
    const path = storePath(config, environment)
    const store = path === undefined ? undefined : await openOperations(path)
    return new AdminListener(config, environment, store, { token: config.token ?? newToken(), upgrade })
  }

  /** Opens the listener of a worker: a Unix socket for the process that started it. */
  static async openInside(
    config: AdminConfig | undefined,
    environment: Environment,
    { number, folder }: Place,
  ): Promise<AdminListener | undefined> {
    if (config === undefined) return undefined
    const store = await openOperations(storePath(config, environment) ?? join(folder, 'admin.db'))
    const token = readFileSync(join(folder, MEMBER_TOKEN), 'utf8')
    const socket = adminSocket(folder, number, process.pid)
    return new AdminListener(config, environment, store, { token, socket })
  }

  private constructor(
    config: AdminConfig,
    environment: Environment,
    store: (OperationsStore & AuditLog) | undefined,
    besides: Pick<AdminOptions, 'token' | 'socket' | 'upgrade'>,
  ) {
    const { store: _path, ...given } = config
    this.#config = JSON.stringify(config)
    this.#environment = environment
    this.#store = store
    this.options = { ...given, ...besides, ...(store && { store, audit: store }) }
  }

  /** Called when the server listens. Writes the address to a file, for commands. */
  opened(url: string, options: ServerConfigOptions): void {
    keepAccess(this.#environment, { url, token: this.options.token, siteUrl: siteUrlOf(options) })
  }

  close(): void {
    this.#store?.close()
  }

  /** Throws `OPTION_INVALID` for changes that need a restart. */
  check(config: AdminConfig | undefined): void {
    if (config !== undefined && JSON.stringify(config) === this.#config) return
    throw optionInvalid('admin cannot change while the server runs: start it again for that.')
  }
}

/** The name of the file, in the folder of the workers, with the token of the process that started them. */
export const MEMBER_TOKEN = 'admin-token'

export function newToken(): string {
  return randomBytes(24).toString('base64url')
}

export function adminSocket(folder: string, number: number, pid: number): string {
  return join(folder, `admin-${number}-${pid}`)
}

function storePath(config: AdminConfig, environment: Environment): string | undefined {
  const folder = stateFolder(environment)
  return config.store ?? (folder && join(folder, 'admin.db'))
}

/** Returns the URL of the page behind a proxy. `undefined` if the server is not below a path of a site. */
export function siteUrlOf({ publicUrl, basePath = '' }: ServerConfigOptions): string | undefined {
  const path = basePath.replace(/\/+$/, '')
  return publicUrl === undefined || path === '' ? undefined : `${publicUrl.replace(/\/+$/, '')}${path}/admin`
}

/** Writes the access for the commands of this user. */
export function keepAccess(environment: Environment, access: AdminAccess): void {
  const folder = stateFolder(environment)
  if (folder === undefined) return
  const path = join(folder, 'admin.json')
  writeFileSync(path, `${JSON.stringify(access)}\n`, { mode: 0o600 })
  chmodSync(path, 0o600)
}

/** Returns the access that the last server of this user wrote. `undefined` for none. */
export function keptAccess(environment: Environment): AdminAccess | undefined {
  const folder = stateFolder(environment)
  if (folder === undefined) return undefined
  try {
    const kept: unknown = JSON.parse(readFileSync(join(folder, 'admin.json'), 'utf8'))
    if (typeof kept !== 'object' || kept === null) return undefined
    const { url, token, siteUrl }: Partial<Record<string, unknown>> = { ...kept }
    if (typeof url !== 'string' || typeof token !== 'string') return undefined
    return { url, token, siteUrl: typeof siteUrl === 'string' ? siteUrl : undefined }
  } catch {
    return undefined // missing, or not this user's
  }
}
