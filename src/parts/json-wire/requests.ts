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
  /** Requests sent and without a response. */
  readonly #waiting = new Map<number, JsonExchange>()
  /** The features of the client beyond those of existing clients. */
  readonly #accepts = new Set<JsonExtension>()
  /** Responses that may still come, wanted or not. */
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

  /** Whether a response may come, wanted or not. */
  get areOwed(): boolean {
    return this.#owedAnswers > 0
  }

  /** A response came. `false`: no request waits for it. Ids of other clients' requests are not among those that wait. */
  answered(id: number, answer: JsonAnswer | undefined): boolean {
    const exchange = this.#waiting.get(id)
    if (exchange === undefined) return false
    this.#owedAnswers--
    this.#waiting.delete(id)
    exchange.answered(answer)
    return true
  }

  /** A response came that is not wanted any more. `false`: none was owed. */
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

  /** Bytes sent that the client did not take yet, and bytes of requests that are being collected. */
  get heldBytes(): number {
    return this.#collectedBytes + this.#carrier.unsentBytes
  }

  /** The latter alone. */
  get collectedBytes(): number {
    return this.#collectedBytes
  }

  /** Counts bytes of a request that are kept; negative when they are not any more. */
  hold(bytes: number): void {
    this.#collectedBytes += bytes
    this.#use.hold(bytes)
  }

  /** Counts bytes for the token of the client; negative when they do not wait any more. */
  charge(bytes: number): void {
    this.#use.hold(bytes)
  }

  /** Whether more bytes wait for readers of this token, or of all, than may. */
  get isOver(): boolean {
    return this.#use.isOver
  }

  get streamBudget(): StreamBudget {
    return this.#use.streamBudget
  }

  /** The number for the next request: no other exchange of this client ever had it. */
  nextId(): number {
    return ++this.#lastId
  }

  /** Sends a request; its response goes to `exchange.answered`. */
  send(id: number, message: string, exchange: JsonExchange): void {
    this.#waiting.set(id, exchange)
    this.#owedAnswers++
    this.#carrier.sendText(message)
  }

  /** The response is not wanted any more. A client that understands it stops its work on it. */
  forget(id: number): void {
    if (this.#waiting.delete(id) && this.#accepts.has('cancel') && !this.isClosed)
      this.#carrier.sendText(encodeCancel(id))
  }

  /** Paths keep their bytes above ASCII: the client understands them. */
  get keepsRawPaths(): boolean {
    return this.#accepts.has('raw-path')
  }

  /** Whether the client keeps an app's connection for one visitor's: it understands which one a request belongs to. */
  get keepsLogins(): boolean {
    return this.#accepts.has('connection')
  }
}
