// The app's end of a lane, at the client: moves bytes between the trunk and the app's connection without parsing
// them.
//
//   trunk ── request ──▶ app
//   trunk ◀── response ─ app        up to what a lane may carry; the main thread sends the rest, with credit or on a link

import { type Room, WOULD_BLOCK } from './kernel.ts'
import { LaneSide } from './lane.ts'
import { MAX_LANE_ANSWER_BYTES, MAX_LANE_FRAME_BYTES } from './trunk.ts'

export class AppLane extends LaneSide {
  /** The number of bytes from the app since the last request. */
  #responseBytes = 0
  /** Whether the app sent bytes that were not read yet. */
  #isAppReady = false
  /** Whether the app has ended: no further event reports it. */
  #isAppLeaving = false

  changed(isLast: boolean): void {
    this.#isAppReady = true
    this.#isAppLeaving ||= isLast
    if (!this.hasLeft) this.#takeAnswer()
  }

  roomAgain(): void {
    if (this.#isAppReady) this.#takeAnswer()
  }

  finish(hasFailed = false): void {
    this.tellOver({ hasFailed })
    this.leave()
  }

  received(room: Room, start: number, end: number): void {
    if (this.hasLeft) return this.tellMore(room.bytes, start, end)
    const { kernel } = this.tools
    this.#responseBytes = 0
    const sent = kernel.send(this.order.descriptor, room, end - start, start)
    const taken = Math.max(sent, 0)
    this.receivedBytes += taken
    if (taken === end - start) return
    // The app takes no more bytes for now, or is gone.
    this.finish(sent < 0 && sent !== WOULD_BLOCK)
    this.tellMore(room.bytes, start + taken, end)
  }

  #takeAnswer(): void {
    const { kernel } = this.tools
    const { trunk, order } = this
    for (;;) {
      const at = trunk.reserve(this, MAX_LANE_FRAME_BYTES)
      if (at === -1) return
      this.#isAppReady = false
      const most = Math.min(MAX_LANE_FRAME_BYTES, MAX_LANE_ANSWER_BYTES - this.#responseBytes)
      const count = kernel.receive(order.descriptor, trunk.out, most, at)
      if (count === WOULD_BLOCK) return
      // The main thread reads the end again. After a reset the runtime may have read bytes itself, so those read here
      // may lack earlier ones.
      if (count <= 0) return this.finish(count < 0)
      if (this.#isAppLeaving && !kernel.isConnected(order.descriptor)) return this.finish(true)
      this.sentBytes += count
      this.#responseBytes += count
      trunk.commit(this.lane, count)
      if (this.#responseBytes === MAX_LANE_ANSWER_BYTES) return this.finish()
      if (count < most && !this.#isAppLeaving) return
    }
  }
}
