// Byte connections on Bun: Bun.connect and Bun.listen behind the contract of socket.ts.
//
// What Bun 1.4.5 does, each observed: `end()` closes at once, `shutdown()` is the half-close; `write` returns -1 on a
// dead connection; `drain` also comes unasked; `close` may come from within `terminate` and may lack its error;
// a TLS dial resolves before the handshake; `tls: {}` means no TLS at all; a unix socket cannot send RST.
// `upgradeTLS` leaves the socket below telling of the encrypted bytes, and does nothing on one that is TLS already.
// `localhost` is dialled on both address families, and TCP_NODELAY is set on every connection, by Bun itself.

import { deferred } from '../deferred.ts'
import type {
  Address,
  Dial,
  Endpoints,
  Socket,
  SocketHandler,
  Splice,
  SpliceDone,
  TlsOptions,
  Via,
} from '../socket.ts'
import { smallReads } from '../splice/activity.ts'
import { canSplice, isCleanEnd, type Outcome, spliceDescriptors } from '../splice/splicer.ts'
import { descriptorOf } from './descriptor.ts'
import { failure, Gate } from './gate.ts'

export interface ListenOptions {
  /** Address to bind. Default `0.0.0.0`. */
  readonly hostname?: string
  /** 0 takes any free port. */
  readonly port?: number
  /** Path of a unix socket, instead of hostname and port. */
  readonly unix?: string
  /** PEM. With it every connection is TLS, and `accept` is called after the handshake. */
  readonly tls?: { readonly cert: string; readonly key: string }
  /** A connection came in. The handler returned hears of everything that happens on it. */
  accept(socket: Socket): SocketHandler
  /** A handler threw. Its connection is cut for it; the others go on. */
  failed?(error: Error): void
}

export interface Listening {
  /** The port bound; 0 for a unix socket. */
  readonly port: number
  /** Takes no more connections. `closeActive` also cuts those that are open. */
  stop(closeActive?: boolean): void
  /**
   * Checks another certificate and returns what puts it into use: for handshakes that begin after. Throws OpenSSL's
   * error. Only with `tls`.
   */
  prepareTls(tls: { readonly cert: string; readonly key: string }): Promise<() => void>
}

type RawSocket = Bun.Socket<Connection>
/** Bun's own: nothing to look into. */
type SecureContext = object
/** What `setKeyCert` of Bun's node:tls calls: published types do not have it. */
interface KeyCertSocket {
  setKeyCert(context: SecureContext): void
}

/**
 * A read of this size is bulk. Bun reads 512 KB at a time, and up to eleven times in a row from a socket that has
 * more: with two such processes in a chain, small answers beside a download took 5 ms at the median, and 0.3 ms since
 * bulk yields (`benchmarks/ahead.ts --only mixed`).
 */
const BULK_READ_BYTES = 131_072
const SMALL_READ_BYTES = 16_384
/** How long bulk waits while small reads happen: 512 KB a millisecond is still 500 MB/s. */
const POLITE_PAUSE_MS = 1
/** How many small reads there were when bulk last looked. */
let smallReadsSeen = 0

/** Longest TLS handshake of a stranger: before it ends nobody else watches the connection. */
const HANDSHAKE_TIMEOUT_S = 10

/**
 * Opens a connection. Fails with Bun's error: `ECONNREFUSED`, `ENOTFOUND`, `ERR_TLS_CERT_ALTNAME_INVALID`, …
 * The signal ends handshakes, not the dial itself, because Bun cannot stop dialling: to an address that swallows every
 * packet it goes on, and keeps the process alive, until the system gives up after two minutes.
 */
export const dialBun: Dial = async (address, handler, signal) => {
  const { via, tls } = address
  if (via === undefined) return dialStraight(address, handler, signal)
  // TLS in TLS: Bun has it in node:tls only.
  if (tls && via.address.tls) return (await import('./node.ts')).dialNode(address, handler, signal)
  return dialVia(address, via, handler, signal)
}

