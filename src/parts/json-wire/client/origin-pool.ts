// Whole exchanges with the origin, for a wire that carries whole messages: keep-alive connections, one exchange each.

import { copyOf, SendQueue } from '../../../bytes.ts'
import type { Origin } from '../../../client/origins/origin.ts'
import { ERRORS, type ErrorCode, TunnelError } from '../../../errors.ts'
import { eventLoop } from '../../../event-loop.ts'
import { IDEMPOTENT, joined } from '../../../http/characters.ts'
import type { ResponseHead } from '../../../http/head.ts'
import { ResponseReader } from '../../../http/message-reader.ts'
import type { Socket, SocketHandler } from '../../../socket.ts'
import { latin1Text } from '../json.ts'

/** The time in milliseconds after which an idle connection closes: below the 5 s of Node, with room for a request in flight. */
const IDLE_MS = 4_000
/** Connections that wait, each for its one visitor. Of more, the one that waited longest is closed. */
const MAX_PRIVATE = 256
/** The origin is the user's own app: as generous as other clients of it. */
const HEAD_LIMITS = { maxHeadBytes: 262_144, maxHeaderCount: 1_000, isOption: false }

export interface OriginRequest {
  readonly method: string
  /** The head and body as they go on the connection. */
  readonly bytes: Uint8Array
  readonly timeoutMs: number
  /** The maximum size of a response's body. If exceeded: `WIRE_UNSUPPORTED`. */
  readonly maxBodyBytes: number
  /** Whether it has a login that belongs to the connection. */
  readonly logsConnectionIn: boolean
  /** The visitor's connection, which the app's belongs to when there is such a login; `undefined`: it is not known. */
  readonly connection: number | undefined
}

export interface OriginAnswer {
  readonly status: number
  readonly headers: [name: string, value: string][]
  readonly body: Uint8Array
}

/**
 * Called exactly once with the outcome of a request. Called exactly once. `reason`: what is wrong with a response that is
 * `ORIGIN_INVALID`.
 */
export type Settled = (outcome: OriginAnswer | TunnelError, reason?: string) => void

export class OriginPool {
  readonly #origin: Origin
  readonly #budget: Budget
  readonly #connections = new Set<OriginConnection>()
  /** The most recently used last. */
  readonly #idle: OriginConnection[] = []
  /** The logged-in connections by the visitor's connection; the one that waited longest first. */
  readonly #private = new Map<number, OriginConnection>()

  /** Makes the pool. `budget` is for all responses that are being collected. A response that has no room left: `TUNNEL_BUSY`. */
  constructor(origin: Origin, budget: Budget) {
    this.#origin = origin
    this.#budget = budget
  }

  request(request: OriginRequest, settled: Settled): void {
    const { connection } = request
    const own = connection === undefined ? undefined : this.#private.get(connection)
    if (connection !== undefined) this.#private.delete(connection)
    const idle = own ?? this.#idle.pop()
    if (idle === undefined) this.#onNew(request, settled)
    else idle.request(request, settled)
  }

  /** Cuts the connection that this request is on: it fails with `CANCELLED`. A request that is over is left in peace. */
  cancel(request: OriginRequest): void {
    for (const connection of this.#connections) if (connection.isOn(request)) connection.terminate()
  }

  /** Cuts all connections: whatever is in progress fails. */
  close(): void {
    for (const connection of this.#connections) connection.terminate()
  }

  #keep(visitor: number, connection: OriginConnection): void {
    // One visitor's connection may have several requests at once: those of its program on the way.
    this.#private.get(visitor)?.terminate()
    this.#private.set(visitor, connection)
    const [oldest] = this.#private.values()
    if (this.#private.size > MAX_PRIVATE) oldest?.terminate()
  }

  #onNew(request: OriginRequest, settled: Settled): void {
    const connection = new OriginConnection(this.#budget, {
      freed: () => this.#idle.push(connection),
      kept: visitor => this.#keep(visitor, connection),
      stale: (again, whoWaits) => this.#onNew(again, whoWaits),
      gone: () => {
        this.#connections.delete(connection)
        const { visitor } = connection
        if (visitor !== undefined && this.#private.get(visitor) === connection) this.#private.delete(visitor)
        const index = this.#idle.indexOf(connection)
        if (index !== -1) this.#idle.splice(index, 1)
      },
    })
    this.#connections.add(connection)
    connection.request(request, settled)
    this.#origin.connect(connection).then(
      socket => connection.opened(socket),
      (cause: unknown) =>
        connection.failed(
          cause instanceof TunnelError ? cause : new TunnelError('ORIGIN_UNREACHABLE', undefined, { cause }),
        ),
    )
  }
}

