// TLS on a connection whose hello was read already. Bun takes no bytes back, so they go once more over the loopback, to
// a listener of this process that speaks TLS.
//
//   visitor ═ TLS ═ front (reads the name) ═ TLS ═ 127.0.0.1:any ─ HTTP ─ VisitorConnection
//
// The port that the connection comes from says whose it is. Other ways and why not: docs/decisions/021-tls-tunnels.md.

import type { Endpoints, Socket, SocketHandler } from '../socket.ts'
import { dialBun, type Listening, listenBun, type ServerTls } from '../sockets/bun.ts'
import { Unsent } from '../unsent.ts'
import { StandIn } from './stand-in.ts'

type Accept = (socket: Socket) => SocketHandler

const LOOPBACK = '127.0.0.1'
/** Nobody's: connections that did not come from here. */
const NOBODY: SocketHandler = { received() {}, drained() {}, ended() {}, closed() {} }

export class TlsHop {
  readonly #listening: Listening
  /** Under way, by the port that they come from. */
  readonly #crossings = new Map<number, Crossing>()

  /** Throws what the certificate or the system has against it. */
  constructor(tls: ServerTls, failed: (error: Error) => void) {
    this.#listening = listenBun({ hostname: LOOPBACK, tls, failed, accept: socket => this.#arrived(socket) })
  }

  /** Takes a connection with its first bytes; `accept` gets what it says inside of TLS. */
  enter(visitor: Socket, first: Uint8Array, accept: Accept): SocketHandler {
    const crossing = new Crossing(visitor, first, accept)
    void crossing.begin(this.#listening.port, this.#crossings)
    return crossing.outer
  }

  prepareTls(tls: ServerTls): Promise<() => void> {
    return this.#listening.prepareTls(tls)
  }

  stop(closeActive: boolean): void {
    this.#listening.stop(closeActive)
  }

  #arrived(socket: Socket): SocketHandler {
    const port = socket.endpoints()?.source.port ?? 0
    const crossing = this.#crossings.get(port)
    if (crossing === undefined) {
      socket.terminate()
      return NOBODY
    }
    // From now on another one may come from this port.
    this.#crossings.delete(port)
    return crossing.accept(new Arrived(socket, crossing.visitor))
  }
}

/** One connection of a visitor and the one over the loopback, joined: bytes, ends and resets of each reach the other. */
class Crossing {
  readonly visitor: Socket
  readonly accept: Accept
  /** What the events of the visitor's socket go to. */
  readonly outer: SocketHandler
  readonly #inward = new Way()
  readonly #outward = new Way()
  readonly #giveUp = new AbortController()
  #near: Socket | undefined

  constructor(visitor: Socket, first: Uint8Array, accept: Accept) {
    this.visitor = visitor
    this.accept = accept
    visitor.pause()
    this.#inward.from = visitor
    this.#outward.to = visitor
    this.#inward.send(first)
    this.outer = {
      received: bytes => this.#inward.send(bytes),
      drained: () => this.#outward.drained(),
      ended: () => this.#inward.end(),
      closed: error => {
        this.#giveUp.abort()
        if (error !== undefined || !this.#outward.isDone) this.#near?.terminate()
      },
    }
  }

  async begin(port: number, crossings: Map<number, Crossing>): Promise<void> {
    let ownPort = 0
    const inner: SocketHandler = {
      received: bytes => this.#outward.send(bytes),
      drained: () => this.#inward.drained(),
      ended: () => this.#outward.end(),
      closed: error => {
        if (crossings.get(ownPort) === this) crossings.delete(ownPort)
        if (error !== undefined || !this.#inward.isDone) this.visitor.terminate()
      },
    }
    const { signal } = this.#giveUp
    try {
      const near = await dialBun({ host: LOOPBACK, port }, inner, signal)
      if (signal.aborted) return near.terminate()
      ownPort = near.endpoints()?.source.port ?? 0
      crossings.set(ownPort, this)
      this.#near = near
      this.#outward.from = near
      this.#inward.to = near
      this.#inward.drained()
    } catch {
      // The system has no port or descriptor left, or the visitor is gone: either way this is its end.
      this.visitor.terminate()
    }
  }
}

/** Bytes one way. What the far socket does not take stops the near one. */
class Way {
  from: Socket | undefined
  to: Socket | undefined
  readonly #unsent: Unsent = new Unsent()
  #hasEnded = false

  /** All of it went on its way, and there is no more. */
  get isDone(): boolean {
    return this.#hasEnded && this.#unsent.isEmpty
  }

  send(bytes: Uint8Array): void {
    if (this.to === undefined) return this.#unsent.keep(bytes)
    if (this.#unsent.send(this.to, bytes) < bytes.length) this.from?.pause()
  }

  end(): void {
    this.#hasEnded = true
    if (this.#unsent.isEmpty) this.to?.end()
  }

  drained(): void {
    if (this.to === undefined) return
    this.#unsent.flush(this.to)
    if (!this.#unsent.isEmpty) return
    if (this.#hasEnded) this.to.end()
    else this.from?.resume()
  }
}

/** The plain side: it belongs to the visitor, wherever it came from last. */
class Arrived extends StandIn {
  readonly remoteAddress: string
  readonly #visitor: Socket

  constructor(socket: Socket, visitor: Socket) {
    super(socket)
    this.#visitor = visitor
    this.remoteAddress = visitor.remoteAddress
  }

  endpoints(): Endpoints | undefined {
    return this.#visitor.endpoints()
  }
}
