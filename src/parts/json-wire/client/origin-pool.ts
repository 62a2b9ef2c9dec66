// Whole exchanges with the origin, for a wire with whole messages: keep-alive connections, one exchange at a time on each.

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
/** The number of idle connections that are each reserved for one visitor. If exceeded, the one that waited longest is closed. */
const MAX_PRIVATE = 256
/** The limits of response heads. The origin is the user's own app, so they are as generous as those of other clients. */
const HEAD_LIMITS = { maxHeadBytes: 262_144, maxHeaderCount: 1_000, isOption: false }

export interface OriginRequest {
  readonly method: string
  /** The head and body in their form for the connection. */
  readonly bytes: Uint8Array
  readonly timeoutMs: number
  /** The maximum size of a response's body. If exceeded: `WIRE_UNSUPPORTED`. */
  readonly maxBodyBytes: number
  /** Whether the request has a login that belongs to the connection. */
  readonly logsConnectionIn: boolean
  /**
   * The number of the visitor's connection, to which the app's connection belongs after such a login. `undefined` if
   * it is unknown.
   */
  readonly connection: number | undefined
}

export interface OriginAnswer {
  readonly status: number
  readonly headers: [name: string, value: string][]
  readonly body: Uint8Array
}

/** Called exactly once with the outcome of a request. `reason`: what is wrong with a response that is `ORIGIN_INVALID`. */
export type Settled = (outcome: OriginAnswer | TunnelError, reason?: string) => void

export class OriginPool {
  readonly #origin: Origin
  readonly #budget: Budget
  readonly #connections = new Set<OriginConnection>()
  /** The idle connections, the most recently used last. */
  readonly #idle: OriginConnection[] = []
  /** The logged-in connections by the visitor's connection, the one that waited longest first. */
  readonly #private = new Map<number, OriginConnection>()

  /**
   * Makes the pool. `budget` limits the bytes of all responses being collected. A response without room fails with `TUNNEL_BUSY`.
   */
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

  /** Cuts the connection of this request, which fails with `CANCELLED`. Does nothing if the request is over. */
  cancel(request: OriginRequest): void {
    for (const connection of this.#connections) if (connection.isOn(request)) connection.terminate()
  }

  /** Cuts all connections: requests in progress fail. */
  close(): void {
    for (const connection of this.#connections) connection.terminate()
  }

  #keep(visitor: number, connection: OriginConnection): void {
    // One visitor's connection may have several requests at once, sent by a proxy in between.
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
  /** Called when the exchange is over and the connection can be used again. */
  freed(): void
  /** Does the same as `freed`, but only for this visitor's connection. */
  kept(visitor: number): void
  /** Called when an idle connection was dead, before any byte of a response. */
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
  /** Whether a login counts for the connection. */
  #isLoggedIn = false
  visitor: number | undefined
  #request: OriginRequest | undefined
  #settled: Settled | undefined
  readonly #unsent = new SendQueue()
  #body: Uint8Array[] = []
  /** The number of bytes of the response that count in the budget. */
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
    // A response without a request could only mislead the next visitor.
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
    // No request on this wire asks for an upgrade.
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

  /** Counts stored bytes of a response. Returns `false` if all responses together have too many. */
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
    // After a response that came before the end of the request, the rest of the request is still unsent.
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
    // Events without end cannot be put into one message.
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

/** Returns the headers as slices of one string for the whole head, in which offsets of bytes and characters are equal. */
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

/** A limit on the bytes that many responses may have together. */
export class Budget {
  readonly #maxBytes: number
  #heldBytes = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Counts bytes that are stored; negative when they are freed. Returns `false` if there are too many. */
  hold(bytes: number): boolean {
    this.#heldBytes += bytes
    return this.#heldBytes <= this.#maxBytes
  }
}
