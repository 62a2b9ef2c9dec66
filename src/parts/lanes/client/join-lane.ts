// A join to the origin whose bytes use a lane for a while: a worker thread then has the origin's connection.

import type { LaneHandler, Trunk } from '../../../accelerator.ts'
import { eventLoop } from '../../../event-loop.ts'
import type { Join } from '../../../join.ts'

export class JoinLane {
  readonly #join: Join
  #isInLane = false
  /** Begins the lane that started before the last one was returned. */
  #nextLane: (() => void) | undefined

  constructor(join: Join) {
    this.#join = join
  }

  begin(trunk: Trunk, lane: number): void {
    if (this.#isInLane) {
      this.#nextLane = () => this.begin(trunk, lane)
      return
    }
    this.#isInLane = true
    this.#join.stream?.lendable?.lend()
    const handler = this.#handler()
    const socket = this.#join.idleSocket
    if (socket?.isLendable !== true) return trunk.refuse(lane, handler)
    socket.pause()
    // Bytes that were read in this tick have arrived by then.
    eventLoop.soon(() => {
      const isPossible = this.#join.idleSocket === socket
      if (isPossible && trunk.enter(socket, lane, undefined, handler) !== undefined) return
      trunk.refuse(lane, handler)
    })
  }

  #handler(): LaneHandler {
    const join = this.#join
    const stream = join.stream?.lendable
    return {
      over: ({ sentBytes, receivedBytes }) => {
        stream?.moved(sentBytes, receivedBytes)
        // Otherwise `writable` follows.
        if (stream?.isBackedUp !== true) join.writable()
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