interface Owner {
  /** The exchange is over and the connection good for another. */
  freed(): void
  /** The same, but for this visitor's connection alone. */
  kept(visitor: number): void
  /** An idle connection turned out to be dead; nothing of a response came. */
  stale(request: OriginRequest, settled: Settled): void
  gone(): void
}

class OriginConnection implements SocketHandler {
  readonly #owner: Owner
  readonly #budget: Budget
  readonly #reader: ResponseReader = new ResponseReader(true, (bytes, start, end) =>
    this.#body.push(copyOf(bytes, start, end)),
  )
  #socket: Socket | undefined
  /** A login counts for the connection. */
  #isLoggedIn = false
  visitor: number | undefined
  #request: OriginRequest | undefined
  #settled: Settled | undefined
  readonly #unsent = new SendQueue()
  #body: Uint8Array[] = []
  /** Bytes of the response so far, as they count in the budget. */
  #heldBytes = 0
  #isInBody = false
  #isReused = false
  #hasAnswerBytes = false
  #isGone = false
  #cancelTimer: () => void = nothing

  constructor(budget: Budget, owner: Owner) {
    this.#budget = budget
    this.#owner = owner
  }

  isOn(request: OriginRequest): boolean {
    return this.#request === request
  }

  request(request: OriginRequest, settled: Settled): void {
    this.#cancelTimer()
    this.#request = request
    this.#settled = settled
    this.#isLoggedIn ||= request.logsConnectionIn
    this.visitor = request.connection
    this.#hasAnswerBytes = false
    this.#cancelTimer = eventLoop.after(request.timeoutMs, () => this.#expired())
    if (this.#socket === undefined) this.#unsent.keep(request.bytes)
    else this.#unsent.send(this.#socket, request.bytes)
  }

  opened(socket: Socket): void {
    this.#socket = socket
    if (this.#isGone) socket.terminate()
    else this.drained()
  }

  failed(error: TunnelError): void {
    this.#end(error)
  }

  terminate(): void {
    this.#end(new TunnelError('CANCELLED'))
  }

  // ── From the origin ────────────────────────────────────────────────────────────────────────────────────────

  received(bytes: Uint8Array): void {
    if (this.#isGone) return
    // Nothing was asked: whatever this is, the next visitor must not get it.
    if (this.#request === undefined) return this.#end()
    this.#hasAnswerBytes = true
    if (this.#isInBody) this.#takeBody(bytes, 0)
    // The head is read again at the end of the body.
    else this.#takeHead(this.#request, copyOf(bytes))
  }

  drained(): void {
    if (this.#socket !== undefined) this.#unsent.flush(this.#socket)
  }

  ended(): void {
    if (this.#isInBody && this.#reader.body.ended()) this.#complete(false)
    else this.#broken()
  }

  /** Called at the end. An `error` with a code came from a `fetch` handler, which must not be called again. */
  closed(error?: Error): void {
    if (this.#isGone) return
    if (error instanceof TunnelError) this.#end(error)
    else this.#broken()
  }

  #takeHead(request: OriginRequest, bytes: Uint8Array): void {
    const reader = this.#reader
    const { head } = reader
    let at = 0
    do {
      at = reader.readHead(bytes, at, bytes.length, HEAD_LIMITS, request.method)
      if (at === -1) return this.#failInvalid(head.fault)
      if (at === 0) {
        if (!this.#holds(reader.begunBytes)) this.#fail('TUNNEL_BUSY')
        return
      }
      // Interim responses have no place on this wire.
    } while (!reader.isFinal)
    this.#isLoggedIn ||= head.fields.logsConnectionIn
    // No request of this wire asks for an upgrade.
    if (head.status === 101)
      return this.#failInvalid('it is a 101 to a protocol that the visitor did not ask for')
    if (head.contentLength > request.maxBodyBytes && head.body === 'length')
      return this.#fail('WIRE_UNSUPPORTED')
    this.#isInBody = true
    this.#takeBody(bytes, at)
  }

  #takeBody(bytes: Uint8Array, from: number): void {
    const { body, head } = this.#reader
    const end = body.feed(bytes, from, bytes.length)
    if (end === -1) return this.#failInvalid(body.fault)
    if (body.payloadBytes > (this.#request?.maxBodyBytes ?? 0)) return this.#fail('WIRE_UNSUPPORTED')
    if (!this.#holds(body.payloadBytes)) return this.#fail('TUNNEL_BUSY')
    if (body.complete) this.#complete(head.keepAlive && end === bytes.length)
  }

  /**
   * Counts bytes of a response in memory. Returns `false` if that is too much, with those of the others.
   */
  #holds(bytes: number): boolean {
    const more = bytes - this.#heldBytes
    this.#heldBytes = bytes
    return this.#budget.hold(more)
  }

  // ── The end of an exchange, and of the connection ──────────────────────────────────────────────────────────

  #complete(isSound: boolean): void {
    const settled = this.#settled
    const { head } = this.#reader
    const answer = { status: head.status, headers: headersOf(head), body: joined(this.#body) }
    this.#settled = undefined
    this.#request = undefined
    this.#isInBody = false
    this.#body = []
    this.#holds(0)
    this.#cancelTimer()
    // A response that came before the end of the request leaves the rest of it on the connection.
    if (isSound && this.#unsent.isEmpty) this.#idle()
    else this.#end()
    settled?.(answer)
  }

  #idle(): void {
    if (this.#isLoggedIn && this.visitor === undefined) return this.#end()
    this.#isReused = true
    this.#cancelTimer = eventLoop.after(IDLE_MS, () => this.#end())
    if (this.#isLoggedIn && this.visitor !== undefined) this.#owner.kept(this.visitor)
    else this.#owner.freed()
  }

  #broken(): void {
    const request = this.#request
    const settled = this.#settled
    const mayRetry = this.#isReused && !this.#hasAnswerBytes && request !== undefined && settled !== undefined
    if (!mayRetry || !IDEMPOTENT.has(request.method)) return this.#fail('ORIGIN_CLOSED')
    this.#settled = undefined
    this.#end()
    this.#owner.stale(request, settled)
  }

  #expired(): void {
    // Events that never end cannot be put into one message.
    const isStream =
      this.#isInBody && /^text\/event-stream\b/i.test(this.#reader.head.header('content-type') ?? '')
    this.#fail(isStream ? 'WIRE_UNSUPPORTED' : 'ORIGIN_TIMEOUT')
  }

  #failInvalid(reason: string): void {
    this.#end(
      new TunnelError('ORIGIN_INVALID', `${ERRORS.ORIGIN_INVALID.meaning.slice(0, -1)}: ${reason}.`),
      reason,
    )
  }

  #fail(code: ErrorCode): void {
    this.#end(new TunnelError(code))
  }

  #end(error?: TunnelError, reason?: string): void {
    if (this.#isGone) return
    this.#isGone = true
    this.#cancelTimer()
    this.#unsent.clear()
    this.#reader.reset()
    this.#body = []
    this.#holds(0)
    this.#socket?.terminate()
    this.#owner.gone()
    const settled = this.#settled
    this.#settled = undefined
    this.#request = undefined
    settled?.(error ?? new TunnelError('ORIGIN_CLOSED'), reason)
  }
}

/** Returns the headers as slices of one string for the whole head: a byte's offset is its character's. */
function headersOf({ bytes, start, end, fields }: ResponseHead): [name: string, value: string][] {
  const text = latin1Text(bytes, start, end)
  const headers: [string, string][] = []
  for (let line = 0; line < fields.count; line++) {
    const nameStart = fields.lineStart(line) - start
    headers.push([
      text.slice(nameStart, text.indexOf(':', nameStart)),
      text.slice(fields.valueStart(line) - start, fields.valueEnd(line) - start),
    ])
  }
  return headers
}

function nothing(): void {}

/** Bytes that many responses may hold together. */
export class Budget {
  readonly #maxBytes: number
  #heldBytes = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Counts bytes that are held from now on; negative when they no longer are. `false`: more than there may be. */
  hold(bytes: number): boolean {
    this.#heldBytes += bytes
    return this.#heldBytes <= this.#maxBytes
  }
}
