// A join towards the origin, whose bytes may travel on a lane for a while: then a worker thread has the origin's connection.

import type { LaneHandler, Trunk } from '../../accelerator.ts'
import { eventLoop } from '../../event-loop.ts'
import { Join } from '../../join.ts'

export class OriginJoin extends Join {
  #isInLane = false
  /** A lane that began before the last one was back. */
  #nextLane: (() => void) | undefined

  laneBegan(trunk: Trunk, lane: number): void {
    if (this.#isInLane) {
      this.#nextLane = () => this.laneBegan(trunk, lane)
      return
    }
    this.#isInLane = true
    this.stream?.lendable?.lend()
    const handler = this.#laneHandler()
    const socket = this.idleSocket
    if (socket?.isLendable !== true) return trunk.refuse(lane, handler)
    socket.pause()
    // What was read in this tick has arrived by then.
    eventLoop.soon(() => {
      const isPossible = this.idleSocket === socket
      if (isPossible && trunk.enter(socket, lane, undefined, handler) !== undefined) return
      trunk.refuse(lane, handler)
    })
  }

  #laneHandler(): LaneHandler {
    const stream = this.stream?.lendable
    return {
      over: ({ sentBytes, receivedBytes }) => {
        stream?.moved(sentBytes, receivedBytes)
        // Else `writable` follows.
        if (stream?.isBackedUp !== true) this.writable()
      },
      more: bytes => stream?.brought(bytes),
      back: isTorn => {
        this.#isInLane = false
        stream?.giveBack(isTorn)
        const next = this.#nextLane
        this.#nextLane = undefined
        next?.()
      },
    }
  }
}
