// A connection from a trusted proxy: its PROXY header is read first, then it continues with the visitor's address.

import { TunnelError } from '../../errors.ts'
import type { Clock, Deadline } from '../../server/contracts/clock.ts'
import type { AdmittedVisitor } from '../../server/contracts/protocol.ts'
import type { AskedCertificate, Endpoints, ServerHandshake, Socket, SocketHandler } from '../../socket.ts'
import { type ProxyHeader, ProxyHeaderReader } from './header.ts'

/** The operations that a front provides for connections with PROXY headers. */
export interface ProxiedHost {
  readonly deadlines: Clock
  /**
   * The time in milliseconds from the first possible byte to the last of the header. Then the connection is cut. `0`: no limit.
   */
  readonly headerTimeoutMs: number
  /** Whether connections from this address begin with a header. */
  isTrusted(address: string): boolean
  /**
   * Takes the connection. `socket.remoteAddress` is the visitor's, or the proxy's own if the header names no address.
   * Without a header it is a direct connection.
   */
  accept(
    socket: Socket,
    header: ProxyHeader | undefined,
    admitted: AdmittedVisitor | undefined,
  ): SocketHandler
  /** Called when a trusted proxy sent no valid header: `PROXY_HEADER_INVALID`. Its connection is cut. */
  failed(error: TunnelError): void
}

/**
 * Takes a connection of a listening socket. A trusted address must send a header, and no other may. If the bytes
 * decided, visitors behind a trusted proxy that sends no headers could send their own.
 */
export function acceptProxied(socket: Socket, host: ProxiedHost, admitted?: AdmittedVisitor): SocketHandler {
  if (!host.isTrusted(socket.remoteAddress)) return host.accept(socket, undefined, admitted)
  return new ProxiedConnection(socket, host, admitted)
}

/** A connection with other addresses than the socket below it, to which everything else is passed. */
abstract class StandIn implements Socket {
  abstract readonly remoteAddress: string
  protected readonly socket: Socket

  constructor(socket: Socket) {
    this.socket = socket
  }

  abstract endpoints(): Endpoints | undefined

  get isCertified(): boolean {
    return this.socket.isCertified === true
  }

  get asked(): AskedCertificate | undefined {
    return this.socket.asked
  }

  get protocol(): string {
    return this.socket.protocol ?? ''
  }

  write(bytes: Uint8Array, start?: number, end?: number): number {
    return this.socket.write(bytes, start, end)
  }

  end(): void {
    this.socket.end()
  }

  terminate(): void {
    this.socket.terminate()
  }

  letGo(): void {
    if (this.socket.letGo === undefined) this.socket.terminate()
    else this.socket.letGo()
  }

  pause(): void {
    this.socket.pause()
  }

  resume(): void {
    this.socket.resume()
  }
}

/** Reads the header, then passes on every event, as the socket of the handler behind it. */
class ProxiedConnection extends StandIn implements SocketHandler, Deadline {
  remoteAddress: string
  dueTick = 0
  readonly #host: ProxiedHost
  readonly #admitted: AdmittedVisitor | undefined
  #reader: ProxyHeaderReader | undefined = new ProxyHeaderReader()
  #visitor: SocketHandler | undefined
  #hasBegun = false
  #endpoints: Endpoints | undefined

  constructor(socket: Socket, host: ProxiedHost, admitted: AdmittedVisitor | undefined) {
    super(socket)
    this.#host = host
    this.#admitted = admitted
    this.remoteAddress = socket.remoteAddress
    host.deadlines.watch(this)
    host.deadlines.arm(this, host.headerTimeoutMs)
  }

  // ── From the socket ────────────────────────────────────────────────────────────────────────────────────────

  received(bytes: Uint8Array): void {
    if (this.#visitor !== undefined) return this.#visitor.received(bytes)
    // The connection was cut, but bytes that were already read still arrive.
    if (this.#reader === undefined) return
    this.#hasBegun = true
    const verdict = this.#reader.receive(bytes)
    if (verdict.kind === 'more') return
    if (verdict.kind === 'absent') return this.#refuse('begins with something else')
    if (verdict.kind === 'invalid') return this.#refuse(`has one in which ${verdict.reason}`)
    this.#goOn(verdict.header, verdict.rest)
  }

  drained(): void {
    this.#visitor?.drained()
  }

  ended(): void {
    if (this.#visitor !== undefined) return this.#visitor.ended()
    // A connection without a byte was a check whether the port is open.
    if (this.#hasBegun) this.#refuse('ends within it')
    else this.socket.terminate()
  }

  closed(error?: Error): void {
    this.#reader = undefined
    this.#host.deadlines.forget(this)
    this.#visitor?.closed(error)
  }

  expired(): void {
    if (this.#hasBegun) this.#refuse(`did not finish it in ${this.#host.headerTimeoutMs} ms`)
    else this.socket.terminate()
  }

  #goOn(header: ProxyHeader, rest: Uint8Array): void {
    if (header.route?.transport === 'udp') return this.#refuse('has one for UDP')
    this.#reader = undefined
    this.#host.deadlines.forget(this)
    if (header.route !== undefined) this.remoteAddress = header.route.source.address
    this.#endpoints = header.route
    // The proxy's own connections are not counted by address; those of visitors behind it are.
    if (header.route !== undefined && this.#admitted?.moveTo(this.remoteAddress) === false)
      return this.socket.terminate()
    this.#visitor = this.#host.accept(this, header, this.#admitted)
    if (rest.length > 0) this.#visitor.received(rest)
  }

  #refuse(what: string): void {
    if (this.#reader === undefined) return
    this.#reader = undefined
    // No response, because the protocol after the header is unknown.
    this.socket.terminate()
    this.#host.failed(
      new TunnelError(
        'PROXY_HEADER_INVALID',
        `A connection from ${this.remoteAddress}, which should begin with a PROXY header, ${what}.`,
      ),
    )
  }

  // ── To the socket ──────────────────────────────────────────────────────────────────────────────────────────

  endpoints(): Endpoints | undefined {
    return this.#endpoints ?? this.socket.endpoints()
  }

  secure(first: Uint8Array, handshake: ServerHandshake): void {
    const accept = (secured: Socket) => handshake.accept(new Decrypted(secured, this))
    this.socket.secure?.(first, { ...handshake, accept })
  }
}

/** The decrypted side of a connection, with the address in the header. */
class Decrypted extends StandIn {
  readonly remoteAddress: string
  readonly #proxied: Socket

  constructor(socket: Socket, proxied: Socket) {
    super(socket)
    this.#proxied = proxied
    this.remoteAddress = proxied.remoteAddress
  }

  endpoints(): Endpoints | undefined {
    return this.#proxied.endpoints()
  }
}