async function dialStraight(
  address: Omit<Address, 'via'>,
  handler: SocketHandler,
  signal: AbortSignal | undefined,
): Promise<Connection> {
  const tls = address.tls && (await dialTls(address.tls))
  return wanted(signal, address.tls, handler, connection => {
    const options = {
      allowHalfOpen: true,
      data: connection,
      socket: tls ? TLS_DIAL_EVENTS : PLAIN_DIAL_EVENTS,
      ...(tls && { tls }),
    }
    const { host: hostname = 'localhost', port = 0, unix } = address
    const connected =
      unix === undefined ? Bun.connect({ hostname, port, ...options }) : Bun.connect({ unix, ...options })
    connected.catch(error => connection.dialling?.reject(error))
  })
}

async function dialVia(
  { host, tls }: Address,
  { address, opening }: Via,
  handler: SocketHandler,
  signal: AbortSignal | undefined,
): Promise<Socket> {
  const gate = new Gate(opening, handler)
  const below = await dialStraight(address, gate, signal)
  const rest = await gate.open(below, signal)
  if (tls === undefined) {
    gate.handOver(rest)
    return below
  }
  try {
    // A TLS server never speaks first, and what came cannot be given to Bun.
    if (rest.length > 0) throw failure('EPROTO', 'bytes came before the TLS handshake')
    const options = await dialTls({ ...(host !== undefined && { serverName: host }), ...tls })
    below.isPlain = false
    below.raw.reload({ socket: ENCRYPTED_EVENTS })
    return await wanted(signal, tls, handler, connection => {
      below.raw.upgradeTLS<Connection>({ data: connection, socket: TLS_DIAL_EVENTS, tls: options })
    })
  } catch (error) {
    below.terminate()
    throw error
  }
}

/** Resolves once what `begin` began is up, unless the signal says before that nobody wants it any more. */
async function wanted(
  signal: AbortSignal | undefined,
  tls: TlsOptions | undefined,
  handler: SocketHandler,
  begin: (connection: Connection) => void,
): Promise<Connection> {
  const { promise, resolve, reject } = deferred<Connection>()
  const connection = new Connection(handler, { resolve, reject }, tls?.verify !== false)
  const abort = () => {
    reject(failure('ECONNABORTED', 'the connection is not wanted any more'))
    connection.isUnwanted = true
    connection.raw?.terminate()
  }
  signal?.addEventListener('abort', abort)
  try {
    if (signal?.aborted) abort()
    else begin(connection)
    return await promise
  } finally {
    signal?.removeEventListener('abort', abort)
  }
}

/** Listens. Throws Bun's error, such as `EADDRINUSE`. */
export function listenBun(options: ListenOptions): Listening {
  const { hostname = '0.0.0.0', port = 0, unix, tls } = options
  const owner: Owner = {
    accept: socket => options.accept(socket),
    failed: error => options.failed?.(error),
    isCutting: false,
    context: undefined,
  }
  const rest = {
    allowHalfOpen: true,
    // What `data` of each accepted socket is until `open` replaces it.
    data: owner as never,
    socket: tls ? TLS_LISTEN_EVENTS : PLAIN_LISTEN_EVENTS,
    ...(tls && { tls: { cert: tls.cert, key: tls.key } }),
  }
  const listener =
    unix === undefined
      ? Bun.listen<Connection>({ hostname, port, ...rest })
      : Bun.listen<Connection>({ unix, ...rest })
  return {
    port: 'port' in listener ? (listener.port ?? 0) : 0,
    stop(closeActive = false) {
      owner.isCutting = closeActive
      listener.stop(closeActive)
    },
    async prepareTls({ cert, key }) {
      // An empty text would be taken for none, and no handshake would ever succeed.
      if (cert === '' || key === '') throw failure('ERR_TLS', 'the certificate or the key is empty')
      const { createSecureContext } = await import('node:tls')
      const context: SecureContext = createSecureContext({ cert, key }).context
      return () => {
        owner.context = context
      }
    },
  }
}

/** The listening side of a connection. */
interface Owner {
  /** Shown instead of the certificate that it listens with. */
  context: SecureContext | undefined
  accept(socket: Socket): SocketHandler
  failed(error: Error): void
  /** `stop(true)` is closing connections: without FIN from the far side, which Bun does not tell apart. */
  isCutting: boolean
}

/** The dialling side of a connection, until it is up. */
interface Dialling {
  resolve(connection: Connection): void
  reject(error: unknown): void
}

