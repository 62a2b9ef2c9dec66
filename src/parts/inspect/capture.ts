// The capture of a client: which connections are read, when waiting bytes are read, and what happens if it falls behind.

import type { Origin } from '../../client/origins/origin.ts'
import type { Socket, SocketHandler } from '../../socket.ts'
import type { TunnelKind } from '../../wire/tunnel-kind.ts'
import type { Entry, Place } from './entry.ts'
import { HttpFlow } from './http-flow.ts'
import { RawFlow } from './raw-flow.ts'
import type { ExchangeStore } from './store.ts'
import { connectTapped } from './tap.ts'

/**
 * The maximum number of bytes of all connections that wait to be read. If exceeded, the bytes of the connection that
 * adds more are dropped.
 */
const MAX_WAITING_BYTES = 16_777_216
/** The time in milliseconds for one portion, because the traffic of visitors and apps goes first. */
const READ_FOR_MS = 2
/** The time in milliseconds between checks whether a flood is over. */
const CALM_CHECK_MS = 500

/** A listener for entries, in addition to the store. */
export interface CaptureEvents {
  began(entry: Entry): void
  requestEnded(entry: Entry): void
}

export class Capture {
  readonly store: ExchangeStore
  /** The connections that another thread has. */
  readonly lent: Set<HttpFlow> = new Set()
  readonly sampler: Sampler
  /** The number of bytes that arrived faster than they could be read here. */
  droppedBytes = 0
  readonly #events: CaptureEvents
  #waitingBytes = 0
  readonly #unread = new Set<HttpFlow>()
  #planned: ReturnType<typeof setImmediate> | undefined
  #calmCheck: ReturnType<typeof setTimeout> | undefined

  constructor(store: ExchangeStore, events: CaptureEvents) {
    this.store = store
    this.#events = events
    const { rate, maxExchanges } = store.bounds
    this.sampler = new Sampler(rate, Math.max(maxExchanges, rate), performance.now())
  }

  connect(
    origin: Origin,
    handler: SocketHandler,
    kind: TunnelKind,
    place: Place,
    replayOf?: number,
  ): Promise<Socket> {
    const flow =
      kind === 'http'
        ? new HttpFlow(this, place, replayOf)
        : new RawFlow(this.#beginRow(kind, place), this.store)
    return connectTapped(origin, handler, flow)
  }

  #beginRow(kind: Exclude<TunnelKind, 'http'>, place: Place): Entry {
    const entry = this.store.begin(kind, place, performance.now())
    this.#events.began(entry)
    return entry
  }

  get isSampling(): boolean {
    return this.sampler.isSampling(performance.now())
  }

  flush(): void {
    for (const flow of this.#unread) flow.read(Number.POSITIVE_INFINITY)
    this.#unread.clear()
  }

  close(): void {
    this.flush()
    if (this.#planned !== undefined) clearImmediate(this.#planned)
    this.#planned = undefined
    clearTimeout(this.#calmCheck)
    this.#calmCheck = undefined
  }

  // ── For connections ────────────────────────────────────────────────────────────────────────────────────────

  /** Whether a request would be captured now. `isReplay`: the user sent it. */
  mayCapture(isReplay: boolean): boolean {
    return isReplay || this.sampler.hasRoom(performance.now())
  }

  takesRequest(at: number, isReplay: boolean): boolean {
    if (isReplay || this.sampler.take(at)) return true
    this.#checkCalm()
    return false
  }

  /** Counts `count` more waiting bytes. Returns `false` if there are too many. */
  queued(flow: HttpFlow, count: number): boolean {
    this.#waitingBytes += count
    this.#unread.add(flow)
    // Later, because this turn of the event loop belongs to the traffic.
    this.#planned ??= setImmediate(() => this.#read())
    return this.#waitingBytes <= MAX_WAITING_BYTES
  }

  /** Counts `count` bytes as read or dropped. */
  read(count: number): void {
    this.#waitingBytes -= count
  }

  /** Called when the capture fell behind with one connection, whose `count` waiting bytes are dropped. */
  behind(count: number): void {
    this.droppedBytes += count
  }

  began(entry: Entry): void {
    this.#events.began(entry)
  }

  requestEnded(entry: Entry): void {
    this.#events.requestEnded(entry)
  }

  ended(entry: Entry): void {
    this.store.ended(entry)
  }

  #read(): void {
    this.#planned = undefined
    const deadline = performance.now() + READ_FOR_MS
    for (const flow of this.#unread) {
      if (!flow.read(deadline)) break
      this.#unread.delete(flow)
      if (performance.now() > deadline) break
    }
    if (this.#unread.size > 0) this.#planned = setImmediate(() => this.#read())
  }

  /** Asks for connections back from other threads once few enough requests come. */
  #checkCalm(): void {
    this.#calmCheck ??= setTimeout(() => {
      this.#calmCheck = undefined
      if (this.isSampling) return this.#checkCalm()
      for (const flow of this.lent) flow.recall()
    }, CALM_CHECK_MS)
  }
}

/** The time in milliseconds after the last excess request for which sampling continues, so that short breaks do not end it. */
const CALM_MS = 2_000

/** Which requests are captured when there are more than a person reads. */
export class Sampler {
  readonly #rate: number
  readonly #burst: number
  #tokens: number
  #filledAt: number
  #lastExcessAt = Number.NEGATIVE_INFINITY
  /** The number of requests in the second that started at `#secondAt`, captured or not. */
  #seen = 0
  #secondAt: number
  /** The number of requests that were not captured. */
  skipped = 0

  /** Makes a sampler. `rate` is the number of requests per second after a burst; 0 for all. */
  constructor(rate: number, burst: number, now: number) {
    this.#rate = rate
    this.#burst = burst
    this.#tokens = burst
    this.#filledAt = now
    this.#secondAt = now
  }

  hasRoom(now: number): boolean {
    if (this.#rate === 0) return true
    this.#tokens = Math.min(this.#burst, this.#tokens + ((now - this.#filledAt) / 1_000) * this.#rate)
    this.#filledAt = now
    return this.#tokens >= 1
  }

  /** Called when a request begins. Returns whether it is captured. */
  take(now: number): boolean {
    this.saw(1, now)
    if (this.hasRoom(now)) {
      this.#tokens--
      return true
    }
    this.skipped++
    this.#lastExcessAt = now
    return false
  }

  /** Counts requests, also those that the inspector cannot see. */
  saw(count: number, now: number): void {
    if (now - this.#secondAt >= 1_000) {
      this.#secondAt = now
      this.#seen = 0
    }
    this.#seen += count
    if (this.isSampling(now) && this.#seen > this.#rate) this.#lastExcessAt = now
  }

  isSampling(now: number): boolean {
    return now - this.#lastExcessAt < CALM_MS
  }
}
