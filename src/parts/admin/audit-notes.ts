// Writes clients' actions to the audit log, at a limited rate: strangers can cause refusals at will, and each line
// waits for the disk.

import type { AuditLog } from '../../operations.ts'

/** The maximum number of lines per second. Further ones are counted, and the next line contains the count. */
export const MAX_NOTES_PER_SECOND = 20

export class AuditNotes {
  readonly #log: AuditLog
  readonly #failed: (cause: unknown) => void
  #second = 0
  #left = MAX_NOTES_PER_SECOND
  #dropped = 0

  /** Makes the notes. `failed` is called if the log cannot be written, which does not affect clients. */
  constructor(log: AuditLog, failed: (cause: unknown) => void) {
    this.#log = log
    this.#failed = failed
  }

  note(action: string, actor: string, subject: string, detail: string, nowMs: number = Date.now()): void {
    const second = Math.floor(nowMs / 1_000)
    if (second !== this.#second) {
      this.#second = second
      this.#left = MAX_NOTES_PER_SECOND
    }
    if (this.#left === 0) {
      this.#dropped++
      return
    }
    this.#left--
    const missing = this.#dropped === 0 ? '' : ` (${this.#dropped} lines before were left out)`
    this.#dropped = 0
    try {
      this.#log.note({ atMs: nowMs, action, actor, subject, detail: `${detail}${missing}` })
    } catch (cause) {
      this.#failed(cause)
    }
  }
}
