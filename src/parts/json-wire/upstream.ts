// An upstream on the JSON wire: collects a request, sends it as one message, and gets one message as its response.

import { ByteBuffer } from '../../bytes.ts'
import { ERRORS, type ErrorCode, isErrorCode } from '../../errors.ts'
import { type BodyFramer, bodyOf } from '../../http/body.ts'
import { logsConnectionIn } from '../../http/connection-logins.ts'
import {
  DEAD_EXCHANGE,
  type Exchange,
  type TunnelUpstream,
  type Visit,
} from '../../server/contracts/upstream.ts'
import type { Deadline } from '../../server/limits/deadlines.ts'
import { Takers } from '../../server/limits/takers.ts'
import { visitorOf } from '../../server/limits/visitor-hop.ts'
import type { Bounds } from '../../server/settings/bounds.ts'
import { answerHead, hasBody } from './answer-head.ts'
import { decodeBody, encodeBody, encodeRequest, type JsonAnswer } from './json.ts'
import { requestParts } from './request-parts.ts'
import type { JsonRequests } from './requests.ts'

/** The size up to which a response leaves with its head in one write; a larger one is sent in pieces of this size. */
const PIECE_BYTES = 262_144
/** The room for everything in a message except its body. */
const ENVELOPE_BYTES = 131_072
/** The maximum memory of the requests of one client, in multiples of the largest message. */
const MAX_HELD_MESSAGES = 2

const CONTINUE = new TextEncoder().encode('HTTP/1.1 100 Continue\r\n\r\n')

export class JsonUpstream implements TunnelUpstream {
  readonly wire = 'json'
  readonly #requests: JsonRequests
  readonly #open = new Set<JsonExchange>()
  readonly #takers = new Takers()

  constructor(requests: JsonRequests) {
    this.#requests = requests
  }

  get inFlight(): number {
    return this.#open.size
  }

  begin(visit: Visit): Exchange {
    const visitor = visitorOf(visit, undefined)
    const refusal = this.#refusal(visit, visitor)
    if (refusal !== undefined) {
      visit.fail(refusal)
      return DEAD_EXCHANGE
    }
    const { streamBudget } = this.#requests
    const exchange = new JsonExchange(visit, visitor, this.#requests, {
      hasRoom: () => this.#hasRoomFor(exchange),
      ended: () => {
        this.#open.delete(exchange)
        this.#takers.delete(visitor, exchange)
        streamBudget.close()
      },
    })
    this.#open.add(exchange)
    this.#takers.add(visitor, exchange)
    return exchange
  }

  /** Returns a code, because messages cannot carry raw bytes both ways. */
  open(): ErrorCode {
    return 'KIND_REFUSED'
  }

  /** Called when the client is gone: visitors that wait for it get an error at once. */
  clientGone(): void {
    for (const exchange of this.#open) exchange.clientGone()
  }

  #refusal({ head }: Visit, visitor: string): ErrorCode | undefined {
    const { limits, isClosed } = this.#requests
    if (isClosed) return 'CLIENT_GONE'
    // Messages cannot carry raw bytes both ways, and `docker exec` must not run a command whose output is lost.
    if (head.upgrade !== '') return 'WIRE_UNSUPPORTED'
    if (head.contentLength > maxBodyBytes(limits)) return 'BODY_TOO_LARGE'
    return this.#hasRoomFor() && this.#takesStream(visitor) ? undefined : 'TUNNEL_BUSY'
  }

  /** Counts the request as a stream from now on. Returns `false` if there is none free. */
  #takesStream(visitor: string): boolean {
    const { limits, streamBudget } = this.#requests
    const takers = this.#takers
    const isFree = () => this.#open.size < limits.maxStreams && streamBudget.open()
    return !takers.isMakingRoom && (isFree() || (takers.makeRoomFor(visitor) && isFree()))
  }

  /**
   * Whether requests may continue, or `asking` may. Above the limit, the largest request of the visitor with the most
   * ends, so that a few unfinished ones do not use up the room.
   */
  #hasRoomFor(asking?: JsonExchange): boolean {
    const mostBytes = MAX_HELD_MESSAGES * this.#requests.limits.maxMessageBytes
    while (this.#requests.heldBytes > mostBytes) {
      // Ending visitors' requests does not help if the client does not take the bytes.
      const isClients = this.#requests.heldBytes - this.#requests.collectedBytes > mostBytes
      const largest = isClients ? undefined : this.#largest()
      if (largest === undefined || largest === asking) return false
      largest.giveWay()
    }
    return !this.#requests.isOver
  }

  #largest(): JsonExchange | undefined {
    const totals = new Map<string, number>()
    for (const { visitor, collectedBytes } of this.#open)
      totals.set(visitor, (totals.get(visitor) ?? 0) + collectedBytes)
    const most = Math.max(...totals.values())
    let largest: JsonExchange | undefined
    for (const one of this.#open)
      if (totals.get(one.visitor) === most && one.collectedBytes > (largest?.collectedBytes ?? 0))
        largest = one
    return largest
  }
}

