// Passes carrier bytes to the frame decoder in portions, so that one session never delays the others.

import { copyOf } from '../bytes.ts'
import type { ErrorCode } from '../errors.ts'
import { FrameDecoder, type FrameHandler } from '../wire/frame.ts'
import type { Carrier } from './carrier.ts'
import type { Turns, Waiting } from './turns.ts'

/** The number of frames handled in one turn: a fifth of a millisecond if each brings a response to a visitor. */
const FRAMES_AT_ONCE = 32

/** The operations of the session that arrivals need. */
export interface ArrivalsOwner {
  readonly isClosed: boolean
  /** Called when bytes arrived, so the other side is alive. */
  heard(): void
  /** Closes the session, because the received bytes break the protocol. */
  close(code: ErrorCode): void
  /** Runs a task. An error ends the session. */
  guard(task: () => void): void
}

export class Arrivals implements Waiting {
  readonly #owner: ArrivalsOwner
  readonly #carrier: Carrier
  readonly #turns: Turns | undefined
  readonly #decoder: FrameDecoder
  /** The bytes that wait for the session's turn. Until then the carrier is not read. */
  readonly #unread: Uint8Array[] = []

  /** Makes the arrivals. Without `turns`, everything is decoded at once. */
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

  /** Called when the session is over: decodes nothing more. */
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

  /** Decodes a portion, and more if there is time. The rest waits for the session's turn, and the carrier is paused. */
  #decode(bytes: Uint8Array, start: number, end: number, isOwn = false): void {
    const turns = this.#turns
    let at = start
    do {
      const problem = this.#decoder.receive(bytes, at, end)
      if (problem !== undefined) return this.#owner.close(problem)
      if (this.#decoder.framesLeft > 0 || this.#owner.isClosed) return
      this.#decoder.framesLeft = FRAMES_AT_ONCE
      at = this.#decoder.at
      // Many small reads add up to as much work, so it asks even if this read is finished.
    } while (turns?.hasTime && at < end)
    if (at === end && turns?.hasTime !== false) return
    if (at < end) this.#unread.unshift(isOwn ? bytes.subarray(at, end) : copyOf(bytes, at, end))
    this.#carrier.pause?.()
    turns?.wait(this)
  }
}
