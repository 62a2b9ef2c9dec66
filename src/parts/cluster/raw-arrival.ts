// A raw connection in a cluster: joined to the tunnel of this server, or passed to the server with the tunnel. That
// server may change until bytes were sent, because the tunnel's client may be moving.

import type { Place } from '../../directory.ts'
import type { ErrorCode } from '../../errors.ts'
import { Join } from '../../join.ts'
import type { RawWish } from '../../server/contracts/raw-visit.ts'
import type { RawTaker } from '../../server/contracts/servers.ts'
import type { ByteStream, StreamHandler } from '../../session/byte-stream.ts'
import type { Endpoint, Socket, SocketHandler } from '../../socket.ts'
import type { Cluster } from './cluster.ts'

/** The number of servers tried for one connection. A client moves from one to another once. */
const MAX_SERVERS_TRIED = 3
const NOWHERE: Endpoint = { address: '0.0.0.0', port: 0 }

export class RawArrival implements SocketHandler {
  readonly #socket: Socket
  readonly #wish: RawWish
  readonly #cluster: Cluster
  readonly #raw: RawTaker
  readonly #first: Uint8Array | undefined
  /** The handler of the connection's events once it is joined. */
  #way: SocketHandler | undefined
  #stopWaiting: (() => void) | undefined
  #tries = 0
  /** The beginning of the wait, on the clock of `performance.now()`; 0 for none. */
  #waitsSince = 0
  #hasEnded = false
  #isClosed = false
  #isElsewhere = false

  constructor(socket: Socket, wish: RawWish, cluster: Cluster, raw: RawTaker, first: Uint8Array | undefined) {
    this.#socket = socket
    this.#wish = wish
    this.#cluster = cluster
    this.#raw = raw
    this.#first = first
  }

  start(): void {
    const tunnel = this.#wish.find()
    if (tunnel === undefined) return this.#seek()
    const way = { first: this.#first, moved: () => this.#moved() }
    const visitor = this.#raw.take(this.#socket, tunnel, way)
    this.#way = visitor.socketHandler
    if (this.#hasEnded) this.#way.ended()
    visitor.start()
  }

  /** Called when the tunnel here lost its client to another server. */
  #moved(): void {
    this.#way = undefined
    this.#seek()
  }

  // ── To another server ──────────────────────────────────────────────────────────────────────────────────────

  #seek(): void {
    this.#socket.pause()
    const found = this.#cluster.find(this.#wish.name)
    if (found === undefined) return this.#cut()
    if (!(found instanceof Promise)) return this.#go(found)
    let isOver = false
    this.#stopWaiting = () => {
      isOver = true
    }
    const go = (nodes: readonly Place[]): void => {
      if (isOver) return
      this.#stopWaiting = undefined
      this.#go(nodes)
    }
    void found.then(go, () => {
      if (!isOver) this.#cut()
    })
  }

  #go(nodes: readonly Place[]): void {
    const handler: StreamHandler = {
      received() {},
      writable() {},
      ended() {},
      reset: code => this.#failed(code),
    }
    const stream = this.#cluster.pass(nodes, this.#passenger(), handler, {
      opened: () => {
        if (stream !== undefined && typeof stream !== 'string') this.#join(stream)
      },
    })
    if (stream === undefined) return this.#await()
    if (typeof stream === 'string') return this.#cut()
    if (!this.#isElsewhere) this.#raw.passing(1)
    this.#isElsewhere = true
    this.#stopWaiting = () => stream.reset('CANCELLED')
  }

  #passenger() {
    const ends = this.#socket.endpoints()
    const source = ends?.source ?? { ...NOWHERE, address: this.#socket.remoteAddress || NOWHERE.address }
    return { ...this.#wish, endpoints: { source, destination: ends?.destination ?? NOWHERE } }
  }

  /** Called when the other server has joined the visitor to the tunnel's client. */
  #join(stream: ByteStream): void {
    this.#stopWaiting = undefined
    const join = new Join('CANCELLED', true)
    this.#way = join.socketHandler
    stream.handler = join
    join.useSocket(this.#socket)
    if (this.#first !== undefined) stream.write(this.#first)
    join.useStream(stream)
    if (this.#hasEnded) this.#way.ended()
    this.#socket.resume()
  }

  /** Called when the other server refuses the visitor, of which nothing was sent. */
  #failed(code: ErrorCode): void {
    this.#stopWaiting = undefined
    if (code === 'GUARD_REFUSED' || ++this.#tries > MAX_SERVERS_TRIED) return this.#cut()
    if (code === 'CLUSTER_MOVED') this.#cluster.forget(this.#wish.name)
    this.#await()
  }

  /** Waits until a server with the tunnel can be reached, this one or another. */
  #await(): void {
    const again = (): void => {
      this.#stopWaiting = undefined
      if (this.#wish.find() !== undefined) this.#socket.resume()
      this.start()
    }
    this.#waitsSince ||= performance.now()
    const { name } = this.#wish
    this.#stopWaiting = this.#cluster.awaitName(name, this.#waitsSince, again, () => this.#cut())
    if (this.#stopWaiting === undefined) this.#cut()
  }

  #cut(): void {
    this.#stopWaiting = undefined
    this.#socket.terminate()
  }

  // ── From the connection ────────────────────────────────────────────────────────────────────────────────────

  received(bytes: Uint8Array): void {
    this.#way?.received(bytes)
  }

  drained(): void {
    this.#way?.drained()
  }

  spliceable(): void {
    this.#way?.spliceable?.()
  }

  ended(): void {
    this.#hasEnded = true
    this.#way?.ended()
  }

  closed(error?: Error): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#stopWaiting?.()
    this.#way?.closed(error)
    if (this.#isElsewhere) this.#raw.passing(-1)
  }
}
