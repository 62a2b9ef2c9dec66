// The trunk of one session at the server: the link that its client opened for lanes, and when to ask for one.

import { accelerator as ofProcess } from '../../accelerator/door.ts'
import type { Accelerator, LaneEnd, LaneTerms, Trunk } from '../../accelerator.ts'
import { eventLoop } from '../../event-loop.ts'
import type { LaneEvents } from '../../server/contracts/lane.ts'
import type { SessionLanes } from '../../server/contracts/laning.ts'
import type { LendableStream } from '../../session/byte-stream.ts'
import type { Link } from '../../session/link.ts'
import type { Session } from '../../session/session.ts'
import type { Socket } from '../../socket.ts'
import { encodeControl } from '../../wire/control.ts'
import { StreamLane } from './stream-lane.ts'

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
