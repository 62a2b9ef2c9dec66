// The trunk of one session at the server: the link that its client opened for lanes, and when to ask for one.

import { accelerator as ofProcess } from '../../accelerator/door.ts'
import type { Accelerator, Lane, LaneEnd, LaneTerms, Trunk } from '../../accelerator.ts'
import { eventLoop } from '../../event-loop.ts'
import type { LaneEvents } from '../../server/contracts/lane.ts'
import type { SessionLanes } from '../../server/contracts/laning.ts'
import type { LendableStream } from '../../session/byte-stream.ts'
import type { Link } from '../../session/link.ts'
import type { Session } from '../../session/session.ts'
import type { Socket } from '../../socket.ts'
import { encodeControl } from '../../wire/control.ts'

/** The pause in milliseconds before a client without a trunk is asked again; its thread takes about 50 ms to start. */
const FIRST_PAUSE_MS = 100
/** The longest pause in milliseconds; pauses double up to it. */
const MAX_PAUSE_MS = 60_000

/** A link that lanes share. */
export interface OpenedTrunk {
  readonly link: Link
  readonly trunk: Trunk
}

export class SessionTrunk implements SessionLanes {
  readonly #session: Session
  readonly #accelerator: Pick<Accelerator, 'openTrunk'> | undefined
  #opened: OpenedTrunk | undefined
  #pauseMs = 0
  #notBefore = 0

  constructor(session: Session, accelerator: Pick<Accelerator, 'openTrunk'> | undefined = ofProcess) {
    this.#session = session
    this.#accelerator = accelerator
  }

  get current(): OpenedTrunk | undefined {
    return this.#opened?.link.isClosed === false ? this.#opened : undefined
  }

  isReady(): boolean {
    if (this.current !== undefined) return true
    this.request()
    return false
  }

  lend(
    stream: LendableStream,
    visitor: Socket,
    terms: LaneTerms,
    events: LaneEvents,
    left: (end: LaneEnd | undefined) => void,
  ): StreamLane {
    return new StreamLane(this.#session, this, stream, visitor, terms, events, left)
  }

  /** Asks for a trunk, unless the client was asked a short time ago, or said that it opens none. */
  request(): void {
    const now = eventLoop.now()
    if (now < this.#notBefore) return
    this.#pauseMs = Math.min(Math.max(2 * this.#pauseMs, FIRST_PAUSE_MS), MAX_PAUSE_MS)
    this.#notBefore = now + this.#pauseMs
    this.#session.sendControl(encodeControl({ type: 'trunk-wanted' }))
  }

  refused(retryMs: number | undefined): void {
    const notBefore = retryMs === undefined ? Number.POSITIVE_INFINITY : eventLoop.now() + retryMs
    this.#notBefore = Math.max(this.#notBefore, notBefore)
  }

  take(link: Link): boolean {
    if (this.current !== undefined) return false
    const trunk = link.lend(socket => this.#accelerator?.openTrunk(socket, false))
    if (trunk === undefined) return false
    this.#opened = { link, trunk }
    this.#pauseMs = 0
    this.#notBefore = 0
    return true
  }
}

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
