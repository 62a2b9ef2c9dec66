// The public port of TLS tunnels: reads which name a visitor asks for, and passes its bytes on as they are. The server
// has no key to any of them.

import type { ErrorCode } from '../../errors.ts'
import type { Endpoints, Socket, SocketHandler } from '../../socket.ts'
import { ClientHelloReader, internalErrorAlert, unrecognizedNameAlert } from '../../wire/client-hello.ts'
import type { Seat } from '../admission.ts'
import type { Deadline, Deadlines } from '../deadlines.ts'
import { HeadBuffer } from '../head-buffer.ts'
import { RawVisitor } from '../raw-visitor.ts'
import type { RawVisitHost } from '../raw-visits.ts'
import type { Tunnel } from '../tunnels.ts'

/** As for TCP tunnels: who is silent may still be there. */
const KEEP_ALIVE_MS = 60_000
/** How long a refused visitor has to take its alert, which a RST would destroy. */
const LINGER_MS = 2_000

/** What a TLS front needs of its server. */
export interface TlsFrontHost {
  readonly deadlines: Deadlines
  /** From the first byte possible to the last of the hello. Then the connection is cut. `0`: no bound. */
  readonly helloTimeoutMs: number
  /** Connections whose hello is not complete; above, the one that took longest is cut. */
  readonly maxHellos: number
  /** Connections of one tunnel at once; above, they are cut. */
  readonly maxVisitors: number
  readonly visits: RawVisitHost
  /** The TLS tunnel that has this name. */
  find(name: string): Tunnel | undefined
}

/** Takes over a connection that is for no TLS tunnel, with the bytes that were read already. */
export type Terminate = (socket: Socket, first: Uint8Array) => SocketHandler

export class TlsFront {
  readonly #host: TlsFrontHost
  /** In the order in which they came. */
  readonly #hellos = new Set<TlsConnection>()
  readonly #visitors = new Map<Tunnel, Set<RawVisitor>>()

  constructor(host: TlsFrontHost) {
    this.#host = host
  }

