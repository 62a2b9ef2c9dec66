// One connection of a TCP or TLS tunnel, or one flow of a UDP tunnel: a row with its byte counts. Its content is not stored.

import { TunnelError } from '../../errors.ts'
import type { Entry } from './entry.ts'
import { type Flow, FROM_APP, type Piece, TO_APP, type Way } from './flow.ts'
import type { ExchangeStore } from './store.ts'

/** The time in milliseconds between updates of a row that only grows. */
const SHOWN_EVERY_MS = 500

export class RawFlow implements Flow {
  readonly isPassing = true
  readonly #entry: Entry
  readonly #store: ExchangeStore
  readonly #piece: Piece = { way: TO_APP, at: 0, bytes: undefined }
  #shownAt = 0

  constructor(entry: Entry, store: ExchangeStore) {
    this.#entry = entry
    this.#store = store
    store.changed(entry)
  }

  wants(): boolean {
    return true
  }

  reserve(): Piece {
    return this.#piece
  }

  sent(_piece: Piece, _bytes: Uint8Array, start: number, end: number): void {
    this.passed(TO_APP, end - start)
  }

  received(bytes: Uint8Array): void {
    this.passed(FROM_APP, bytes.length)
  }

  ended(): void {}

  lent(): void {}

  unseenBytes(): number {
    return Number.POSITIVE_INFINITY
  }

  passed(way: Way, count: number): void {
    if (way === TO_APP) this.#entry.bytesIn += count
    else this.#entry.bytesOut += count
    const now = performance.now()
    if (now - this.#shownAt < SHOWN_EVERY_MS) return
    this.#shownAt = now
    this.#store.changed(this.#entry)
  }

  closed(error: Error | undefined, isCut: boolean): void {
    const entry = this.#entry
    entry.endMark = performance.now()
    entry.state = error === undefined ? 'done' : 'failed'
    if (error !== undefined)
      entry.code ??= error instanceof TunnelError ? error.code : isCut ? 'CANCELLED' : 'ORIGIN_CLOSED'
    this.#store.ended(entry)
  }
}
