// One connection of Bun behind the contract of socket.ts, and what Bun tells of it.

import type {
  Endpoints,
  Lane,
  LaneHandler,
  LaneTerms,
  Socket,
  SocketHandler,
  Splice,
  SpliceDone,
  Trunk,
} from '../socket.ts'
import { smallReads } from '../splice/activity.ts'
import type { Outcome } from '../splice/splicer.ts'
import { beginLane, canBeginLane, canSplice, openTrunk, spliceDescriptors } from '../splice/splices.ts'
import { descriptorOf } from './descriptor.ts'
import { hasFarSide } from './far-side.ts'
import { failure } from './gate.ts'
import { boundReceiving } from './receive-buffer.ts'

export type RawSocket = Bun.Socket<Connection>

/** What Bun calls. */
export interface ConnectionEvents {
  readonly binaryType: 'uint8array'
  open(raw: RawSocket): void
  data(raw: RawSocket, bytes: Uint8Array): void
  drain(raw: RawSocket): void
  end(raw: RawSocket): void
  error(raw: RawSocket, error: Error): void
  close(raw: RawSocket, error?: Error): void
  timeout(raw: RawSocket): void
  handshake?(raw: RawSocket, success: boolean, error: Error | null): void
}

/** Bun's own: nothing to look into. */
export type SecureContext = object
/** What `setKeyCert` of Bun's node:tls calls: published types do not have it. */
interface KeyCertSocket {
  setKeyCert(context: SecureContext): void
}

/** Longest TLS handshake of a stranger: before it ends nobody else watches the connection. */
const HANDSHAKE_TIMEOUT_S = 10

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

/**
 * Bulk connections read in one turn of the event loop: a read of 512 KB takes some 0.15 ms, of which 200 would be 30. With
 * 16, a turn of 4 ms still reads 2 GB/s.
 */
const BULK_READS_PER_TURN = 16
/** Those that have more to be read, in the order of their turns. */
const waitingForTurn = new Set<Connection>()
let isTurnPlanned = false

function waitForTurn(connection: Connection): void {
  waitingForTurn.add(connection)
  if (isTurnPlanned) return
  isTurnPlanned = true
  setImmediate(runTurn)
}

function runTurn(): void {
  isTurnPlanned = false
  let left = BULK_READS_PER_TURN
  for (const connection of waitingForTurn) {
    if (left-- === 0) break
    waitingForTurn.delete(connection)
    try {
      connection.readOn()
    } catch (error) {
      // Nothing of Bun's is below that would catch it.
      SHARED_EVENTS.error(connection.raw, error instanceof Error ? error : new Error(String(error)))
    }
  }
  if (waitingForTurn.size === 0 || isTurnPlanned) return
  isTurnPlanned = true
  setImmediate(runTurn)
}

/** The listening side of a connection. */
export interface Owner {
  /** Shown instead of the certificate that it listens with. */
  context: SecureContext | undefined
  readonly admit: ((socket: Socket) => Pass | undefined) | undefined
  accept(socket: Socket, pass: Pass | undefined): SocketHandler
  failed(error: Error): void
  /** `stop(true)` is closing connections: without FIN from the far side, which Bun does not tell apart. */
  isCutting: boolean
}

/** The dialling side of a connection, until it is up. */
export interface Dialling {
  resolve(connection: Connection): void
  reject(error: unknown): void
}

/** What is known of a connection from `accept` on, before TLS: see `ListenOptions.admit`. */
export interface Pass {
  /** The connection is closed. */
  left(): void
}

