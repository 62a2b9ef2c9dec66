// The trunk of one session at the client, dialled when the server asks for it. If that fails, the server is notified when
// it may ask again.

import type { Accelerator, LaneHandler, Trunk } from '../../../accelerator.ts'
import type { SessionLanes, TrunkLinks } from '../../../client/contracts/laning.ts'
import { eventLoop } from '../../../event-loop.ts'
import { Join } from '../../../join.ts'
import type { StreamHandler } from '../../../session/byte-stream.ts'
import type { Link } from '../../../session/link.ts'
import type { Session } from '../../../session/session.ts'
import { encodeControl } from '../../../wire/control.ts'

/** The first pause in milliseconds after a failed trunk; it doubles each time. */
const FIRST_PAUSE_MS = 50
const MAX_PAUSE_MS = 60_000

/** Returns the accelerator once it runs. `undefined` if it is impossible here, or now. */
type ReadyAccelerator = () => Promise<Accelerator | undefined>

export class SessionTrunk implements SessionLanes {
  readonly #session: Session
  readonly #links: TrunkLinks
  readonly #accelerator: ReadyAccelerator
  readonly #joins = new WeakMap<Join, JoinLane>()
  #opened: { readonly link: Link; readonly trunk: Trunk } | undefined
  #isDialling = false
  #notBefore = 0
  #pauseMs = FIRST_PAUSE_MS

  constructor(session: Session, links: TrunkLinks, accelerator: ReadyAccelerator = readyAccelerator) {
    this.#session = session
    this.#links = links
    this.#accelerator = accelerator
  }

  on(link: number): Trunk | undefined {
    return this.#opened?.link.number === link ? this.#opened.trunk : undefined
  }

  begin(handler: StreamHandler | undefined, link: number, lane: number): void {
    const trunk = this.on(link)
    // Lost since. The server notices that itself.
    if (trunk === undefined) return
    if (!(handler instanceof Join)) return trunk.refuse(lane, { over() {}, more() {}, back() {} })
    const joined = this.#joins.get(handler) ?? new JoinLane(handler)
    this.#joins.set(handler, joined)
    joined.begin(trunk, lane)
  }

  wanted(): void {
    // The request and the trunk may have crossed in transit.
    if (this.#isDialling || this.#opened?.link.isClosed === false) return
    // The threads cannot use TLS.
    if (!this.#links.isPlain) return this.#refuse(undefined)
    const leftMs = this.#notBefore - eventLoop.now()
    if (leftMs > 0) return this.#refuse(Math.ceil(leftMs))
    this.#isDialling = true
    void this.#accelerator().then(ready => this.#dial(ready))
  }

  #dial(accelerator: Accelerator | undefined): void {
    if (accelerator === undefined) this.#pause()
    const isDialling =
      accelerator !== undefined &&
      this.#links.dial(
        link => this.#use(link, accelerator),
        () => this.#dialled(),
      )
    if (!isDialling) this.#dialled()
  }

  #dialled(): void {
    this.#isDialling = false
    const leftMs = Math.ceil(this.#notBefore - eventLoop.now())
    if (this.#opened?.link.isClosed !== false) this.#refuse(Math.max(leftMs, FIRST_PAUSE_MS))
  }

  /** Refuses trunks before `retryMs`, or for good. */
  #refuse(retryMs: number | undefined): void {
    const message = { type: 'no-trunk', ...(retryMs !== undefined && { retryMs }) } as const
    this.#session.sendControl(encodeControl(message))
  }

  /** Refuses trunks for a while. */
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
    this.#links.add(link, true)
  }
}

/** Returns the accelerator once its thread for lanes runs. `undefined` if it is impossible here, or now. */
export async function readyAccelerator(): Promise<Accelerator | undefined> {
  if (!('Bun' in globalThis)) return undefined
  const { accelerator } = await import('../../../accelerator/door.ts')
  return (await accelerator?.ready()) ? accelerator : undefined
}

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
