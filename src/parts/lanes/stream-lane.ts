// The lane of one stream. It begins when nothing reads its visitor any more, and ends when its bytes are counted.

import type { Lane, LaneEnd, LaneTerms } from '../../accelerator.ts'
import { eventLoop } from '../../event-loop.ts'
import type { LaneEvents } from '../../server/contracts/lane.ts'
import type { LendableStream } from '../../session/byte-stream.ts'
import type { Session } from '../../session/session.ts'
import type { Socket } from '../../socket.ts'
import { encodeControl } from '../../wire/control.ts'
import type { SessionTrunk } from './session-trunk.ts'

export class StreamLane {
  readonly #session: Session
  readonly #opened: Pick<SessionTrunk, 'current'>
  readonly #stream: LendableStream
  readonly #left: (end: LaneEnd | undefined) => void
  readonly #events: LaneEvents
  #isStopped = false
  #running: Lane | undefined

  /** Makes a lane, as `SessionLanes.lend`. */
  constructor(
    session: Session,
    opened: Pick<SessionTrunk, 'current'>,
    stream: LendableStream,
    visitor: Socket,
    terms: LaneTerms,
    events: LaneEvents,
    left: (end: LaneEnd | undefined) => void,
  ) {
    this.#session = session
    this.#opened = opened
    this.#stream = stream
    this.#events = events
    this.#left = left
    // Bytes that were read in this tick have arrived by then.
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
    const { link, trunk } = this.#opened.current ?? {}
    const stream = this.#stream
    if (link === undefined || trunk === undefined) return
    const lane = trunk.nextLane()
    this.#running = trunk.enter(visitor, lane, terms, {
      exchanged: exchange => this.#events.exchanged(exchange),
      logged: (lines, count) => this.#events.logged(lines, count),
      over: end => {
        stream.moved(end.sentBytes, end.receivedBytes)
        this.#end(end)
      },
      more: bytes => stream.brought(bytes),
      back: isTorn => stream.giveBack(isTorn),
    })
    if (this.#running === undefined) return
    stream.lend()
    this.#session.sendControl(encodeControl({ type: 'lane', stream: stream.id, link: link.number, lane }))
    this.#events.began(this.#running)
  }

  #end(end: LaneEnd | undefined): void {
    this.#left(end)
    this.#events.ended(end)
  }
}