class Connection implements Socket {
  raw!: RawSocket // set by `open`, before anybody but `wanted` gets hold of the connection
  handler: SocketHandler | undefined
  dialling: Dialling | undefined
  readonly mustVerify: boolean
  readonly owner: Owner | undefined
  wantsDrain = false
  hasEnded = false
  peerEnded = false
  /** Why it is or will be closed, if not by FIN both ways. */
  failure: Error | undefined
  isTerminated = false
  /** Whoever dialled gave up before it was up. */
  isUnwanted = false
  isPaused = false
  isYielding = false
  /** No TLS: what is read is what was sent. */
  isPlain = false
  /** The last read was bulk. */
  isBulk = false
  /** What the kernel moves from here, and to here. */
  outgoing: Splice | undefined
  incoming: Splice | undefined
  wasSpliced = false
  endsAfterSplice = false
  /** The far side's end was told while bytes were still moved. */
  endedMeanwhile = false
  /** The connection is gone, and whoever hears of it waits until nothing is moved any more. */
  afterSplices: (() => void) | undefined

  constructor(handler?: SocketHandler, dialling?: Dialling, mustVerify = false, owner?: Owner) {
    this.handler = handler
    this.dialling = dialling
    this.mustVerify = mustVerify
    this.owner = owner
  }

  write(bytes: Uint8Array, start = 0, end: number = bytes.length): number {
    const taken = this.raw.write(bytes, start, end - start)
    if (taken === end - start) return taken
    if (taken >= 0) {
      this.wantsDrain = true
      return taken
    }
    // The far side is gone. `close` follows, without an error of its own.
    if (!this.hasEnded) this.failure ??= failure('EPIPE', 'the far side closed the connection')
    return 0
  }

  end(): void {
    if (this.hasEnded) return
    if (this.outgoing !== undefined) {
      this.endsAfterSplice = true
      return this.outgoing.stop()
    }
    this.hasEnded = true
    this.raw.shutdown()
  }

  terminate(): void {
    if (this.isTerminated) return
    this.isTerminated = true
    this.failure ??= failure('ECONNABORTED', 'the connection was cut by this side')
    this.stopSplices()
    this.raw.terminate()
  }

  keepAlive(idleMs: number): void {
    // A probe a second and ten of them: that is Bun's own choice.
    this.raw.setKeepAlive(true, idleMs)
  }

  pause(): void {
    this.isPaused = true
    this.raw.pause()
  }

  resume(): void {
    if (!this.isPaused) return
    this.isPaused = false
    if (this.isYielding || this.outgoing !== undefined) return
    // Whoever was full takes bytes again: a good moment too, but for a call in the middle of a read.
    if (this.isBulk && this.maySplice) this.nextTurn(0)
    else this.raw.resume()
  }

  /**
   * Lets the other sockets have their turn before this one is read again: the next tick, or a moment later while
   * others read small pieces. Those are somebody's request or answer, and cores that bulk keeps busy come late.
   */
  yield(): void {
    if (this.isYielding || this.isPaused) return
    this.raw.pause()
    this.nextTurn(smallReads[0]! === smallReadsSeen ? 0 : POLITE_PAUSE_MS)
    smallReadsSeen = smallReads[0]!
  }

  askTurn(): boolean {
    if (!this.maySplice) return false
    if (this.isYielding || this.isPaused || this.outgoing !== undefined) return true
    this.raw.pause()
    this.nextTurn(0)
    return true
  }

  nextTurn(waitMs: number): void {
    this.isYielding = true
    const readOn = () => {
      this.isYielding = false
      if (this.isPaused) return
      if (this.maySplice) this.handler?.turnBegan?.()
      if (this.outgoing === undefined) this.raw.resume()
    }
    if (waitMs === 0) setImmediate(readOn)
    else setTimeout(readOn, waitMs)
  }

  // ── Moving bytes in the kernel ─────────────────────────────────────────────────────────────────────────────

  get maySplice(): boolean {
    return this.isPlain && this.handler?.turnBegan !== undefined && canSplice()
  }

