// The trunk of one session, at the client: dialled when the server asks for it; where that is not possible, the server learns
// when it may ask again.

import type { Accelerator, Trunk } from '../../accelerator.ts'
import { eventLoop } from '../../event-loop.ts'
import type { Link } from '../../session/link.ts'

/** Where a trunk is not possible now, the next try is after this long, and twice as long each time. */
const FIRST_PAUSE_MS = 50
const MAX_PAUSE_MS = 60_000

/** How a trunk reaches the server. */
export interface TrunkWay {
  /** The thread that lanes need; `undefined`: not here, or not now. Absent where bytes cannot be moved at all: over TLS. */
  readonly accelerator: (() => Promise<Accelerator | undefined>) | undefined
  /** Dials a link. `false`: not now. `opened`, if it succeeds, and `done` are called later. */
  dial(opened: (link: Link) => void, done: () => void): boolean
  /** Takes the link into use. */
  add(link: Link): void
  /** Tells the server that there will be no trunk before `retryMs`, or never. */
  refuse(retryMs: number | undefined): void
}

export class SessionTrunk {
  readonly #way: TrunkWay
  #opened: { readonly link: Link; readonly trunk: Trunk } | undefined
  #isDialling = false
  #notBefore = 0
  #pauseMs = FIRST_PAUSE_MS

  constructor(way: TrunkWay) {
    this.#way = way
  }

  /** The trunk on the link with this number. */
  on(link: number): Trunk | undefined {
    return this.#opened?.link.number === link ? this.#opened.trunk : undefined
  }

  /** The server asks for a trunk. */
  wanted(): void {
    // The wish and the trunk may meet on their way.
    if (this.#isDialling || this.#opened?.link.isClosed === false) return
    const { accelerator } = this.#way
    if (accelerator === undefined) return this.#way.refuse(undefined)
    const leftMs = this.#notBefore - eventLoop.now()
    if (leftMs > 0) return this.#way.refuse(Math.ceil(leftMs))
    this.#isDialling = true
    void accelerator().then(ready => this.#dial(ready))
  }

  #dial(accelerator: Accelerator | undefined): void {
    if (accelerator === undefined) this.#pause()
    const isDialling =
      accelerator !== undefined &&
      this.#way.dial(
        link => this.#use(link, accelerator),
        () => this.#dialled(),
      )
    if (!isDialling) this.#dialled()
  }

  #dialled(): void {
    this.#isDialling = false
    const leftMs = Math.ceil(this.#notBefore - eventLoop.now())
    if (this.#opened?.link.isClosed !== false) this.#way.refuse(Math.max(leftMs, FIRST_PAUSE_MS))
  }

  /** It is not possible now. */
  #pause(): void {
    this.#notBefore = eventLoop.now() + this.#pauseMs
    this.#pauseMs = Math.min(2 * this.#pauseMs, MAX_PAUSE_MS)
  }

  #use(link: Link, accelerator: Accelerator): void {
    const trunk = link.lend(socket => accelerator.openTrunk(socket, true))
    if (trunk === undefined) {
      this.#pause()
      return link.close()
    }
    this.#pauseMs = FIRST_PAUSE_MS
    this.#opened = { link, trunk }
    this.#way.add(link)
  }
}
