// The requests that one JSON client was sent, and the answers that it owes.

import type { ClientUse } from '../../server/client-use.ts'
import type { Deadlines } from '../../server/deadlines.ts'
import type { ServerLimits } from '../../server/options.ts'
import type { StreamBudget } from '../../session/contract.ts'
import { encodeCancel, type JsonAnswer, type JsonExtension } from '../../wire/json.ts'
import type { JsonExchange, JsonLink } from './upstream.ts'

/** Where messages to the client go. */
interface Messages {
  sendText(text: string): void
  /** Bytes that the client did not take yet. */
  readonly unsentBytes: number
}

/** What is needed of the server. */
interface RequestsHost {
  readonly limits: ServerLimits
  readonly deadlines: Deadlines
}

export class JsonRequests implements JsonLink {
  /** Nothing is sent any more. */
  isClosed = false
  readonly #host: RequestsHost
  readonly #messages: Messages
  readonly #use: ClientUse
  /** Requests sent and not answered. */
  readonly #waiting = new Map<number, JsonExchange>()
  /** What the client said to understand beyond existing clients. */
  readonly #accepts = new Set<JsonExtension>()
  /** Answers that may still come, wanted or not. */
  #owedAnswers = 0
  #lastId = 0
  #collectedBytes = 0

  constructor(host: RequestsHost, messages: Messages, use: ClientUse) {
    this.#host = host
    this.#messages = messages
    this.#use = use
  }

  // ── From the client ────────────────────────────────────────────────────────────────────────────────────────

  accept(extensions: readonly JsonExtension[]): void {
    for (const one of extensions) this.#accepts.add(one)
  }

  /** Whether any request waits for its answer. */
  get areWaiting(): boolean {
    return this.#waiting.size > 0
  }

  /** Whether an answer may come, wanted or not. */
  get areOwed(): boolean {
    return this.#owedAnswers > 0
  }

  /** An answer came. `false`: no request waits for it. Ids of other clients' requests are not among those that wait. */
  answered(id: number, answer: JsonAnswer | undefined): boolean {
    const exchange = this.#waiting.get(id)
    if (exchange === undefined) return false
    this.#owedAnswers--
    this.#waiting.delete(id)
    exchange.answered(answer)
    return true
  }

  /** An answer came that is not wanted any more. `false`: none was owed. */
  answeredLate(): boolean {
    if (this.#owedAnswers <= this.#waiting.size) return false
    this.#owedAnswers--
    return true
  }

  close(): void {
    this.isClosed = true
    this.#waiting.clear()
  }

  // ── JsonLink ───────────────────────────────────────────────────────────────────────────────────────────────

  get limits(): ServerLimits {
    return this.#host.limits
  }

  get deadlines(): Deadlines {
    return this.#host.deadlines
  }

  get heldBytes(): number {
    return this.#collectedBytes + this.#messages.unsentBytes
  }

  get collectedBytes(): number {
    return this.#collectedBytes
  }

  hold(bytes: number): void {
    this.#collectedBytes += bytes
    this.#use.hold(bytes)
  }

  charge(bytes: number): void {
    this.#use.hold(bytes)
  }

  get isOver(): boolean {
    return this.#use.isOver
  }

  get streamBudget(): StreamBudget {
    return this.#use.streamBudget
  }

  nextId(): number {
    return ++this.#lastId
  }

  send(id: number, message: string, exchange: JsonExchange): void {
    this.#waiting.set(id, exchange)
    this.#owedAnswers++
    this.#messages.sendText(message)
  }

  forget(id: number): void {
    if (this.#waiting.delete(id) && this.#accepts.has('cancel') && !this.isClosed)
      this.#messages.sendText(encodeCancel(id))
  }

  get keepsRawPaths(): boolean {
    return this.#accepts.has('raw-path')
  }

  get keepsLogins(): boolean {
    return this.#accepts.has('connection')
  }
}
