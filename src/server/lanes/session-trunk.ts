// The trunk of one session: the link that its client opened for lanes, and when the client is asked for one.

import { accelerator as ofProcess } from '../../accelerator/door.ts'
import type { Accelerator, Trunk } from '../../accelerator.ts'
import { eventLoop } from '../../event-loop.ts'
import type { Link } from '../../session/link.ts'

/** A client that brings no trunk is asked again after this long: its thread takes some 50 ms to start. */
const FIRST_PAUSE_MS = 100
/** Twice as long each time, up to this. */
const MAX_PAUSE_MS = 60_000

/** A link that lanes share. */
export interface OpenedTrunk {
  readonly link: Link
  readonly trunk: Trunk
}

export class SessionTrunk {
  readonly #ask: () => void
  readonly #accelerator: Pick<Accelerator, 'openTrunk'> | undefined
  #opened: OpenedTrunk | undefined
  #pauseMs = 0
  #notBefore = 0

  /** `ask`: sends the client the wish for one. */
  constructor(ask: () => void, accelerator: Pick<Accelerator, 'openTrunk'> | undefined = ofProcess) {
    this.#ask = ask
    this.#accelerator = accelerator
  }

  get current(): OpenedTrunk | undefined {
    return this.#opened?.link.isClosed === false ? this.#opened : undefined
  }

  /** Asks for a trunk, unless the client was asked a moment ago, or has said that it opens none. */
  request(): void {
    const now = eventLoop.now()
    if (now < this.#notBefore) return
    this.#pauseMs = Math.min(Math.max(2 * this.#pauseMs, FIRST_PAUSE_MS), MAX_PAUSE_MS)
    this.#notBefore = now + this.#pauseMs
    this.#ask()
  }

  /** The client opens none; it may be asked again after `retryMs`, or never. */
  refused(retryMs: number | undefined): void {
    const notBefore = retryMs === undefined ? Number.POSITIVE_INFINITY : eventLoop.now() + retryMs
    this.#notBefore = Math.max(this.#notBefore, notBefore)
  }

  /** The client opened a link for lanes, which has carried nothing. `false`: it cannot be used. */
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
