// One connection of Bun as a Socket. bun-reading.ts decides when it is read, and other threads may borrow it (lending.ts).

import { accelerator } from '../accelerator/door.ts'
import { free } from '../bytes.ts'
import type {
  AskedCertificate,
  Endpoints,
  LentWays,
  Loan,
  ServerHandshake,
  Socket,
  SocketHandler,
  Splice,
  SpliceDone,
} from '../socket.ts'
import { Reading, type Source } from './bun-reading.ts'
import { peerCertificate, type SecureContext } from './bun-tls.ts'
import { descriptorOf } from './descriptor.ts'
import { hasFarSide } from './far-side.ts'
import { failure } from './gate.ts'
import { type Lender, Lending } from './lending.ts'
import type { Securing } from './securing.ts'
import type { SessionSlot } from './tls-sessions.ts'
import { hasUnread } from './unread.ts'

export type RawSocket = Bun.Socket<Connection>

/** The listener of a connection. */
export interface Owner {
  /** The TLS context that replaces the listener's certificate. */
  context: SecureContext | undefined
  readonly admit: ((socket: Socket) => Pass | undefined) | undefined
  accept(socket: Socket, pass: Pass | undefined): SocketHandler
  failed(error: Error): void
  /** Whether `stop(true)` is closing connections. Bun reports that in the same way as FIN from the far side. */
  isCutting: boolean
  /** Returns the protocol for ALPN. `undefined` for none. */
  readonly chooseProtocol?: ((offered: readonly string[]) => string | undefined) | undefined
  /** Begins TLS on connections. `undefined` without TLS. */
  readonly securing: Securing | undefined
}

/** The dial of a connection, until that is open. */
export interface Dialling {
  resolve(connection: Connection): void
  reject(error: unknown): void
}

/** The place of a connection from `accept` on, before TLS: see `ListenOptions.admit`. */
export interface Pass {
  left(): void
}

/**
 * The size above which the array of a read is freed when its handler returns. The next read then uses memory that is
 * in the processor's caches; the collector would free it much later. The runtime allocates an array for each read,
 * except for parts of a shared one, which are not ours to free.
 */
const FREED_READ_BYTES = 8_192

/** The state of this side of the connection. */
type Near =
  | 'open'
  /** FIN was sent. */
  | 'ended'
  /** FIN was sent, the kernel sends the rest, and nothing is read any more. */
  | 'let go'
  | 'cut'

export class Connection implements Socket, Source, Lender {
  raw!: RawSocket // set by `open`, before anything but `wanted` has the connection
  handler: SocketHandler | undefined
  dialling: Dialling | undefined
  readonly mustVerify: boolean
  readonly owner: Owner | undefined
  pass: Pass | undefined
  /** The authorities for client certificates, as `ServerHandshake.clientCa`. */
  clientCa: string | undefined
  #asked: AskedCertificate | undefined
  /** The error that closes or will close the connection. `undefined` after FIN in both directions. */
  failure: Error | undefined
  /** Whether the dial was given up before the connection was open. */
  isUnwanted = false
  /** The pinned key of a dial, as in `TlsOptions`. */
  pin: string | undefined
  wantedProtocol: string | undefined
  /** The TLS session that a dial may resume, and the place for the next one. */
  tlsSession: SessionSlot | undefined
  /** Whether the connection has no TLS. */
  isPlain = false
  #near: Near = 'open'
  #hasFarSideEnded = false
  #isFarSideGone = false
  #wantsDrain = false
  readonly #reading = new Reading(this)
  /** The state of loans, from the first one on. */
  #lending: Lending | undefined

  constructor(handler?: SocketHandler, dialling?: Dialling, mustVerify = false, owner?: Owner) {
    this.handler = handler
    this.dialling = dialling
    this.mustVerify = mustVerify
    this.owner = owner
  }

  // ── Writing ────────────────────────────────────────────────────────────────────────────────────────────────

