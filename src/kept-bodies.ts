// Stores bodies of requests until they are complete: each owner and visitor has a share of the room, and each next
// piece a time limit.

import { addPiece, copyOf } from './bytes.ts'
import type { Clock, Deadline } from './server/contracts/clock.ts'
import { TICKS_PER_SECOND } from './server/limits/deadlines.ts'
import { type Portion, Shares } from './shares.ts'
import { networkOf } from './wire/ip-address.ts'

/**
 * The longest time for one body, as a multiple of the longest pause. Without it, a slow visitor would keep its place
 * without limit.
 */
const MAX_PAUSES = 8

export interface KeptBounds {
  readonly maxBodyBytes: number
  /** The maximum size of all bodies. There is always room for one of the largest. */
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

  /**
   * Begins a body. `owner`: that of the tunnel. `failed` is called if the next piece did not come in time, or another
   * body needs the room.
   */
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

  /** Stores a copy of bytes[start, end). Returns a code if it cannot. */
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

  /** Called when the body is complete. It counts until it is dropped. */
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
