// Connects the guard of one tunnel with its file, which has the secret and the links that another process revoked.

import type { TunnelError } from '../../errors.ts'
import type { OwnGuard } from '../../own-guard.ts'
import { type GuardFiles, type KeptGuard, readGuard } from './guard-files.ts'
import { stateUnwritable } from './resume-files.ts'

/** The operations of the tunnel that a stored guard needs. */
export interface GuardKeepingOwner {
  /** Called when another process revoked links: the server needs the new guard. */
  revoked(): void
  /** Called when the file cannot be used. The tunnel continues. */
  failed(error: TunnelError): void
}

export class GuardKeeping {
  readonly #guard: OwnGuard
  readonly #files: GuardFiles
  readonly #kind: string
  readonly #name: string
  readonly #owner: GuardKeepingOwner
  #kept: KeptGuard | undefined
  #watch: { stop(): void } | undefined
  #isResting = false

  constructor(guard: OwnGuard, files: GuardFiles, kind: string, name: string, owner: GuardKeepingOwner) {
    this.#guard = guard
    this.#files = files
    this.#kind = kind
    this.#name = name
    this.#owner = owner
  }

  /** Reads the file, before the guard is first used. */
  async begin(): Promise<void> {
    if (this.#kept !== undefined) return
    this.#kept = await this.#files.find(this.#kind, this.#name)
    this.#guard.adopt(this.#kept.secret, this.#kept.revoked)
  }

  /** Called when the tunnel is granted under this name, at this URL. */
  async granted(name: string, url: string): Promise<void> {
    // Links of another client with this name do not belong to this one.
    if (name !== this.#name) return
    this.#isResting = false
    const before = this.#kept
    const { key: secret, hasLinks, revoked } = this.#guard
    const isSame = before?.url === url && before.secret === secret && before.hasLinks === hasLinks
    if (before !== undefined && (!isSame || before.revoked.length !== revoked.length))
      await this.#write({ ...before, url, secret, hasLinks, revoked })
    if (hasLinks) await this.#watchFile()
  }

  async revoked(): Promise<void> {
    if (this.#kept?.url) await this.#write({ ...this.#kept, revoked: this.#guard.revoked })
  }

  /** Called when there is no connection. The next one reads revocations again. */
  rest(): void {
    this.#isResting = true
    this.#watch?.stop()
    this.#watch = undefined
  }

  async #write(kept: KeptGuard): Promise<void> {
    try {
      await this.#files.keep(kept)
      this.#kept = kept
    } catch (cause) {
      this.#owner.failed(stateUnwritable(cause))
    }
  }

  async #watchFile(): Promise<void> {
    const { FileWatch } = await import('../../file-watch.ts')
    if (this.#watch !== undefined || this.#isResting) return
    const path = this.#files.pathOf(this.#kind, this.#name)
    this.#watch = new FileWatch(
      [path],
      () => void this.#changed(path),
      cause => this.#owner.failed(stateUnwritable(cause)),
    )
    await this.#changed(path)
  }

  async #changed(path: string): Promise<void> {
    const kept = await readGuard(path)
    const news = kept?.revoked.filter(id => !this.#guard.revoked.includes(id)) ?? []
    if (kept === undefined || news.length === 0) return
    this.#kept = kept
    for (const id of news) this.#guard.revoke(id)
    this.#owner.revoked()
  }
}