  write(bytes: Uint8Array, start = 0, end: number = bytes.length): number {
    const taken = this.raw.write(bytes, start, end - start)
    if (taken === end - start) return taken
    if (taken >= 0) {
      this.#wantsDrain = true
      return taken
    }
    if (this.#near === 'open') this.#farSideGone()
    return 0
  }

  drained(): void {
    if (!this.#wantsDrain) return
    this.#wantsDrain = false
    this.handler?.drained()
  }

  end(): void {
    if (this.#near !== 'open' || this.#lending?.putsEndOff()) return
    this.#near = 'ended'
    this.raw.shutdown()
  }

  get isCut(): boolean {
    return this.#near === 'cut' || this.#near === 'let go'
  }

  terminate(): void {
    if (this.isCut) return
    this.#near = 'cut'
    this.failure ??= failure('ECONNABORTED', 'the connection was cut by this side')
    this.#lending?.stop()
    this.raw.terminate()
  }

  letGo(): void {
    if (this.isCut) return
    if (this.#near === 'open' || this.isRead) return this.terminate()
    this.#near = 'let go'
    this.raw.end()
  }

  secure(first: Uint8Array, handshake: ServerHandshake): void {
    this.owner?.securing?.secure(this, first, handshake)
  }

  keepAlive(idleMs: number): void {
    // One probe per second and ten in total, as in Bun itself.
    this.raw.setKeepAlive(true, idleMs)
  }

  /**
   * Called when a write failed, which takes the error from the kernel. `close` follows only when the runtime has read
   * the remaining bytes, so the connection is read from now on, even if its handler has paused it.
   */
  #farSideGone(): void {
    this.failure ??= failure('EPIPE', 'the far side closed the connection')
    this.#isFarSideGone = true
    this.resume()
  }

  // ── Reading ────────────────────────────────────────────────────────────────────────────────────────────────

  received(bytes: Uint8Array): void {
    // Encrypted bytes of a connection on which TLS was begun.
    if (this.handler === undefined) return
    // Bun reads a broken connection even if it is paused, and the order with bytes of other threads is unknown.
    if (this.isRead) return this.broke()
    this.#reading.arrived(bytes.length)
    this.handler.received(bytes)
    if (bytes.length >= FREED_READ_BYTES && bytes.buffer.byteLength === bytes.length) free(bytes)
  }

  pause(): void {
    if (!this.#isFarSideGone) this.#reading.pause()
  }

  resume(): void {
    this.#reading.resume()
  }

  share(): void {
    this.#reading.isShared = true
  }

  readOn(): void {
    if (!this.isCut) this.#reading.readOn()
  }

  /** Called when Bun has read the far side's FIN. */
  farSideEnded(): void {
    if (this.#hasFarSideEnded || this.#lending?.putsFarEndOff()) return
    if (this.#isBroken) return this.broke()
    this.#hasFarSideEnded = true
    this.handler?.ended()
  }

  /** Whether the end that Bun read is a reset. One system call for each end, none for each read. */
  get #isBroken(): boolean {
    if (this.#near !== 'open') return false
    const descriptor = descriptorOf(this.raw)
    return descriptor !== undefined && !hasFarSide(descriptor)
  }

  get hasUnread(): boolean {
    const descriptor = descriptorOf(this.raw)
    return descriptor !== undefined && hasUnread(descriptor)
  }

  // ── Lending ────────────────────────────────────────────────────────────────────────────────────────────────

  get isRead(): boolean {
    return this.#lending?.isRead === true
  }

  get #maySplice(): boolean {
    return this.isPlain && this.handler?.spliceable !== undefined && accelerator?.isPossible === true
  }

  requestSplice(): boolean {
    if (!this.#maySplice) return false
    this.#reading.requestTurn()
    return true
  }

  spliceable(): void {
    if (this.#maySplice) this.handler?.spliceable?.()
  }

  spliceTo(to: Socket, limitBytes: number, done: SpliceDone): Splice | undefined {
    if (to === this) return undefined
    // The connection may be spliced before its first large read, and the kernel buffers most while nothing reads.
    this.#reading.bound()
    const pace = this.#reading.isBulk ? 'bulk' : 'prompt'
    return accelerator?.splice(this, to, limitBytes, pace, (movedBytes, leftover) => {
      this.#reading.isBulk = false
      done(movedBytes)
      if (leftover !== undefined && !this.isCut) this.handler?.received(leftover)
    })
  }

  get isLendable(): boolean {
    const isWhole = this.#near === 'open' && !this.#hasFarSideEnded && this.#lending?.isCloseDue !== true
    return isWhole && this.#maySplice && !this.#isUnix
  }

  lend(ways: LentWays, stop: () => void): Loan | undefined {
    if (!this.isPlain || this.#near !== 'open' || (ways === 'both' && !this.isLendable)) return undefined
    // After our FIN, the far side's FIN makes Bun read even if paused; the end of a unix socket always does.
    if (ways === 'reading' && this.#isUnix) return undefined
    const descriptor = descriptorOf(this.raw)
    if (descriptor === undefined) return undefined
    this.#lending ??= new Lending(this)
    return this.#lending.lend(ways, descriptor, stop)
  }

  get #isUnix(): boolean {
    return this.raw.remoteAddress === undefined
  }

  // ── The end ────────────────────────────────────────────────────────────────────────────────────────────────

  /** Called when TLS failed or a handler threw: the connection is unusable. */
  failed(error: Error): void {
    this.failure = error
    this.terminate()
    // Errors of the system have a code; errors of a handler have none.
    if (!('code' in error)) this.owner?.failed(error)
  }

  /** Called for a reset that Bun reported as something else. */
  broke(): void {
    this.failure ??= failure('ECONNRESET', 'the far side reset the connection')
    this.terminate()
  }

  lose(): void {
    this.failure ??= failure('EIO', 'bytes were lost with the thread that moved them')
    this.terminate()
  }

  closed(error?: Error): void {
    const { dialling } = this
    this.pass?.left()
    this.failure ??= error
    if (this.owner?.isCutting) this.failure ??= failure('ECONNABORTED', 'the server stopped')
    if (dialling !== undefined) {
      return dialling.reject(
        this.failure ?? failure('ECONNRESET', 'the connection closed during the TLS handshake'),
      )
    }
    if (this.#near === 'open')
      this.failure ??= failure('ECONNRESET', 'the connection closed before both sides ended')
    if (this.#lending?.putsCloseOff()) return
    // Later, so that the caller of `terminate` can finish first.
    if (this.isCut) queueMicrotask(() => this.reportClosed())
    else this.reportClosed()
  }

  reportClosed(): void {
    // Read late, because `accept` may cut a connection before it returns the handler.
    const { handler } = this
    if (handler === undefined) return
    // After our own FIN, Bun reports the far side's FIN only by closing.
    if (this.failure === undefined && !this.#hasFarSideEnded) handler.ended()
    handler.closed(this.failure)
  }

  get protocol(): string {
    // This is false without ALPN or null, whatever its type says.
    return this.raw.alpnProtocol || ''
  }

  get isCertified(): boolean {
    return this.raw.authorized === true
  }

  get asked(): AskedCertificate | undefined {
    const { clientCa } = this
    if (clientCa === undefined) return undefined
    this.#asked ??= { clientCa, certificate: this.isCertified ? peerCertificate(this.raw) : undefined }
    return this.#asked
  }

  // ── Addresses ──────────────────────────────────────────────────────────────────────────────────────────────

  get remoteAddress(): string {
    // Absent on a unix socket.
    return plain(this.raw.remoteAddress ?? '')
  }

  endpoints(): Endpoints | undefined {
    const { remoteAddress, remotePort, localAddress, localPort } = this.raw
    // Declared as always present, but absent on a unix socket and after a close.
    if (!remoteAddress || !localAddress) return undefined
    const far = { address: plain(remoteAddress), port: remotePort }
    const near = { address: plain(localAddress), port: localPort }
    return this.owner === undefined ? { source: near, destination: far } : { source: far, destination: near }
  }
}

/** Returns the IPv4 address of an IPv4 visitor on a dual-stack listener. */
function plain(address: string): string {
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address
}
