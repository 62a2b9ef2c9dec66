// Adds facts that only the server knows to captured entries: refusals, codes, and the visitor.

import type { RequestSeen, ResponseSeen, VisitorGone, VisitorSeen } from '../../client/carriers/connection.ts'
import { ERRORS, type ErrorCode } from '../../errors.ts'
import type { Capture } from './capture.ts'
import type { Entry } from './entry.ts'
import type { ExchangeStore } from './store.ts'

/** The maximum number of reports without an entry, and of entries without the end of their report, of each kind. */
const MAX_WAITING = 2_000

const MAX_PATH_CHARS = 8_192

export class Reports {
  readonly #store: ExchangeStore
  readonly #capture: Capture
  /** The reports without captured bytes, by the request, the oldest first. */
  readonly #unmatched = new Map<string, RequestSeen[]>()
  readonly #entries = new Map<number, Entry>()
  readonly #reported = new Map<number, { readonly report: RequestSeen; readonly at: number }>()
  /** The visitors whose connection to the origin has not begun, by tunnel. */
  readonly #visitors = new Map<string, VisitorSeen[]>()
  /** The connections whose visitor is unknown, by tunnel. The server reports it right after the OPEN, in the same order. */
  readonly #connections = new Map<string, Entry[]>()

  constructor(store: ExchangeStore, capture: Capture) {
    this.#store = store
    this.#capture = capture
  }

  requested(report: RequestSeen): void {
    if (this.#reported.size >= MAX_WAITING) this.forget()
    this.#capture.sampler.saw(1, performance.now())
    this.#reported.set(report.id, { report, at: performance.now() })
    push(this.#unmatched, keyOf(report.tunnel, report.method, report.path), report)
  }

  counted(begun: number): void {
    this.#capture.sampler.saw(begun, performance.now())
  }

  /** Called when the capture has the head of a request, or a raw connection. */
  began(entry: Entry): void {
    const { tunnel } = entry.place
    // The server does not report flows.
    if (entry.kind === 'udp') return
    if (entry.kind !== 'http') {
      const visitor = shift(this.#visitors, tunnel)
      if (visitor === undefined) push(this.#connections, tunnel, entry)
      else entry.visitor = visitor.remoteAddress || undefined
      return
    }
    if (entry.replayOf !== undefined || entry.isProbe) return
    const report = shift(this.#unmatched, keyOf(tunnel, entry.method, entry.path))
    if (report === undefined) return
    entry.waitingMs = report.waitedMs
    entry.visitor ??= report.visitor
    this.#entries.set(report.id, entry)
  }

  /** Called when the exchange is over at the server. */
  responded(report: ResponseSeen): string | undefined {
    // Its bytes are read first, so that its entry is known.
    this.#capture.flush()
    const reported = this.#reported.get(report.id)
    this.#reported.delete(report.id)
    const entry = this.#entries.get(report.id)
    this.#entries.delete(report.id)
    if (entry !== undefined) this.#add(entry, report)
    else if (reported !== undefined) {
      const { tunnel, method, path } = reported.report
      remove(this.#unmatched, keyOf(tunnel, method, path), reported.report)
      if (report.error !== undefined && report.error !== 'CANCELLED')
        this.#row(reported.report, report, reported.at)
    }
    return entry?.event
  }

  #add(entry: Entry, { error, status, reason }: ResponseSeen): void {
    if (error === undefined || entry.code === error) return
    entry.fault = reason
    // The server knows the reason; here it only looked like an end.
    entry.code = error
    if (entry.status === 0) entry.status = status
    if (entry.state === 'open') return this.#store.changed(entry)
    entry.state = 'failed'
    this.#store.changed(entry)
  }

  /** Adds a row for a request that failed before any byte of it reached the origin. */
  #row(request: RequestSeen, { error, status }: ResponseSeen, at: number): void {
    this.#refused({ ...request, status, code: error ?? 'INTERNAL' }, at)
  }

  /** Adds a request that never came here, or never reached the origin. */
  #refused(
    request: RequestSeen & { readonly status: number; readonly code: ErrorCode },
    startMark: number,
  ): void {
    if (!this.#capture.takesRequest(performance.now(), false)) return
    const entry = this.#store.begin('http', { tunnel: request.tunnel, service: '' }, startMark)
    entry.method = request.method
    entry.path = request.path
    entry.host = request.host ?? ''
    entry.status = request.status || ERRORS[request.code].status
    entry.code = request.code
    entry.visitor = request.visitor
    entry.waitingMs = request.waitedMs
    entry.isRefused = true
    entry.state = 'failed'
    entry.endMark = performance.now()
    this.#store.ended(entry)
  }

  visitorConnected(report: VisitorSeen): void {
    const entry = shift(this.#connections, report.tunnel)
    if (entry === undefined) return push(this.#visitors, report.tunnel, report)
    entry.visitor = report.remoteAddress || undefined
    this.#store.changed(entry)
  }

  /** Forgets a visitor that never got a connection, so that the next one is not mistaken for it. */
  visitorLeft({ id }: VisitorGone): void {
    for (const [tunnel, waiting] of this.#visitors) {
      const gone = waiting.find(one => one.id === id)
      if (gone !== undefined) return remove(this.#visitors, tunnel, gone)
    }
  }

  /** Called when the connection to the server is gone, and with it further reports of these requests. */
  forget(): void {
    this.#unmatched.clear()
    this.#entries.clear()
    this.#reported.clear()
    this.#visitors.clear()
    this.#connections.clear()
  }
}

function keyOf(tunnel: string, method: string, path: string): string {
  return `${tunnel} ${method} ${path.slice(0, MAX_PATH_CHARS)}`
}

function push<Value>(map: Map<string, Value[]>, key: string, value: Value): void {
  const values = map.get(key)
  if (values === undefined) {
    if (map.size < MAX_WAITING) map.set(key, [value])
  } else if (values.length < MAX_WAITING) values.push(value)
}

function shift<Value>(map: Map<string, Value[]>, key: string): Value | undefined {
  const values = map.get(key)
  const value = values?.shift()
  if (values?.length === 0) map.delete(key)
  return value
}

function remove<Value>(map: Map<string, Value[]>, key: string, value: Value): void {
  const values = map.get(key)
  const index = values?.indexOf(value) ?? -1
  if (values === undefined || index < 0) return
  values.splice(index, 1)
  if (values.length === 0) map.delete(key)
}