  /** `terminate`: for names of the server's own; without it they are as unknown as any other. */
  accept(socket: Socket, seat: Seat | undefined, terminate?: Terminate): SocketHandler {
    const connection = new TlsConnection(socket, {
      deadlines: this.#host.deadlines,
      read: (name, first) => {
        this.#hellos.delete(connection)
        const tunnel = name === undefined ? undefined : this.#host.find(name)
        if (tunnel !== undefined)
          return seat?.isRefused() ? undefined : this.#visit(tunnel, connection, first, seat)
        return terminate?.(socket, first)
      },
      closed: () => this.#hellos.delete(connection),
    })
    this.#hellos.add(connection)
    this.#host.deadlines.arm(connection, this.#host.helloTimeoutMs)
    // The oldest one is cut: the hello of an honest visitor arrives within a round trip.
    const [oldest] = this.#hellos
    if (this.#hellos.size > this.#host.maxHellos) oldest?.drop()
    return connection
  }

  /** Cuts those whose hello is not complete. Visitors are their tunnels' business. */
  stop(): void {
    for (const connection of [...this.#hellos]) connection.drop()
  }

  #visit(
    tunnel: Tunnel,
    connection: TlsConnection,
    first: Uint8Array,
    seat: Seat | undefined,
  ): SocketHandler {
    seat?.stay()
    connection.keepAlive(KEEP_ALIVE_MS)
    const visitors = this.#visitorsOf(tunnel)
    const visitor: RawVisitor = new RawVisitor(
      connection,
      tunnel,
      this.#host.visits,
      () => visitors.delete(visitor),
      first,
    )
    visitors.add(visitor)
    visitor.start(visitors.size > this.#host.maxVisitors ? 'TUNNEL_BUSY' : undefined)
    return visitor.socketHandler
  }

  /** The visitors of a tunnel; they go when it does. */
  #visitorsOf(tunnel: Tunnel): Set<RawVisitor> {
    const known = this.#visitors.get(tunnel)
    if (known !== undefined) return known
    const visitors = new Set<RawVisitor>()
    this.#visitors.set(tunnel, visitors)
    tunnel.front = {
      // The port is the server's.
      drain() {},
      release: () => void this.#visitors.delete(tunnel),
      stop: (code: ErrorCode) => {
        this.#visitors.delete(tunnel)
        for (const visitor of [...visitors]) visitor.cut(code)
      },
    }
    return visitors
  }
}

/** What a connection needs of its front. */
interface TlsConnectionHost {
  readonly deadlines: Deadlines
  /** The hello is there. Returns who goes on with the connection; `undefined`: the connection is refused. */
  read(name: string | undefined, first: Uint8Array): SocketHandler | undefined
  closed(): void
}

/** Reads the hello, then passes on every event; to the one behind it this is the socket. */
class TlsConnection implements SocketHandler, Socket, Deadline {
  readonly remoteAddress: string
  dueTick = 0
  readonly #socket: Socket
  readonly #host: TlsConnectionHost
  #reader: ClientHelloReader | undefined = new ClientHelloReader()
  readonly #held: HeadBuffer = new HeadBuffer()
  #visitor: SocketHandler | undefined
  /** The visitor was sent something: then an alert would be taken for a part of it. */
  #hasAnswered = false
  #isLeaving = false
  #isClosed = false

  constructor(socket: Socket, host: TlsConnectionHost) {
    this.#socket = socket
    this.#host = host
    this.remoteAddress = socket.remoteAddress
    host.deadlines.watch(this)
  }

  /** There is no hello, or it takes too long, or there are too many of them. */
  drop(): void {
    this.#reader = undefined
    this.#host.closed()
    this.#socket.terminate()
  }

  // ── From the socket ────────────────────────────────────────────────────────────────────────────────────────

  received(bytes: Uint8Array): void {
    if (this.#visitor !== undefined) return this.#isLeaving ? undefined : this.#visitor.received(bytes)
    // Refused or cut, but what had been read still arrives.
    if (this.#reader === undefined) return
    const verdict = this.#reader.receive(bytes)
    if (verdict.kind === 'more') return this.#held.add(bytes)
    this.#reader = undefined
    this.#host.deadlines.forget(this)
    if (verdict.kind === 'foreign' || verdict.kind === 'invalid') return this.drop()
    const first = this.#held.with(bytes)
    this.#visitor = this.#host.read(verdict.kind === 'name' ? verdict.name : undefined, first)
    this.#held.clear()
    if (this.#visitor === undefined) this.#leave(unrecognizedNameAlert())
  }

  drained(): void {
    this.#visitor?.drained()
  }

  ended(): void {
    if (this.#reader !== undefined) this.drop()
    else if (!this.#isLeaving) this.#visitor?.ended()
  }

  closed(error?: Error): void {
    this.#isClosed = true
    this.#reader = undefined
    this.#host.deadlines.forget(this)
    this.#host.closed()
    this.#visitor?.closed(error)
  }

  expired(): void {
    if (this.#isLeaving) this.#socket.terminate()
    else this.drop()
  }

  /** Says why, and closes. */
  #leave(alert: Uint8Array): void {
    this.#isLeaving = true
    this.#socket.write(alert)
    this.#socket.end()
    this.#socket.resume()
    this.#host.deadlines.watch(this)
    this.#host.deadlines.arm(this, LINGER_MS)
  }

  // ── To the socket ──────────────────────────────────────────────────────────────────────────────────────────

  write(bytes: Uint8Array, start?: number, end?: number): number {
    this.#hasAnswered = true
    return this.#socket.write(bytes, start, end)
  }

  end(): void {
    this.#socket.end()
  }

  /** A visitor that waits for its handshake gets an alert first. */
  terminate(): void {
    if (this.#hasAnswered || this.#isClosed || this.#isLeaving) this.#socket.terminate()
    else this.#leave(internalErrorAlert())
  }

  pause(): void {
    this.#socket.pause()
  }

  resume(): void {
    this.#socket.resume()
  }

  keepAlive(idleMs: number): void {
    this.#socket.keepAlive?.(idleMs)
  }

  endpoints(): Endpoints | undefined {
    return this.#socket.endpoints()
  }
}
