// Carrier bytes in transit to the decoder: in portions, so that one session never holds up the others.

import { copyOf } from '../bytes.ts'
import type { ErrorCode } from '../errors.ts'
import { FrameDecoder, type FrameHandler } from '../wire/frame.ts'
import type { Carrier } from './carrier.ts'
import type { Turns, Waiting } from './turns.ts'

/** Frames taken before others may have their turn: a fifth of a millisecond, when each brings a response to a visitor. */
const FRAMES_AT_ONCE = 32

/** The operations of the session that arrivals need. */
export interface ArrivalsOwner {
  readonly isClosed: boolean
  /** The other side lives. */
  heard(): void
  /** Closes the session: what arrived breaks the protocol. */
  close(code: ErrorCode): void
  /** Runs what may throw; a throw ends the session. */
  guard(task: () => void): void
}

export class Arrivals implements Waiting {
  readonly #owner: ArrivalsOwner
  readonly #carrier: Carrier
  readonly #turns: Turns | undefined
  readonly #decoder: FrameDecoder
  /** The bytes that arrived and wait for the session's turn. In the meantime the carrier is not read. */
  readonly #unread: Uint8Array[] = []

  /** Makes the arrivals. Without `turns` everything is decoded at once. */
  constructor(owner: ArrivalsOwner, carrier: Carrier, frames: FrameHandler, turns: Turns | undefined) {
    this.#owner = owner
    this.#carrier = carrier
    this.#turns = turns
    this.#decoder = new FrameDecoder(frames)
    if (turns !== undefined) this.#decoder.framesLeft = FRAMES_AT_ONCE
  }

  received(bytes: Uint8Array, start: number, end: number): void {
    if (this.#owner.isClosed) return
    this.#owner.heard()
    if (this.#unread.length === 0) this.#decode(bytes, start, end)
    else this.#unread.push(copyOf(bytes, start, end))
  }

  /** The session is over: nothing more is decoded. */
  stop(): void {
    this.#turns?.forget(this)
    this.#unread.length = 0
    this.#decoder.stop()
  }

  turn(): void {
    this.#owner.guard(() => {
      this.#owner.heard()
      const next = this.#unread.shift()
      if (next !== undefined) this.#decode(next, 0, next.length, true)
      if (this.#unread.length > 0) this.#turns?.wait(this)
      else if (!this.#owner.isClosed) this.#carrier.resume?.()
    })
  }

  /** Takes a portion, and more if there is time. The rest waits for the session's turn, and the carrier with it. */
  #decode(bytes: Uint8Array, start: number, end: number, isOwn = false): void {
    const turns = this.#turns
    let at = start
    do {
      const problem = this.#decoder.receive(bytes, at, end)
      if (problem !== undefined) return this.#owner.close(problem)
      if (this.#decoder.framesLeft > 0 || this.#owner.isClosed) return
      this.#decoder.framesLeft = FRAMES_AT_ONCE
      at = this.#decoder.at
      // Many small reads are many portions as well: so it asks even if nothing is left of this one.
    } while (turns?.hasTime && at < end)
    if (at === end && turns?.hasTime !== false) return
    if (at < end) this.#unread.unshift(isOwn ? bytes.subarray(at, end) : copyOf(bytes, at, end))
    this.#carrier.pause?.()
    turns?.wait(this)
  }
}
