// A join towards the origin, whose bytes may travel on a lane for a while: then the thread has the origin's connection.

import { eventLoop } from '../event-loop.ts'
import { Join } from '../join.ts'
import type { LaneHandler, Trunk } from '../socket.ts'

export class OriginJoin extends Join {
  #isInLane = false
  /** One that began before the last one was back. */
  #nextLane: (() => void) | undefined

  laneBegan(trunk: Trunk, lane: number): void {
    if (this.#isInLane) {
      this.#nextLane = () => this.laneBegan(trunk, lane)
      return
    }
    this.#isInLane = true
    this.stream?.hold()
    const handler = this.#laneHandler()
    const socket = this.idleSocket
    if (socket?.canEnterLane?.() !== true) return trunk.refuse(lane, handler)
    socket.pause()
    // What was read in this tick has arrived by then.
    eventLoop.soon(() => {
      const isPossible = this.idleSocket === socket
      if (isPossible && socket.enterLane?.(trunk, lane, undefined, handler) !== undefined) return
      trunk.refuse(lane, handler)
    })
  }

  #laneHandler(): LaneHandler {
    const { stream } = this
    return {
      over: ({ sentBytes, receivedBytes }) => {
        stream?.moved(sentBytes, receivedBytes)
        // Else `writable` follows.
        if (stream?.isBackedUp !== true) this.writable()
      },
      more: bytes => stream?.brought(bytes),
      back: isTorn => {
        this.#isInLane = false
        stream?.release(isTorn)
        const next = this.#nextLane
        this.#nextLane = undefined
        next?.()
      },
    }
  }
}
