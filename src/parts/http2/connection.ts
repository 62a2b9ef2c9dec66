// One visitor's HTTP/2 connection: its socket, its turns and timeouts, and its end. Each of its streams is a visit.

import { eventLoop } from '../../event-loop.ts'
import * as Code from '../../http2/error-codes.ts'
import type { FieldList } from '../../http2/field-list.ts'
import {
  CONNECTION_WINDOW_BYTES,
  MAX_WAITING_BYTES,
  ServerConnection,
  type ServerConnectionHost,
} from '../../http2/server-connection.ts'
import type { ServerStream } from '../../http2/server-stream.ts'
import type { AdmittedVisitor, Entrance, HttpShare, Visitor } from '../../server/contracts/protocol.ts'
import { HttpInput, type InputReader } from '../../server/fronts/http-input.ts'
import { HttpOutput, type OutputOwner } from '../../server/fronts/http-output.ts'
import type { Occupant } from '../../server/limits/admission.ts'
import { IdleTime } from '../../server/limits/deadlines.ts'
import { VisitorHop } from '../../server/limits/visitor-hop.ts'
import type { Bounds } from '../../server/settings/bounds.ts'
import type { AskedCertificate, Socket, SocketHandler } from '../../socket.ts'
import type { MultiplexedConnection } from './multiplexed.ts'
import { StreamChannel } from './stream-channel.ts'

/** The number of frames handled in one turn if more have arrived: as many as an HTTP/1.1 connection begins requests. */
const FRAMES_IN_A_TURN = 16
/** The number of outboxes filled one after the other while the kernel takes them, before others have a turn. */
const OUTBOXES_IN_A_TURN = 4
/**
 * The time in milliseconds after the visitor's FIN until a response without progress is cancelled. A visitor that
 * left and one that only closed its sending side look alike.
 */
const HALF_CLOSE_GRACE_MS = 1_000
/** The time in milliseconds for a visitor to close after GOAWAY. An earlier RST could destroy the last responses. */
const LINGER_MS = 2_000
/**
 * The bytes that a visitor may send in that time: bodies within the window, and heads sent before GOAWAY arrived.
 * More is a flood.
 */
const MAX_DROPPED_BYTES = CONNECTION_WINDOW_BYTES + 262_144
/** The time in milliseconds for a visitor to reply to the first GOAWAY when the server drains: a round trip. */
const GOAWAY_MS = 1_000
/** The size of a field in addition to its text, as RFC 7541 counts it. */
const FIELD_OVERHEAD = 32

type Phase =
  | 'open'
  /** The last frames are being sent; further bytes are dropped. */
  | 'closing'
  /** FIN was sent after them. The visitor has some time to end its side. */
  | 'lingering'
  | 'closed'