  spliceTo(to: Socket, limitBytes: number, done: SpliceDone): Splice | undefined {
    if (!(to instanceof Connection) || !to.isPlain || to === this) return undefined
    // With FIN sent this way, FIN from the other makes Bun read, paused or not; a unix socket's end always does.
    if (this.hasEnded || this.raw.remoteAddress === undefined) return undefined
    if (this.outgoing !== undefined || to.incoming !== undefined || to.hasEnded) return undefined
    if (this.afterSplices !== undefined || to.afterSplices !== undefined) return undefined
    const [from, into] = [descriptorOf(this.raw), descriptorOf(to.raw)]
    if (from === undefined || into === undefined) return undefined
    const pace = this.isBulk ? 'bulk' : 'prompt'
    const ended = (outcome: Outcome) => this.#spliced(to, outcome, done)
    const splice = spliceDescriptors(from, into, limitBytes, pace, ended)
    if (splice === undefined) return undefined
    this.outgoing = splice
    to.incoming = splice
    this.wasSpliced = true
    to.wasSpliced = true
    return splice
  }

  #spliced(to: Connection, { movedBytes, leftover, failed, isLost }: Outcome, done: SpliceDone): void {
    this.outgoing = undefined
    to.incoming = undefined
    this.isBulk = false
    try {
      done(movedBytes)
      if (leftover !== undefined && !this.isTerminated) this.handler?.received(leftover)
      if (this.endsAfterSplice) this.end()
      if (this.endedMeanwhile && this.afterSplices === undefined) SHARED_EVENTS.end(this.raw)
    } catch (error) {
      // Nothing of Bun's is below that would catch it.
      SHARED_EVENTS.error(this.raw, error instanceof Error ? error : new Error(String(error)))
    }
    if (isLost) {
      this.failure ??= failure('EIO', 'bytes were lost with the thread that moved them')
      this.terminate()
    }
    if (failed === 'from') broken(this)
    if (failed === 'to') broken(to)
    for (const side of [this, to]) {
      if (side.outgoing === undefined && side.incoming === undefined) side.afterSplices?.()
    }
    const isGone = this.isTerminated || this.afterSplices !== undefined
    if (!isGone && !this.isPaused && !this.isYielding) this.raw.resume()
  }

  /** An end that was read is none: the error was told to a splice, this way or the other. */
  get isBroken(): boolean {
    if (!this.wasSpliced || this.hasEnded) return false
    const descriptor = descriptorOf(this.raw)
    return descriptor !== undefined && !isCleanEnd(descriptor)
  }

  stopSplices(): void {
    this.outgoing?.stop()
    this.incoming?.stop()
  }

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

// ── What Bun tells: one handler object per kind of connection, the state is in `data` ────────────────────────────

const SHARED_EVENTS = {
  binaryType: 'uint8array',
  data({ data: connection }: RawSocket, bytes: Uint8Array) {
    // Encrypted bytes, below a TLS connection that was begun on this one.
    if (connection.handler === undefined) return
    // Bun reads a paused connection that broke. Where these bytes belong among those moved nobody knows.
    if (connection.outgoing !== undefined) return broken(connection)
    connection.isBulk = bytes.length >= BULK_READ_BYTES
    if (connection.isBulk) connection.yield()
    else if (bytes.length < SMALL_READ_BYTES) smallReads[0]!++
    connection.handler.received(bytes)
  },
  drain({ data: connection }: RawSocket) {
    if (!connection.wantsDrain) return
    connection.wantsDrain = false
    connection.handler?.drained()
  },
  end({ data: connection }: RawSocket) {
    if (connection.peerEnded) return
    if (connection.outgoing !== undefined) {
      connection.endedMeanwhile = true
      return
    }
    if (connection.isBroken) return broken(connection)
    connection.peerEnded = true
    connection.handler?.ended()
  },
  /** TLS broke, or a handler threw: neither connection can go on. */
  error({ data: connection }: RawSocket, error: Error) {
    connection.failure = error
    connection.terminate()
    // What the system reports has a code; what a handler throws by mistake has none.
    if (!('code' in error)) connection.owner?.failed(error)
  },
  close({ data: connection }: RawSocket, error?: Error) {
    closed(connection, error)
  },
  /** Only a TLS handshake may time out. Bun tells it unasked too, of every accepted connection after 120 seconds. */
  timeout({ data: connection }: RawSocket) {
    if (connection.handler === undefined) connection.terminate()
  },
} as const

const PLAIN_DIAL_EVENTS = {
  ...SHARED_EVENTS,
  open(raw: RawSocket) {
    raw.data.raw = raw
    raw.data.isPlain = true
    dialled(raw.data)
  },
}