type Phase =
  | 'collecting'
  | 'waiting'
  /** The response is being sent to the visitor. */
  | 'answering'
  | 'over'

interface JsonExchangeOwner {
  hasRoom(): boolean
  ended(): void
}

export class JsonExchange implements Exchange, Deadline {
  dueTick = 0
  readonly visitor: string
  readonly #visit: Visit
  readonly #requests: JsonRequests
  readonly #owner: JsonExchangeOwner
  #phase: Phase = 'collecting'
  #framer: BodyFramer | undefined
  #body: ByteBuffer | undefined
  #id = 0
  /** The part of the response's body that the visitor did not take yet. */
  #rest: Uint8Array | undefined
  /** The number of charged bytes: the whole body, until the visitor has all of it. */
  #restBytes = 0

  constructor(visit: Visit, visitor: string, requests: JsonRequests, owner: JsonExchangeOwner) {
    this.#visit = visit
    this.visitor = visitor
    this.#requests = requests
    this.#owner = owner
    const { head } = visit
    if (head.body === 'none') return
    this.#framer = bodyOf(head, (bytes, start, end) => this.#keep(bytes.subarray(start, end)))
    requests.deadlines.watch(this)
    requests.deadlines.arm(this, requests.limits.headTimeoutMs)
    // The message contains head and body, so the app cannot decide about 100 (Continue).
    if (head.expectsContinue) visit.write(CONTINUE)
  }

  // ── From the visitor ───────────────────────────────────────────────────────────────────────────────────────

