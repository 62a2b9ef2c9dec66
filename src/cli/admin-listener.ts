// The admin listener of `localtunnels server`: its token, where it keeps things, and how the commands of this user find it.

import { randomBytes } from 'node:crypto'
import { chmodSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { AdminConfig } from '../config/server-config.ts'
import { TunnelError } from '../errors.ts'
import type { AuditLog, OperationsStore } from '../operations.ts'
import type { AdminOptions, AdminUpgrade } from '../server/admin/options.ts'
import { openOperations } from '../stores/open-operations.ts'
import { stateFolder } from './state-folder.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** Where an admin listener is, and what opens it. */
export interface AdminAccess {
  readonly url: string
  readonly token: string
}

export class AdminListener {
  readonly options: AdminOptions
  readonly #store: (OperationsStore & AuditLog) | undefined
  readonly #folder: string | undefined
  readonly #config: string

  /** `undefined`: none is asked for. Without a token there is one for this start, which this user's commands find. */
  static async open(
    config: AdminConfig | undefined,
    environment: Environment,
    upgrade: AdminUpgrade,
  ): Promise<AdminListener | undefined> {
    if (config === undefined) return undefined
    const folder = stateFolder(environment)
    const path = config.store ?? (folder && join(folder, 'admin.db'))
    const store = path === undefined ? undefined : await openOperations(path)
    return new AdminListener(config, store, folder, upgrade)
  }

  private constructor(
    config: AdminConfig,
    store: (OperationsStore & AuditLog) | undefined,
    folder: string | undefined,
    upgrade: AdminUpgrade,
  ) {
    const { store: _path, ...given } = config
    this.#config = JSON.stringify(config)
    this.#store = store
    this.#folder = folder
    const token = config.token ?? randomBytes(24).toString('base64url')
    this.options = { ...given, token, upgrade, ...(store && { store, audit: store }) }
  }

  /** The server listens. Writes down where, for the commands. */
  opened(url: string): void {
    if (this.#folder === undefined) return
    const path = join(this.#folder, 'admin.json')
    writeFileSync(path, `${JSON.stringify({ url, token: this.options.token })}\n`, { mode: 0o600 })
    chmodSync(path, 0o600)
  }

  close(): void {
    this.#store?.close()
  }

  /** Throws `OPTION_INVALID` for what cannot change while the server runs. */
  check(config: AdminConfig | undefined): void {
    if (config !== undefined && JSON.stringify(config) === this.#config) return
    throw new TunnelError(
      'OPTION_INVALID',
      'admin cannot change while the server runs: start it again for that.',
    )
  }
}

/** What the last server of this user wrote down; `undefined`: nothing. */
export function keptAccess(environment: Environment): AdminAccess | undefined {
  const folder = stateFolder(environment)
  if (folder === undefined) return undefined
  try {
    const kept: unknown = JSON.parse(readFileSync(join(folder, 'admin.json'), 'utf8'))
    if (typeof kept !== 'object' || kept === null || !('url' in kept) || !('token' in kept)) return undefined
    const { url, token } = kept
    return typeof url === 'string' && typeof token === 'string' ? { url, token } : undefined
  } catch {
    return undefined // not there, or not ours
  }
}