export class Connection implements Socket {
  raw!: RawSocket // set by `open`, before anybody but `wanted` gets hold of the connection
  handler: SocketHandler | undefined
  dialling: Dialling | undefined
  readonly mustVerify: boolean
  readonly owner: Owner | undefined
  pass: Pass | undefined
  wantsDrain = false
  hasEnded = false
  peerEnded = false
  /** Why it is or will be closed, if not by FIN both ways. */
  failure: Error | undefined
  isTerminated = false
  isFarSideGone = false
  /** Whoever dialled gave up before it was up. */
  isUnwanted = false
  isPaused = false
  isYielding = false
  /** No TLS: what is read is what was sent. */
  isPlain = false
  /** The last read was bulk. */
  isBulk = false
  /** The kernel keeps less for it than it might. */
  isBounded = false
  /** What the kernel moves from here, and to here. */
  outgoing: Pick<Splice, 'stop'> | undefined
  incoming: Pick<Splice, 'stop'> | undefined
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
    if (!this.hasEnded) this.#farSideGone()
    return 0
  }

  /**
   * A write failed, which takes the error away from the kernel: `close` follows only when the runtime has read what is
   * left. So the connection is read from now on, also when its handler pauses it.
   */
  #farSideGone(): void {
    this.failure ??= failure('EPIPE', 'the far side closed the connection')
    this.isFarSideGone = true
    this.resume()
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

  letGo(): void {
    if (this.isTerminated) return
    if (!this.hasEnded || this.outgoing !== undefined) return this.terminate()
    this.isTerminated = true
    this.raw.end()
  }

  keepAlive(idleMs: number): void {
    // A probe a second and ten of them: that is Bun's own choice.
    this.raw.setKeepAlive(true, idleMs)
  }

  pause(): void {
    if (this.isFarSideGone) return
    this.isPaused = true
    this.raw.pause()
  }

  resume(): void {
    if (!this.isPaused) return
    this.isPaused = false
    if (this.isYielding || this.outgoing !== undefined) return
    // Whoever was full takes bytes again: a good moment too, but for a call in the middle of a read.
    if (this.isBulk) this.nextTurn(0)
    else this.raw.resume()
  }

  bulkArrived(): void {
    if (!this.isBounded) {
      this.isBounded = true
      const descriptor = descriptorOf(this.raw)
      if (descriptor !== undefined) boundReceiving(descriptor)
    }
    this.yield()
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
    if (waitMs > 0) setTimeout(waitForTurn, waitMs, this)
    else if (this.isBulk) waitForTurn(this)
    else setImmediate(() => this.readOn())
  }

  /** Its turn has come. */
  readOn(): void {
    this.isYielding = false
    if (this.isPaused) return
    if (this.maySplice) this.handler?.turnBegan?.()
    if (this.outgoing === undefined) this.raw.resume()
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
    return splice
  }

  #spliced(to: Connection, { movedBytes, leftover, failed, isLost }: Outcome, done: SpliceDone): void {
    this.outgoing = undefined
    to.incoming = undefined
    this.isBulk = false
    const tell = () => {
      done(movedBytes)
      if (leftover !== undefined && !this.isTerminated) this.handler?.received(leftover)
    }
    const broke = failed && { from: this as Connection, to }[failed]
    this.#movingEnded([this], [to], tell, isLost ? [this] : [], broke)
  }

  /** Nothing is moved from `readers` to `writers` any more: what waited for that happens, behind what `tell` tells. */
  #movingEnded(
    readers: readonly Connection[],
    writers: readonly Connection[],
    tell: () => void,
    lostOnes: Iterable<Connection>,
    broke: Connection | undefined,
  ): void {
    try {
      tell()
      for (const side of readers) if (side.endsAfterSplice) side.end()
      for (const side of readers)
        if (side.endedMeanwhile && side.afterSplices === undefined) SHARED_EVENTS.end(side.raw)
    } catch (error) {
      // Nothing of Bun's is below that would catch it.
      SHARED_EVENTS.error(this.raw, error instanceof Error ? error : new Error(String(error)))
    }
    for (const side of lostOnes) lost(side)
    if (broke !== undefined) broken(broke)
    for (const side of new Set([...readers, ...writers])) side.#tellClosed()
    for (const side of readers) side.#readOn()
  }

  #tellClosed(): void {
    if (this.outgoing === undefined && this.incoming === undefined) this.afterSplices?.()
  }

  #readOn(): void {
    const isGone = this.isTerminated || this.afterSplices !== undefined
    if (!isGone && !this.isPaused && !this.isYielding) this.raw.resume()
  }

  becomeTrunk(isAppSide: boolean): Trunk | undefined {
    const descriptor = this.#descriptorForLane()
    if (descriptor === undefined) return undefined
    const trunk = openTrunk(descriptor, isAppSide, isLost => {
      this.outgoing = undefined
      this.incoming = undefined
      this.#movingEnded([], [this], () => {}, isLost ? [this] : [], this)
    })
    if (trunk === undefined) return undefined
    this.pause()
    this.#lend(trunk)
    return trunk
  }

  enterLane(
    trunk: Trunk,
    lane: number,
    terms: LaneTerms | undefined,
    handler: LaneHandler,
  ): Lane | undefined {
    const descriptor = this.#descriptorForLane()
    if (descriptor === undefined) return undefined
    const running = beginLane(trunk, lane, descriptor, terms, {
      exchanged: exchange => handler.exchanged?.(exchange),
      over: outcome => {
        this.outgoing = undefined
        this.incoming = undefined
        const { hasFailed, isLost } = outcome
        const tell = () => handler.over(outcome)
        this.#movingEnded([this], [], tell, isLost ? [this] : [], hasFailed ? this : undefined)
      },
      more: bytes => handler.more(bytes),
      back: isTorn => handler.back(isTorn),
    })
    if (running !== undefined) this.#lend(running)
    return running
  }

  canEnterLane(): boolean {
    return this.#mayBeInLane && canBeginLane()
  }

  get #mayBeInLane(): boolean {
    const isWhole = !this.hasEnded && !this.peerEnded && this.afterSplices === undefined
    return isWhole && !this.isTerminated && this.maySplice && this.raw.remoteAddress !== undefined
  }

  #descriptorForLane(): number | undefined {
    const isFree = this.outgoing === undefined && this.incoming === undefined
    return isFree && this.#mayBeInLane ? descriptorOf(this.raw) : undefined
  }

  /** A thread reads it and writes to it. */
  #lend(to: Pick<Splice, 'stop'>): void {
    this.outgoing = to
    this.incoming = to
  }

  /** The end that Bun read is a reset. One system call for each end, none for each read. */
  get isBroken(): boolean {
    if (this.hasEnded) return false
    const descriptor = descriptorOf(this.raw)
    return descriptor !== undefined && !hasFarSide(descriptor)
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
    if (connection.isBulk) connection.bulkArrived()
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

export const PLAIN_DIAL_EVENTS: ConnectionEvents = {
  ...SHARED_EVENTS,
  open(raw: RawSocket) {
    raw.data.raw = raw
    raw.data.isPlain = true
    if (!isRefusedAsOwn(raw)) dialled(raw.data)
  },
}

export const TLS_DIAL_EVENTS: ConnectionEvents = {
  ...SHARED_EVENTS,
  open(raw: RawSocket) {
    raw.data.raw = raw
    if (raw.data.isUnwanted) raw.terminate()
    else isRefusedAsOwn(raw)
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
export const ENCRYPTED_EVENTS = { drain(): void {} }

export const PLAIN_LISTEN_EVENTS: ConnectionEvents = {
  ...SHARED_EVENTS,
  open(raw: RawSocket) {
    const connection = adopt(raw)
    connection.isPlain = true
    if (isAdmitted(connection)) accepted(connection)
  },
}

export const TLS_LISTEN_EVENTS: ConnectionEvents = {
  ...SHARED_EVENTS,
  open(raw: RawSocket) {
    const connection = adopt(raw)
    if (!isAdmitted(connection)) return
    const { context } = connection.owner ?? {}
    // The hello was not read yet: the listener, and every connection that waits in it, can stay.
    if (context !== undefined) (raw as RawSocket & KeyCertSocket).setKeyCert(context)
    raw.timeout(HANDSHAKE_TIMEOUT_S)
  },
  handshake(raw: RawSocket, success: boolean) {
    if (raw.data.isTerminated) return
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

function isAdmitted(connection: Connection): boolean {
  const { owner } = connection
  if (owner?.admit === undefined) return true
  connection.pass = owner.admit(connection)
  // It may have been cut for itself, too.
  if (connection.pass === undefined) connection.terminate()
  return !connection.isTerminated
}

function accepted(connection: Connection): void {
  connection.handler = connection.owner?.accept(connection, connection.pass)
}

function dialled(connection: Connection): void {
  if (connection.isUnwanted) return connection.raw.terminate()
  connection.dialling?.resolve(connection)
  connection.dialling = undefined
}

/**
 * A dial to a local port of the ephemeral range, where nothing listens, may get that port itself to dial from. TCP joins such
 * a connection to itself, and it would look like an app that echoes.
 */
function isRefusedAsOwn(raw: RawSocket): boolean {
  if (raw.localPort !== raw.remotePort || raw.localPort === undefined) return false
  if (raw.localAddress !== raw.remoteAddress) return false
  raw.data.failure = failure('ECONNREFUSED', 'nothing listens there')
  raw.data.terminate()
  return true
}

function lost(connection: Connection): void {
  connection.failure ??= failure('EIO', 'bytes were lost with the thread that moved them')
  connection.terminate()
}

/** A reset that Bun did not report as one. */
function broken(connection: Connection): void {
  connection.failure ??= failure('ECONNRESET', 'the far side reset the connection')
  connection.terminate()
}

function closed(connection: Connection, error?: Error): void {
  const { dialling } = connection
  connection.pass?.left()
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
  // Without a handshake there is no cipher, or one whose name is null, whatever its type says.
  const cipher = raw.getCipher() as { readonly name: string | null } | null | undefined
  return typeof cipher?.name === 'string'
}