export class Http2Connection
  implements
    SocketHandler,
    InputReader,
    OutputOwner,
    Occupant,
    Visitor,
    ServerConnectionHost,
    MultiplexedConnection
{
  readonly front: HttpShare
  readonly visitor: VisitorHop
  readonly isCertified: boolean
  readonly #socket: Socket
  readonly #admitted: AdmittedVisitor | undefined
  readonly #input: HttpInput
  readonly #output: HttpOutput
  readonly #idle: IdleTime
  /** Whether no byte has arrived yet. */
  #isSilent = true
  /** The timeout of the preface, and of a head or frame that has begun. */
  readonly #frameTime: IdleTime
  #isInside = true
  #phase: Phase = 'open'
  #isFlushPlanned = false
  /** Whether bytes are being handled. Frames are sent afterwards. */
  #isTaking = false
  #hasBegun = false
  #hasPreface = false
  /** The bytes of heads and control frames that the kernel has not taken. */
  #waitingBytes = 0
  readonly connection: ServerConnection

  constructor(socket: Socket, front: HttpShare, entrance: Entrance, admitted?: AdmittedVisitor) {
    this.#socket = socket
    this.front = front
    this.#admitted = admitted
    if (admitted !== undefined) admitted.occupant = this
    this.isCertified = socket.isCertified === true
    this.visitor = new VisitorHop(entrance, socket.remoteAddress)
    this.#input = new HttpInput(socket, front, this)
    this.#output = new HttpOutput(socket, front.deadlines, this)
    this.#idle = new IdleTime(front, () => this.#waitedTooLong())
    this.#frameTime = new IdleTime(front, () => this.#frameTookTooLong())
    const { maxHeadBytes, maxHeaderCount, maxHttp2Streams, maxHttp2Resets, maxHttp2Noise } = front.limits
    this.connection = new ServerConnection(this, {
      maxListBytes: maxHeadBytes + FIELD_OVERHEAD * maxHeaderCount,
      // A slightly too large head still gets the response 431.
      maxBlockBytes: 2 * maxHeadBytes,
      maxStreams: maxHttp2Streams,
      maxResets: maxHttp2Resets,
      maxNoise: maxHttp2Noise,
    })
  }

  begin(): void {
    this.#hasBegun = true
    if (this.front.isShut) this.drain()
    this.#flush()
  }

  get limits(): Bounds {
    return this.front.limits
  }

  // ── From the socket ────────────────────────────────────────────────────────────────────────────────────────

  received(bytes: Uint8Array): void {
    this.#input.received(bytes)
  }

  drained(): void {
    if (!this.#output.flush()) return
    this.#waitingBytes = 0
    if (this.#phase === 'closing') return this.#linger()
    this.connection.sender.isBlocked = false
    this.#flush()
  }

  ended(): void {
    this.#input.ended()
  }

  closed(): void {
    this.#phase = 'closed'
    this.#idle.close()
    this.#frameTime.close()
    this.#input.close()
    this.#output.close()
    this.connection.close()
    this.connection.sender.outbox.clear()
    this.front.left(this)
  }

  // ── Frames in ──────────────────────────────────────────────────────────────────────────────────────────────

  readonly isHeadAwaited = false

  get isParsing(): boolean {
    return this.#phase === 'open'
  }

  take(bytes: Uint8Array, at: number): number {
    if (this.#phase !== 'open') {
      // Cutting this connection costs less than keeping it, although such visitors return.
      if (this.#input.dropsTooMuch(bytes.length - at, MAX_DROPPED_BYTES)) this.#cutOff()
      return bytes.length
    }
    if (this.#isSilent) this.#frameTime.awaitHead()
    this.#isSilent = false
    this.#isTaking = true
    const next = this.connection.receive(bytes, at, FRAMES_IN_A_TURN, this.front.deadlines.tick)
    this.#isTaking = false
    this.#watchFrames()
    if (!this.connection.sender.outbox.isEmpty || this.connection.sender.isAwaited) this.#flush()
    return next
  }

  /** Limits the time from the first byte of a frame or head to its last, however slowly they arrive. */
  #watchFrames(): void {
    const { isInside } = this.connection
    if (isInside === this.#isInside || this.#phase !== 'open') return
    this.#isInside = isInside
    if (isInside) this.#frameTime.awaitHead()
    else this.#frameTime.stop()
    if (this.#hasPreface) return
    this.#hasPreface = true
    if (this.connection.streamCount === 0 && !this.#isDraining) this.#idle.awaitRequest()
  }

  inputEnded(): void {
    if (this.#phase !== 'open') return
    this.connection.endRequests()
    if (this.connection.streamCount === 0) this.#close()
    else this.#output.expectAnswer(HALF_CLOSE_GRACE_MS)
  }

  waits(): void {
    if (!this.#input.keepsTooMuch) return
    eventLoop.soon(() => this.#input.keepsTooMuch && this.#cutOff())
  }

  // ── ServerConnectionHost ───────────────────────────────────────────────────────────────────────────────────

  requested(stream: ServerStream, fields: FieldList, isLast: boolean): void {
    if (!this.#isDraining) this.#idle.stop()
    // One request begins at once, and more while there is time: a portion on each of 200 connections is 3,200 requests.
    if (!this.#input.hasTurn && !this.front.turns.hasTime) this.connection.endPortion()
    new StreamChannel(this, stream).begin(fields, isLast)
  }

  /** Called after frames were written. Frames of one turn are sent together. */
  framed(): void {
    if (this.#isFlushPlanned || this.#isTaking || !this.#hasBegun) return
    this.#isFlushPlanned = true
    if (this.connection.streamCount > 1) eventLoop.soon(this.#plannedFlush)
    else queueMicrotask(this.#plannedFlush)
  }

  idle(): void {
    if (this.#phase !== 'open') return
    if (this.#isSettled) return this.#close()
    if (this.#input.hasEnded) this.#close()
    else if (!this.#isDraining) this.#idle.awaitRequest()
  }

  failed(): void {
    this.#output.hurry(LINGER_MS)
    this.#close()
  }

  /** Counts a reset as a new connection of the address, because a visitor can open the next connection at little cost. */
  mayReset(): boolean {
    return this.#admitted?.mayGiveUp() ?? true
  }

  leftUnanswered(count: number): void {
    this.#admitted?.gaveUp(count)
  }

  sawGoaway(): void {
    this.#settle()
  }

  // ── Frames out ─────────────────────────────────────────────────────────────────────────────────────────────

  readonly #plannedFlush = () => {
    this.#isFlushPlanned = false
    this.#flush()
  }

  /** Sends the outbox, and then frames that waited for room in it. */
  #flush(): void {
    const { sender } = this.connection
    for (let round = 0; round < OUTBOXES_IN_A_TURN; round++) {
      if (this.#phase === 'open') sender.pump()
      if (!this.#send()) return
      if (!sender.isAwaited || !sender.hasRoom) return
    }
    this.framed()
  }

  /** Sends frames. Returns `false` if the kernel is full, or there is nothing to send. */
  #send(): boolean {
    const { outbox } = this.connection.sender
    if (outbox.isEmpty) return false
    if (this.#phase === 'closed') return false
    const count = outbox.end
    const isTaken = this.#output.write(outbox.bytes, 0, count)
    outbox.clear()
    if (isTaken) return true
    this.connection.sender.isBlocked = true
    this.#waitingBytes += count
    // The visitor sends requests without reading the responses.
    if (this.#waitingBytes > MAX_WAITING_BYTES) this.#cutOff()
    return false
  }

  /** Called when the outbox is full: sends it now. */
  filled(): void {
    if (this.connection.sender.outbox.isFull && !this.#isTaking) this.#send()
  }

  // ── Deadlines, and the end of the server ───────────────────────────────────────────────────────────────────

  #waitedTooLong(): void {
    if (this.#phase === 'lingering') return this.#socket.terminate()
    if (this.#phase !== 'open') return
    if (this.#isDraining) return this.#settle()
    if (this.connection.streamCount > 0) return
    // Open exchanges have timeouts of their own.
    if (this.#isInside) return this.#idle.awaitLeave(this.limits.headTimeoutMs)
    this.connection.settle()
    this.#close()
  }

  #frameTookTooLong(): void {
    if (this.#phase === 'open') this.connection.fail(Code.ENHANCE_YOUR_CALM, 'a frame or head takes too long')
  }

  /** Called when the visitor reads none of the bytes that wait for the kernel. */
  visitorStalled(): void {
    this.#cutOff()
  }

  /** Called when the visitor sent FIN and origins have sent nothing since. */
  answerStalled(): void {
    this.#socket.terminate()
  }

  #isDraining = false
  #isSettled = false

  /** Called when the server stops. Streams that the visitor opens before it knows are still served. */
  drain(): void {
    if (this.#phase !== 'open' || this.#isDraining) return
    this.#isDraining = true
    this.connection.shutDown()
    this.#idle.awaitLeave(GOAWAY_MS)
    this.#flush()
  }

  #settle(): void {
    if (this.#isSettled || this.#phase !== 'open') return
    this.#isSettled = true
    this.#idle.stop()
    this.connection.settle()
    if (this.connection.streamCount === 0) this.#close()
  }

  letGo(): void {
    if (this.#phase === 'lingering' && this.#socket.letGo !== undefined) this.#socket.letGo()
    else this.#socket.terminate()
  }

  forgetHop(): void {
    this.visitor.forget()
  }

  // ── Room on the server ─────────────────────────────────────────────────────────────────────────────────────

  get asked(): AskedCertificate | undefined {
    return this.#socket.asked
  }

  isRefused(): boolean {
    return this.#admitted?.isRefused() ?? false
  }

  takesRequest(): (() => void) | undefined {
    return this.#admitted === undefined ? () => {} : this.#admitted.takesRequest()
  }

  giveWay(): boolean {
    const isIdle = this.#phase === 'open' && this.connection.streamCount === 0 && this.#output.isEmpty
    const isDone = (isIdle && !this.#input.isQueued && this.#idle.isLong) || this.#phase === 'lingering'
    if (isDone) this.#socket.terminate()
    return isDone
  }

  // ── The end ────────────────────────────────────────────────────────────────────────────────────────────────

  /** Sends the remaining bytes, then FIN, and for a while reads and drops the visitor's bytes. */
  #close(): void {
    if (this.#phase !== 'open') return
    this.#phase = 'closing'
    this.#frameTime.stop()
    this.#idle.stop()
    this.#output.expectAnswer(0)
    this.connection.close()
    this.#send()
    this.#input.leaveQueue()
    this.#input.resume()
    this.#output.end()
    if (this.#output.isEmpty) this.#linger()
  }

  #linger(): void {
    this.#phase = 'lingering'
    this.front.settled(this)
    this.#idle.awaitLeave(LINGER_MS)
  }

  #cutOff(): void {
    this.#socket.terminate()
  }
}

/** Takes a connection, with TLS removed. */
export function acceptHttp2(
  front: HttpShare,
  socket: Socket,
  entrance: Entrance,
  admitted: AdmittedVisitor | undefined,
): Http2Connection {
  const connection = new Http2Connection(socket, front, entrance, admitted)
  front.entered(connection)
  connection.begin()
  return connection
}