  body(bytes: Uint8Array): void {
    if (this.#phase !== 'collecting' || this.#framer === undefined) return
    this.#framer.feed(bytes, 0, bytes.length)
    const { limits, deadlines } = this.#requests
    deadlines.arm(this, limits.headTimeoutMs)
    if (this.#framer.payloadBytes > maxBodyBytes(limits)) return this.#fail('BODY_TOO_LARGE')
    if (!this.#owner.hasRoom()) this.#fail('TUNNEL_BUSY')
  }

  /** The stored bytes of an incomplete request. */
  get collectedBytes(): number {
    return this.#phase === 'collecting' ? (this.#framer?.payloadBytes ?? 0) : 0
  }

  /** Ends the request, because others need the room. */
  giveWay(): void {
    this.#fail('TUNNEL_BUSY')
  }

  bodyEnded(): void {
    if (this.#phase !== 'collecting') return
    const { head } = this.#visit
    const parts = requestParts(this.#visit, this.#requests.keepsRawPaths)
    const bodyBytes = this.#body?.take()
    const isBodiless = head.method === 'GET' || head.method === 'HEAD'
    // Existing clients drop the body of these methods, which would change the request.
    if (parts === undefined || (isBodiless && bodyBytes !== undefined)) return this.#fail('WIRE_UNSUPPORTED')
    const { path, headers } = parts
    const body = isBodiless ? undefined : this.#encoded(bodyBytes)
    const id = this.#requests.nextId()
    const connection = this.#connection
    const probe = this.#visit.isProbe === true && { isProbe: true as const }
    const request = { type: 'request', id, method: head.method, path, headers, connection, ...probe } as const
    let message = encodeRequest(body === undefined ? request : { ...request, body })
    if (bodyBytes !== undefined && message.length * 3 > this.#requests.limits.maxMessageBytes) {
      // Escapes and characters of several bytes can make text several times as long; base64 always fits.
      const isTooLong = Buffer.byteLength(message) > this.#requests.limits.maxMessageBytes
      if (isTooLong) message = encodeRequest({ ...request, body: encodeBody(bodyBytes, undefined) })
    }
    this.#id = id
    this.#phase = 'waiting'
    const { limits, deadlines } = this.#requests
    deadlines.watch(this)
    deadlines.arm(this, this.#visit.originTimeoutMs ?? limits.originTimeoutMs)
    this.#requests.send(id, message, this)
    this.#release()
  }

  drained(): void {
    if (this.#phase === 'answering') this.#pump()
  }

  /** Called when the visitor left. An existing client continues its work, and its response will be dropped. */
  abandoned(): void {
    this.#end()
  }

  // ── From the client ────────────────────────────────────────────────────────────────────────────────────────

  /** Called with the response to this exchange; `undefined` if it is not valid. */
  answered(answer: JsonAnswer | undefined): void {
    if (this.#phase !== 'waiting') return
    const body = answer && decodeBody(answer.body)
    if (answer === undefined || body === undefined) return this.#fail('ORIGIN_INVALID')
    if (answer.error !== undefined && isBelieved(answer.error)) return this.#fail(answer.error, answer.reason)
    const visit = this.#visit
    if (visit.logins !== undefined && answer.headers.some(logsConnectionIn)) visit.logins.hasBegun = true
    const sent = hasBody(answer.status, visit.head.method) ? body : body.subarray(0, 0)
    const head = answerHead(answer, visit, sent.length, this.#requests.limits)
    if (head === undefined) return this.#fail('ORIGIN_INVALID')
    this.#phase = 'answering'
    this.#requests.deadlines.forget(this)
    visit.answered(answer.status)
    const first = Math.min(sent.length, PIECE_BYTES)
    const bytes = Buffer.allocUnsafe(head.length + first)
    bytes.write(head, 'latin1')
    bytes.set(first === sent.length ? sent : sent.subarray(0, first), head.length)
    this.#rest = first === sent.length ? undefined : sent.subarray(first)
    this.#restBytes = sent.length - first
    this.#requests.charge(this.#restBytes)
    if (visit.write(bytes)) this.#pump()
    else if (this.#rest === undefined) this.#done()
  }

  clientGone(): void {
    if (this.#phase !== 'answering') this.#fail('CLIENT_GONE')
  }

  expired(): void {
    if (this.#phase === 'waiting') this.#fail('ORIGIN_TIMEOUT')
    else if (this.#phase === 'collecting') this.#fail('REQUEST_TIMEOUT')
  }

  // ── Steps ──────────────────────────────────────────────────────────────────────────────────────────────────

  /** The number of the visitor's connection, once an app asked for a login of it or accepted one. */
  get #connection(): number | undefined {
    const { head, logins } = this.#visit
    if (logins === undefined) return undefined
    if (head.fields.logsConnectionIn) logins.hasBegun = true
    return logins.hasBegun && this.#requests.keepsLogins ? logins.number : undefined
  }

  #keep(bytes: Uint8Array): void {
    this.#body ??= new ByteBuffer()
    this.#body.add(bytes)
    this.#requests.hold(bytes.length)
  }

  #encoded(bytes: Uint8Array | undefined): ReturnType<typeof encodeBody> {
    return encodeBody(bytes ?? NOTHING, this.#visit.head.header('content-type'))
  }

  /** Writes until the visitor's buffer is full, which at most one piece then exceeds. */
  #pump(): void {
    while (this.#rest !== undefined) {
      const piece = this.#rest.subarray(0, PIECE_BYTES)
      this.#rest = piece.length === this.#rest.length ? undefined : this.#rest.subarray(PIECE_BYTES)
      if (!this.#visit.write(piece)) break
    }
    if (this.#rest === undefined) this.#done()
  }

  #done(): void {
    this.#end()
    this.#visit.done(true)
  }

  #fail(code: ErrorCode, reason?: string): void {
    if (this.#phase === 'over') return
    this.#end()
    this.#visit.fail(code, undefined, reason)
  }

  #end(): void {
    if (this.#phase === 'over') return
    if (this.#phase === 'waiting') this.#requests.forget(this.#id)
    this.#phase = 'over'
    this.#requests.deadlines.forget(this)
    this.#release()
    this.#requests.charge(-this.#restBytes)
    this.#restBytes = 0
    this.#rest = undefined
    this.#owner.ended()
  }

  #release(): void {
    const held = this.#framer?.payloadBytes ?? 0
    if (held > 0) this.#requests.hold(-held)
    this.#framer = undefined
    this.#body = undefined
  }
}

const NOTHING = new Uint8Array(0)

/** Returns the maximum request body that fits in a message as base64, whatever its bytes. */
function maxBodyBytes(limits: Bounds): number {
  return Math.max(0, Math.floor(((limits.maxMessageBytes - ENVELOPE_BYTES) * 3) / 4))
}

/** Whether a code of the client is accepted. The client is not trusted, so only codes about the origin and the wire are. */
function isBelieved(code: string): code is ErrorCode {
  return isErrorCode(code) && (code === 'WIRE_UNSUPPORTED' || ERRORS[code].fault === 'origin')
}
