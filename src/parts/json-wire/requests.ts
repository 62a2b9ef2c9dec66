// The requests that one JSON client was sent, and the responses that it owes.

import type { Clock } from '../../server/contracts/clock.ts'
import type { ClientHost } from '../../server/contracts/wire.ts'
import type { ClientUse } from '../../server/limits/client-use.ts'
import type { Bounds } from '../../server/settings/bounds.ts'
import type { WebSocketCarrier } from '../../session/carriers/websocket.ts'
import type { StreamBudget } from '../../session/contract.ts'
import { encodeCancel, type JsonAnswer, type JsonExtension } from './json.ts'
import type { JsonExchange } from './upstream.ts'

export class JsonRequests {
  /** Whether nothing is sent any more. */
  isClosed = false
  readonly #host: ClientHost
  readonly #carrier: WebSocketCarrier
  readonly #use: ClientUse
  /** The requests without a response. */
  readonly #waiting = new Map<number, JsonExchange>()
  /** The features of the client beyond those of existing clients. */
  readonly #accepts = new Set<JsonExtension>()
  /** The number of responses that may still come, needed or not. */
  #owedAnswers = 0
  #lastId = 0
  #collectedBytes = 0

  constructor(host: ClientHost, carrier: WebSocketCarrier, use: ClientUse) {
    this.#host = host
    this.#carrier = carrier
    this.#use = use
  }

  // ── From the client ────────────────────────────────────────────────────────────────────────────────────────

  accept(extensions: readonly JsonExtension[]): void {
    for (const one of extensions) this.#accepts.add(one)
  }

  get areWaiting(): boolean {
    return this.#waiting.size > 0
  }

  /** Whether a response may come, needed or not. */
  get areOwed(): boolean {
    return this.#owedAnswers > 0
  }

  /** Called with a response. Returns `false` if no request waits for it. Only requests to this client wait here. */
  answered(id: number, answer: JsonAnswer | undefined): boolean {
    const exchange = this.#waiting.get(id)
    if (exchange === undefined) return false
    this.#owedAnswers--
    this.#waiting.delete(id)
    exchange.answered(answer)
    return true
  }

  /** Called with a response that is not needed any more. Returns `false` if none was owed. */
  answeredLate(): boolean {
    if (this.#owedAnswers <= this.#waiting.size) return false
    this.#owedAnswers--
    return true
  }

  close(): void {
    this.isClosed = true
    this.#waiting.clear()
  }

  // ── For its exchanges ──────────────────────────────────────────────────────────────────────────────────────

  get limits(): Bounds {
    return this.#host.server.limits
  }

  get deadlines(): Clock {
    return this.#host.server.deadlines
  }

  /** The number of sent bytes that the client did not take yet, and of bytes of requests being collected. */
  get heldBytes(): number {
    return this.#collectedBytes + this.#carrier.unsentBytes
  }

  /** The number of bytes of requests being collected. */
  get collectedBytes(): number {
    return this.#collectedBytes
  }

  /** Counts stored bytes of a request; negative when they are freed. */
  hold(bytes: number): void {
    this.#collectedBytes += bytes
    this.#use.hold(bytes)
  }

  /** Charges waiting bytes to the token of the client; negative when they do not wait any more. */
  charge(bytes: number): void {
    this.#use.hold(bytes)
  }

  /** Whether too many bytes wait for readers of this token, or in total. */
  get isOver(): boolean {
    return this.#use.isOver
  }

  get streamBudget(): StreamBudget {
    return this.#use.streamBudget
  }

  /** Returns the number for the next request, which no other exchange of this client had. */
  nextId(): number {
    return ++this.#lastId
  }

  /** Sends a request; its response goes to `exchange.answered`. */
  send(id: number, message: string, exchange: JsonExchange): void {
    this.#waiting.set(id, exchange)
    this.#owedAnswers++
    this.#carrier.sendText(message)
  }

  /** Called when the response is not needed any more. A client that understands the message stops its work. */
  forget(id: number): void {
    if (this.#waiting.delete(id) && this.#accepts.has('cancel') && !this.isClosed)
      this.#carrier.sendText(encodeCancel(id))
  }

  /** Whether paths keep their bytes above ASCII, which the client must understand. */
  get keepsRawPaths(): boolean {
    return this.#accepts.has('raw-path')
  }

  /** Whether the client reserves an app's connection for one visitor's, because it understands the number in a request. */
  get keepsLogins(): boolean {
    return this.#accepts.has('connection')
  }
}
