// One connection of Bun behind the contract of socket.ts. It is read as reading says (bun-reading.ts), and other threads may
// have it for a while (lending.ts).

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

/** The listening side of a connection. */
export interface Owner {
  /** The context in place of the certificate of the listener. */
  context: SecureContext | undefined
  readonly admit: ((socket: Socket) => Pass | undefined) | undefined
  accept(socket: Socket, pass: Pass | undefined): SocketHandler
  failed(error: Error): void
  /** Whether `stop(true)` is closing connections: without FIN from the far side, which Bun does not distinguish. */
  isCutting: boolean
  /** Returns the choice of ALPN. `undefined` for no choice. */
  readonly chooseProtocol?: ((offered: readonly string[]) => string | undefined) | undefined
  /** The start of TLS. `undefined` without TLS. */
  readonly securing: Securing | undefined
}

/** The dialling side of a connection, until it is up. */
export interface Dialling {
  resolve(connection: Connection): void
  reject(error: unknown): void
}

/** The facts about a connection from `accept` on, before TLS: see `ListenOptions.admit`. */
export interface Pass {
  left(): void
}

/**
 * The array of a read of this length is freed when its handler returns: the next read uses the memory while the processor has it in its
 * caches, and the collector would free it much later. The runtime reads into an array of its own each time; a part
 * of a shared one is not the connection's to free.
 */
const FREED_READ_BYTES = 8_192

/** The state of this side of the connection. */
type Near =
  | 'open'
  /** The state after FIN was sent. */
  | 'ended'
  /** The state after FIN in which the kernel sends what it has, and nothing is read any more. */
  | 'let go'
  | 'cut'

export class Connection implements Socket, Source, Lender {
  raw!: RawSocket // set by `open`, before anything but `wanted` has the connection
  handler: SocketHandler | undefined
  dialling: Dialling | undefined
  readonly mustVerify: boolean
  readonly owner: Owner | undefined
  pass: Pass | undefined
  /** The authorities, as `ServerHandshake.clientCa`. */
  clientCa: string | undefined
  #asked: AskedCertificate | undefined
  /** The error that closes or will close the connection. `undefined` for FIN in both directions. */
  failure: Error | undefined
  /** The dialling side gave up before it was up. */
  isUnwanted = false
  /** The pin of a dial, as in `TlsOptions`. */
  pin: string | undefined
  wantedProtocol: string | undefined
  /** The TLS session that a dial may resume, and the place for the next one. */
  tlsSession: SessionSlot | undefined
  /** No TLS: what is read is what was sent. */
  isPlain = false
  #near: Near = 'open'
  #hasFarSideEnded = false
  #isFarSideGone = false
  #wantsDrain = false
  readonly #reading = new Reading(this)
  /** The loan, after the first one. */
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
    // A probe a second and ten of them: that is Bun's own choice.
    this.raw.setKeepAlive(true, idleMs)
  }

  /**
   * A write failed, which takes the error away from the kernel: `close` follows only when the runtime has read what is
   * left. So the connection is read from now on, also when its handler pauses it.
   */
  #farSideGone(): void {
    this.failure ??= failure('EPIPE', 'the far side closed the connection')
    this.#isFarSideGone = true
    this.resume()
  }

  // ── Reading ────────────────────────────────────────────────────────────────────────────────────────────────

  received(bytes: Uint8Array): void {
    // Encrypted bytes, below a TLS connection that was begun on this one.
    if (this.handler === undefined) return
    // Bun reads a paused connection that broke. Where these bytes belong among those moved is not known.
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

  /** The end that Bun read is a reset. One system call for each end, none for each read. */
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
    // The connection may be spliced before a large read, and the kernel stores the most while no read takes it.
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
    // With FIN sent this way, FIN from the other makes Bun read, paused or not; a unix socket's end always does.
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

  /** Called when TLS broke or a handler threw: the connection cannot be used any more. */
  failed(error: Error): void {
    this.failure = error
    this.terminate()
    // An error of the system has a code; an error of a handler has none.
    if (!('code' in error)) this.owner?.failed(error)
  }

  /** A reset that Bun did not report as one. */
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
    // The caller of `terminate` can finish what it is doing first.
    if (this.isCut) queueMicrotask(() => this.reportClosed())
    else this.reportClosed()
  }

  reportClosed(): void {
    // Looked up late: `accept` may cut a connection before it has returned the handler.
    const { handler } = this
    if (handler === undefined) return
    // After our own FIN, Bun reports the other one only by closing.
    if (this.failure === undefined && !this.#hasFarSideEnded) handler.ended()
    handler.closed(this.failure)
  }

  get protocol(): string {
    // False or null without one, whatever its type says.
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
    // Declared as always there; absent on a unix socket and after a close.
    if (!remoteAddress || !localAddress) return undefined
    const far = { address: plain(remoteAddress), port: remotePort }
    const near = { address: plain(localAddress), port: localPort }
    return this.owner === undefined ? { source: near, destination: far } : { source: far, destination: near }
  }
}

/** An IPv4 visitor of a dual-stack listener is an IPv4 visitor. */
function plain(address: string): string {
  return address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address
}
