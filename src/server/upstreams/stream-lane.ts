// The lane on one stream: begun in the moment when neither of its connections is read, ended once its bytes are counted.

import { eventLoop } from '../../event-loop.ts'
import type { Stream } from '../../session/stream.ts'
import type { Lane, LaneEnd, LaneTerms, Socket, Splice, SpliceDone } from '../../socket.ts'
import type { LaneEvents } from '../upstream.ts'

export class StreamLane {
  readonly #stream: Stream
  readonly #left: (end: LaneEnd | undefined) => void
  #begin: ((from: Socket, done: SpliceDone) => Splice | undefined) | undefined
  #running: Lane | undefined

  /**
   * Asks for a lane that serves the visitor on the stream. `left`: the stream is its handler's again, before anybody else
   * hears of the end; `undefined`: it never was the lane's.
   */
  constructor(
    stream: Stream,
    visitor: Socket,
    terms: LaneTerms,
    events: LaneEvents,
    left: (end: LaneEnd | undefined) => void,
  ) {
    this.#stream = stream
    this.#left = left
    this.#begin = (from, done) => {
      if (!events.isUndisturbed()) return undefined
      this.#running = this.#open(visitor, from, terms, events, done)
      if (this.#running !== undefined) events.began(this.#running)
      return this.#running?.receiving
    }
    // The turn that is asked for here comes before what is asked for behind it, if it comes.
    stream.askTurn()
    eventLoop.soon(() => {
      this.#begin = undefined
      if (this.#running !== undefined) return
      left(undefined)
      events.ended(undefined)
    })
  }

  /** The moment: see `StreamHandler.receivedFrom`. */
  receivedFrom(from: Socket, done: SpliceDone): Splice | undefined {
    return this.#begin?.(from, done)
  }

  stop(): void {
    this.#begin = undefined
    this.#running?.stop()
  }

  #open(
    visitor: Socket,
    from: Socket,
    terms: LaneTerms,
    events: LaneEvents,
    received: SpliceDone,
  ): Lane | undefined {
    let lane: Lane | undefined
    let sent: SpliceDone = () => {}
    const ended = (end: LaneEnd) => {
      this.#running = undefined
      sent(end.sentBytes)
      this.#left(end)
      events.ended(end)
      received(end.receivedBytes)
    }
    // The stream knows what its bytes go to, and wants to count them.
    const spliceTo = (to: Socket, _limitBytes: number, sendingDone: SpliceDone) => {
      sent = sendingDone
      lane = visitor.serveLane?.(to, from, terms, ended)
      return lane?.sending
    }
    this.#stream.writeFrom({ spliceTo }, Number.POSITIVE_INFINITY, () => {})
    return lane
  }
}
