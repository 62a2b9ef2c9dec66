// Opens links in addition to the carrier for large transfers, and closes unused ones.

import { deferred } from '../../deferred.ts'
import { eventLoop } from '../../event-loop.ts'
import { Link } from '../../session/link.ts'
import type { Session } from '../../session/session.ts'
import type { Dial, Socket, SocketHandler } from '../../socket.ts'
import { encodeControl } from '../../wire/control.ts'
import { LINK_PROTOCOL } from '../../wire/frame.ts'
import { endOfHead, MAX_ANSWER_HEAD_BYTES, parseAnswerHead } from '../../wire/handshake.ts'
import type { TrunkLinks } from '../contracts/laning.ts'
import type { ServerAddress } from './server-address.ts'

/** The number of dials at once. More could look like an attack to the server. */
const MAX_DIALLING = 4
/** The time in milliseconds after which an unused link closes. */
const IDLE_MS = 30_000
/** The time in milliseconds before a server that refused a link is asked again. A proxy may have refused it. */
const REFUSED_MS = 60_000
/** The time in milliseconds for the server's response. */
const ANSWER_MS = 10_000

/** How links reach the server. */
export interface LinkWay {
  readonly server: ServerAddress
  readonly dial: Dial
  /** The number of large transfers at once that have links of their own. */
  readonly maxLinks: number
}

export class Links implements TrunkLinks {
  readonly #session: Session
  readonly #way: LinkWay | undefined
  #secret: string | undefined
  #nextNumber = 1
  #dialling = 0
  #refusedUntil = 0
  #cancelSweep: (() => void) | undefined
  readonly #stopping = new AbortController()
  #idle = new Set<Link>()

  /** Makes the links. `way` is `undefined` if only the carrier's own connection can reach the server. */
  constructor(session: Session, way: LinkWay | undefined) {
    this.#session = session
    this.#way = way
  }

  /** Allows links: the server accepts those that show this secret. */
  allow(secret: string | undefined): void {
    if (this.#way !== undefined && this.#way.maxLinks > 0) this.#secret = secret
  }

  /** Opens another link for a large transfer of either side, if links are allowed and more of them help. */
  want(): void {
    this.dial(link => this.add(link, false))
  }

  get isPlain(): boolean {
    return this.#way !== undefined && this.#way.server.address.tls === undefined
  }

  add(link: Link, isTrunk: boolean): void {
    this.#session.links.add(link)
    if (link.isClosed) return
    const { number } = link
    this.#session.sendControl(
      encodeControl({ type: 'linked', link: number, ...(isTrunk && { trunk: true }) }),
    )
    this.#cancelSweep ??= this.#planSweep()
  }

  dial(opened: (link: Link) => void, done: () => void = () => {}): boolean {
    const secret = this.#secret
    const way = this.#way
    if (way === undefined || secret === undefined || this.#session.isClosed) return false
    if (eventLoop.now() < this.#refusedUntil || this.#dialling >= MAX_DIALLING) return false
    if (this.#session.links.size + this.#dialling >= way.maxLinks) return false
    void this.#open(way, secret, opened).finally(done)
    return true
  }

  close(): void {
    this.#secret = undefined
    this.#stopping.abort()
    this.#cancelSweep?.()
  }

  async #open({ dial, server }: LinkWay, secret: string, opened: (link: Link) => void): Promise<void> {
    this.#dialling++
    const number = this.#nextNumber++
    try {
      const { signal } = this.#stopping
      const link = await openLink({
        dial,
        number,
        secret,
        server,
        session: this.#session,
        signal,
      })
      opened(link)
    } catch {
      // Large transfers stay on the carrier, as they do behind a proxy that only knows WebSockets.
      this.#refusedUntil = eventLoop.now() + REFUSED_MS
    } finally {
      this.#dialling--
    }
  }

  #planSweep(): () => void {
    return eventLoop.after(IDLE_MS, () => {
      this.sweep()
      this.#cancelSweep = this.#session.links.size > 0 ? this.#planSweep() : undefined
    })
  }

  /** Retires the links that were also idle at the last sweep. The server closes them, because it may be about to use one. */
  sweep(): void {
    const idle = new Set<Link>()
    for (const link of this.#session.links.values()) {
      if (!link.isIdle) continue
      idle.add(link)
      if (!this.#idle.has(link) || link.isRetired) continue
      link.isRetired = true
      this.#session.sendControl(encodeControl({ type: 'link-retired', link: link.number }))
    }
    this.#idle = idle
  }
}

interface LinkDial {
  readonly dial: Dial
  readonly number: number
  readonly secret: string
  readonly server: ServerAddress
  readonly session: Session
  readonly signal: AbortSignal
}

/** Connects to the server and turns the connection into a link. Rejects if the server refuses. */
async function openLink({ dial, number, secret, server, session, signal }: LinkDial): Promise<Link> {
  const { promise, resolve, reject } = deferred<Link>()
  const dialling = new AbortController()
  const refused = () => {
    reject(new Error('the server gave no link'))
    dialling.abort()
  }
  const cancelTimeout = eventLoop.after(ANSWER_MS, refused)
  signal.addEventListener('abort', refused)
  let received = Buffer.alloc(0)
  let socket: Socket | undefined
  let inner: SocketHandler | undefined
  const handler: SocketHandler = {
    received(bytes) {
      if (inner !== undefined) return inner.received(bytes)
      received = Buffer.concat([received, bytes])
      const end = endOfHead(received)
      if (end === -1 && received.length < MAX_ANSWER_HEAD_BYTES) return
      const head = end === -1 ? undefined : parseAnswerHead(received.subarray(0, end))
      if (socket === undefined || head?.status !== 101 || head.headers.get('upgrade') !== LINK_PROTOCOL) {
        return refused()
      }
      const link = new Link(number, socket, session.links)
      inner = link.socketHandler
      resolve(link)
      if (end < received.length) inner.received(received.subarray(end))
    },
    drained: () => inner?.drained(),
    spliceable: () => inner?.spliceable?.(),
    ended: () => (inner === undefined ? refused() : inner.ended()),
    closed: error => (inner === undefined ? refused() : inner.closed(error)),
  }
  const dialled = dial(server.address, handler, dialling.signal)
  dialled.then(up => {
    socket = up
    up.write(encoder.encode(requestFor(number, secret, server)))
  }, refused)
  try {
    return await promise
  } catch (error) {
    // A connection that opens later is closed as well.
    dialled.then(
      up => up.terminate(),
      () => {}, // reported above
    )
    throw error
  } finally {
    cancelTimeout()
    signal.removeEventListener('abort', refused)
  }
}

const encoder = new TextEncoder()

function requestFor(number: number, secret: string, server: ServerAddress): string {
  return `GET ${server.path}/ HTTP/1.1\r\nHost: ${server.host}\r\nConnection: Upgrade\r\nUpgrade: ${LINK_PROTOCOL}\r\nAuthorization: Link ${secret} ${number}\r\n\r\n`
}
