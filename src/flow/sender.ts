// Sends the datagrams of one flow in portions, in turn with the other flows.

import type { Waiting } from '../session/turns.ts'
import { DatagramReader, type SendDatagrams } from '../wire/datagrams.ts'
import type { FlowShare } from './share.ts'

/**
 * The number of bytes that one flow sends in one turn of the event loop. A receiver that gets more at once loses it: Linux gives
 * a UDP socket room for 92 datagrams of 1,400 bytes, and one read of a busy carrier contains three times as many.
 */
const TURN_BYTES = 131_072
/**
 * The number of datagrams that one flow sends before another has its turn: as many of 1,400 bytes as fit in one
 * message to the kernel. A single datagram costs the kernel 5 to 10 µs, so this takes at most half a millisecond.
 */
const PORTION = 48
/**
 * The number of flows of one tunnel that may wait for their turn, each with at most its stream's credit. Datagrams of further
 * flows are dropped. 64 flows with full portions take about 15 turns, so a datagram waits for up to about 50 ms.
 */
export const MAX_WAITING_FLOWS = 64

export class FlowSender implements Waiting {
  readonly #share: FlowShare
  readonly #reader: DatagramReader
  readonly #drained: () => void
  /** Whether the flow waits for its turn, or for the end of this turn of the event loop. */
  #isWaiting = false
  /** Whether the flow has its turn and may send one portion. */
  #isInTurn = false
  /** The number of datagrams left in the portion. */
  #left = 0
  /** Whether the kernel took no more, so that `drained` will follow. */
  #isFull = false
  /** Whether datagrams are dropped, because there is neither time nor a place to wait. */
  #isDropping = false
  #turnNumber = 0
  #turnBytes = 0
  #isClosed = false

  /** Makes a sender. `drained` is called when datagrams may be given again. */
  constructor(share: FlowShare, send: SendDatagrams, drained: () => void) {
    this.#share = share
    this.#drained = drained
    this.#reader = new DatagramReader(datagrams => {
      if (this.#isDropping) {
        share.options.dropped(datagrams.length)
        return datagrams.length
      }
      const taken = send(datagrams)
      this.#left -= taken
      this.#isFull = taken < datagrams.length
      return taken
    })
  }

  /** Takes framed datagrams, and returns how many bytes it took. If it did not take all, it calls `drained` later. */
  write(bytes: Uint8Array, start: number, end: number): number {
    if (this.#isInTurn) {
      const taken = this.#writePortion(bytes, start, end)
      if (taken < end - start) this.#wait()
      return taken
    }
    if (this.#isWaiting) return 0
    const { turns } = this.#share.options
    if (!turns.hasTime) return this.#writeLate(bytes, start, end)
    let at = start
    do {
      this.#left = PORTION
      at += this.#writePortion(bytes, at, end)
    } while (at < end && this.#left <= 0 && !this.#isWaiting && turns.hasTime)
    if (at < end) this.#wait()
    return at - start
  }

  /** Called when the kernel takes datagrams again. */
  drained(): void {
    if (this.#isClosed) return
    this.#isFull = false
    if (this.#reader.retry()) this.#drained()
  }

  turn(): void {
    this.#leaveLine()
    this.#left = PORTION
    this.#isInTurn = true
    try {
      this.drained()
    } finally {
      this.#isInTurn = false
    }
  }

  close(): void {
    this.#isClosed = true
    this.#leaveLine()
    this.#share.options.turns.forget(this)
  }

  #writePortion(bytes: Uint8Array, start: number, end: number): number {
    const { turnNumber } = this.#share
    if (turnNumber !== this.#turnNumber) {
      this.#turnNumber = turnNumber
      this.#turnBytes = 0
    }
    const most = Math.min(end, start + TURN_BYTES - this.#turnBytes)
    const taken = this.#reader.receive(bytes.subarray(start, most), this.#left)
    this.#turnBytes += taken
    return taken
  }

  /** Waits for a turn when the time of this one is used up, or drops the datagrams if too many flows wait. */
  #writeLate(bytes: Uint8Array, start: number, end: number): number {
    if (this.#share.waitingCount < MAX_WAITING_FLOWS) {
      this.#wait()
      return 0
    }
    this.#isDropping = true
    const taken = this.#reader.receive(bytes.subarray(start, end))
    this.#isDropping = false
    return taken
  }

  #wait(): void {
    if (this.#isWaiting || this.#isFull || this.#isClosed) return
    this.#isWaiting = true
    this.#share.waitingCount++
    const { turns } = this.#share.options
    if (this.#turnBytes < TURN_BYTES) return turns.wait(this)
    this.#share.atTurnEnd(() => {
      if (this.#isClosed) return
      if (turns.hasTime) this.turn()
      else turns.wait(this)
    })
  }

  #leaveLine(): void {
    if (!this.#isWaiting) return
    this.#isWaiting = false
    this.#share.waitingCount--
  }
}
