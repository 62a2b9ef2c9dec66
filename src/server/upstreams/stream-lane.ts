// The lane of one stream: begun once nobody reads its visitor, ended once its bytes are counted.

import { eventLoop } from '../../event-loop.ts'
import type { Session } from '../../session/session.ts'
import type { Stream } from '../../session/stream.ts'
import type { Lane, LaneEnd, LaneTerms, Socket } from '../../socket.ts'
import { encodeControl } from '../../wire/control.ts'
import type { LaneEvents } from '../upstream.ts'

export class StreamLane {
  readonly #session: Session
  readonly #stream: Stream
  readonly #left: (end: LaneEnd | undefined) => void
  readonly #events: LaneEvents
  #isStopped = false
  #running: Lane | undefined

  /**
   * Begins a lane that serves the visitor on the stream, in a moment. `left`: the stream is its handler's again, before
   * anybody else hears of the end; `undefined`: it never was the lane's.
   */
  constructor(
    session: Session,
    stream: Stream,
    visitor: Socket,
    terms: LaneTerms,
    events: LaneEvents,
    left: (end: LaneEnd | undefined) => void,
  ) {
    this.#session = session
    this.#stream = stream
    this.#events = events
    this.#left = left
    // What was read in this tick has arrived by then.
    eventLoop.soon(() => {
      if (!this.#isStopped && !stream.isClosed && events.isUndisturbed()) this.#begin(visitor, terms)
      if (this.#running === undefined) this.#end(undefined)
    })
  }

  stop(): void {
    this.#isStopped = true
    this.#running?.stop()
  }

  #begin(visitor: Socket, terms: LaneTerms): void {
    const { number: link, trunk } = this.#session.links.trunk ?? {}
    const stream = this.#stream
    if (link === undefined || trunk === undefined) return
    const lane = trunk.nextLane()
    this.#running = visitor.enterLane?.(trunk, lane, terms, {
      exchanged: exchange => this.#events.exchanged(exchange),
      over: end => {
        stream.moved(end.sentBytes, end.receivedBytes)
        this.#end(end)
      },
      more: bytes => stream.brought(bytes),
      back: isTorn => stream.release(isTorn),
    })
    if (this.#running === undefined) return
    stream.hold()
    this.#session.sendControl(encodeControl({ type: 'lane', stream: stream.id, link, lane }))
    this.#events.began(this.#running)
  }

  #end(end: LaneEnd | undefined): void {
    this.#left(end)
    this.#events.ended(end)
  }
}