const TLS_DIAL_EVENTS = {
  ...SHARED_EVENTS,
  open(raw: RawSocket) {
    raw.data.raw = raw
    if (raw.data.isUnwanted) raw.terminate()
  },
  handshake(raw: RawSocket, success: boolean, error: Error | null) {
    const connection = raw.data
    if (connection.mustVerify ? success && raw.authorized : success || isEncrypted(raw)) {
      return dialled(connection)
    }
    connection.failure = error ?? failure('ECONNRESET', 'the TLS handshake failed')
    connection.terminate()
  },
}

/**
 * Of a socket on which TLS was begun: whatever happens is told on the TLS one. Without this Bun also copies the
 * encrypted bytes for us, a quarter of the CPU time of a download. It wants one handler at least.
 */
const ENCRYPTED_EVENTS = { drain() {} }

const PLAIN_LISTEN_EVENTS = {
  ...SHARED_EVENTS,
  open(raw: RawSocket) {
    const connection = adopt(raw)
    connection.isPlain = true
    accepted(connection)
  },
}

const TLS_LISTEN_EVENTS = {
  ...SHARED_EVENTS,
  open(raw: RawSocket & KeyCertSocket) {
    const { context } = adopt(raw).owner ?? {}
    // The hello was not read yet: the listener, and every connection that waits in it, can stay.
    if (context !== undefined) raw.setKeyCert(context)
    raw.timeout(HANDSHAKE_TIMEOUT_S)
  },
  handshake(raw: RawSocket, success: boolean) {
    raw.timeout(0)
    if (success) accepted(raw.data)
    else raw.data.terminate()
  },
}

function adopt(raw: RawSocket): Connection {
  const owner = raw.data as unknown as Owner // see `listenBun`: until now it is the owner
  const connection = new Connection(undefined, undefined, false, owner)
  connection.raw = raw
  raw.data = connection
  return connection
}

function accepted(connection: Connection): void {
  connection.handler = connection.owner?.accept(connection)
}

function dialled(connection: Connection): void {
  if (connection.isUnwanted) return connection.raw.terminate()
  connection.dialling?.resolve(connection)
  connection.dialling = undefined
}

/** The system told, but not by an event that says so. */
function broken(connection: Connection): void {
  connection.failure ??= failure('ECONNRESET', 'the connection broke while the kernel moved its bytes')
  connection.terminate()
}

function closed(connection: Connection, error?: Error): void {
  const { dialling } = connection
  connection.failure ??= error
  if (connection.owner?.isCutting) connection.failure ??= failure('ECONNABORTED', 'the server stopped')
  if (dialling !== undefined) {
    dialling.reject(
      connection.failure ?? failure('ECONNRESET', 'the connection closed during the TLS handshake'),
    )
    return
  }
  if (connection.failure === undefined && !connection.hasEnded) {
    connection.failure = failure('ECONNRESET', 'the connection closed before both sides ended')
  }
  const tell = () => {
    // Looked up late: `accept` may cut a connection before it has returned the handler.
    const { handler } = connection
    if (handler === undefined) return
    // After our own FIN, Bun reports the other one only by closing.
    if (connection.failure === undefined && !connection.peerEnded) handler.ended()
    handler.closed(connection.failure)
  }
  if (connection.outgoing !== undefined || connection.incoming !== undefined) {
    connection.stopSplices()
    connection.afterSplices = tell
    return
  }
  // Whoever calls `terminate` can finish what it is doing first.
  if (connection.isTerminated) queueMicrotask(tell)
  else tell()
}

/** A certificate for another name is told as a failed handshake even when no verification is wanted. */
function isEncrypted(raw: RawSocket): boolean {
  const cipher: unknown = raw.getCipher() // null before the handshake succeeded, whatever its type says
  return cipher !== null && cipher !== undefined
}

async function dialTls({ serverName, verify = true, ca }: TlsOptions): Promise<Bun.TLSOptions> {
  return {
    // Never left out: Bun takes an empty object for "no TLS".
    rejectUnauthorized: verify,
    ...(serverName !== undefined && { serverName }),
    // `ca` alone would replace the authorities trusted by default.
    ...(ca !== undefined && { ca: [...(await import('node:tls')).rootCertificates, ca] }),
  }
}
