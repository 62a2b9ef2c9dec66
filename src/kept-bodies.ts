// Bodies of requests that are kept until they are complete: a share of the room for each owner and visitor, and a time for each next piece.

import { addPiece, copyOf } from './bytes.ts'
import type { Clock, Deadline } from './server/contracts/clock.ts'
import { TICKS_PER_SECOND } from './server/limits/deadlines.ts'
import { type Portion, Shares } from './shares.ts'
import { networkOf } from './wire/ip-address.ts'

/**
 * The longest time for one body, as a multiple of the longest pause: otherwise a slow visitor would hold its place without
 * limit.
 */
const MAX_PAUSES = 8

export interface KeptBounds {
  readonly maxBodyBytes: number
  /** The maximum size of all of them. There is always room for one of the largest. */
  readonly maxBytes: number
  /** The time for the next piece, and eight times as long for all of them; 0: no limit. */
  readonly pauseMs: number
}

export class KeptBodies {
  readonly #deadlines: Clock
  readonly #boundsNow: () => KeptBounds
  readonly #shares = new Shares()

  constructor(deadlines: Clock, boundsNow: () => KeptBounds) {
    this.#deadlines = deadlines
    this.#boundsNow = boundsNow
  }

  get maxBodyBytes(): number {
    return this.#boundsNow().maxBodyBytes
  }

  /** Begins one. `owner`: whose tunnel it is for; `failed`: the next piece did not come in time, or the room is another one's now. */
  begin(owner: string, address: string, failed: (code: 'REQUEST_TIMEOUT' | 'full') => void): KeptBody {
    return new KeptBody(this.#deadlines, this.#shares, this.#boundsNow, owner, networkOf(address), failed)
  }
}

export class KeptBody implements Deadline, Portion {
  dueTick = 0
  readonly pieces: Uint8Array[] = []
  readonly owner: string
  readonly visitor: string
  readonly #failed: (code: 'REQUEST_TIMEOUT' | 'full') => void
  readonly #deadlines: Clock
  readonly #shares: Shares
  readonly #boundsNow: () => KeptBounds
  readonly #beganAt: number
  #bytes = 0

  constructor(
    deadlines: Clock,
    shares: Shares,
    boundsNow: () => KeptBounds,
    owner: string,
    visitor: string,
    failed: (code: 'REQUEST_TIMEOUT' | 'full') => void,
  ) {
    this.#deadlines = deadlines
    this.#shares = shares
    this.#boundsNow = boundsNow
    this.owner = owner
    this.visitor = visitor
    this.#failed = failed
    this.#beganAt = deadlines.tick
    deadlines.watch(this)
    deadlines.arm(this, boundsNow().pauseMs)
  }

  expired(): void {
    this.#failed('REQUEST_TIMEOUT')
  }

  giveWay(): void {
    this.#failed('full')
  }

  /** Copies bytes[start, end). A code: it did not. */
  keep(bytes: Uint8Array, start = 0, end: number = bytes.length): 'BODY_TOO_LARGE' | 'full' | undefined {
    const { maxBodyBytes, maxBytes, pauseMs } = this.#boundsNow()
    const count = end - start
    if (this.#bytes + count > maxBodyBytes) return 'BODY_TOO_LARGE'
    if (!this.#shares.grow(this, count, maxBytes)) return 'full'
    this.#bytes += count
    addPiece(this.pieces, copyOf(bytes, start, end))
    const tookMs = ((this.#deadlines.tick - this.#beganAt) * 1_000) / TICKS_PER_SECOND
    const leftMs = MAX_PAUSES * pauseMs - tookMs
    this.#deadlines.arm(this, pauseMs === 0 ? 0 : Math.max(1, Math.min(pauseMs, leftMs)))
    return undefined
  }

  /** No more comes. It counts until it is dropped. */
  complete(): void {
    this.#deadlines.forget(this)
    this.#shares.settle(this)
  }

  drop(): void {
    this.complete()
    this.#shares.give(this.owner, this.visitor, this.#bytes)
    this.#bytes = 0
  }
}
