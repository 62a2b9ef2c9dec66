// Sends the datagrams of one flow in portions, each when the flow's turn among the others comes.

import type { Waiting } from '../session/turns.ts'
import { DatagramReader, type SendDatagrams } from '../wire/datagrams.ts'
import type { FlowShare } from './share.ts'

/**
 * The number of bytes that one flow sends on in one turn of the event loop. A receiver that gets more at a time loses it: Linux
 * gives a UDP socket room for 92 datagrams of 1,400 bytes, and one read of a busy carrier has three times as many.
 */
const TURN_BYTES = 131_072
/**
 * Datagrams that one flow sends before another has its turn: as many of 1,400 bytes as one message to the kernel holds.
 * A datagram alone costs the kernel 5 to 10 µs, so this is at most half a millisecond.
 */
const PORTION = 48
/**
 * Flows of one tunnel that wait for their turn, each with at most the credit of its stream. Datagrams for further flows are
 * dropped. 64 flows with a full portion are some 15 turns, so a datagram that is not dropped waits for about 50 ms.
 */
export const MAX_WAITING_FLOWS = 64

export class FlowSender implements Waiting {
  readonly #share: FlowShare
  readonly #reader: DatagramReader
  readonly #drained: () => void
  /** Whether it waits in the line, or for the end of this turn of the event loop. */
  #isWaiting = false
  /** Whether its turn has come: it may send one portion. */
  #isInTurn = false
  /** Datagrams that are left of the portion. */
  #left = 0
  /** The kernel took no more: `drained` follows. */
  #isFull = false
  /** Whether there is no time, and no place to wait: what is read is dropped. */
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

  /** The kernel takes datagrams again. */
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

  /** Waits in line after the time of this turn is used up, or drops the datagrams if there is no place. */
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
