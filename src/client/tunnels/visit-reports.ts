// Turns the server's reports of visitors on one connection into events of the client, and passes them to its parts.

import type {
  ConnectionEvents,
  RequestSeen,
  ResponseSeen,
  VisitorGone,
  VisitorSeen,
} from '../carriers/connection.ts'
import type { Part, ReportsFollower } from '../contracts/part.ts'
import type { TunnelClientEvents } from '../options.ts'

/** The bound of a connection's ids, which the server counts from 1. */
export const IDS_OF_A_CONNECTION: number = 2 ** 32

/** The events that a connection's reports become. */
export type VisitEvent =
  | 'request'
  | 'upgraded'
  | 'response'
  | 'requests'
  | 'visitorConnected'
  | 'visitorDisconnected'

export interface ReportsOwner {
  emit<Name extends VisitEvent>(event: Name, payload: TunnelClientEvents[Name]): void
  readonly parts: readonly Part[]
}

export class VisitReports {
  /** The number that is added to the ids of this connection, because every connection of the client counts from 1. */
  readonly #firstId: number
  readonly #owner: ReportsOwner
  readonly #requests = new UnderWay<RequestSeen>()
  readonly #visitors = new UnderWay<VisitorSeen>()
  /** The number of requests in progress that the server counts without reporting them. */
  #unreported = 0

  constructor(firstId: number, owner: ReportsOwner) {
    this.#firstId = firstId
    this.#owner = owner
  }

  /** The connection events that concern visitors. */
  get events(): Pick<ConnectionEvents, VisitReport> {
    const first = this.#firstId
    return {
      request: report => this.#began({ ...report, id: first + report.id }),
      switched: id => this.#switched(first + id),
      response: report => this.#ended({ ...report, id: first + report.id }),
      requests: ({ started, requests, errors, bytes, inFlight }) => {
        this.#tell(reports => reports.counted(started))
        this.#unreported = inFlight
        this.#owner.emit('requests', { started, requests, errors, bytes, inFlight })
      },
      visitorConnected: report => this.#connected({ ...report, id: first + report.id }),
      visitorDisconnected: report => this.#disconnected({ ...report, id: first + report.id }),
    }
  }

  /** Called when the connection is lost: reports the end of every request in progress, which the server cannot. */
  lost(): void {
    const error = 'CARRIER_LOST'
    for (const { id, durationMs } of this.#requests.all())
      this.#ended({ id, status: 0, durationMs, bytes: 0, error })
    for (const { id, durationMs } of this.#visitors.all())
      this.#disconnected({ id, durationMs, bytesIn: 0, bytesOut: 0, error })
    const requests = this.#unreported
    this.#unreported = 0
    if (requests > 0)
      this.#owner.emit('requests', { started: 0, requests, errors: requests, bytes: 0, inFlight: 0 })
  }

  /** Called when the server stops reporting: the ends of requests in progress will not come. */
  forget(): void {
    this.#unreported = 0
    this.#requests.forget()
    this.#visitors.forget()
  }

  #tell(tell: (reports: ReportsFollower) => void): void {
    for (const { reports } of this.#owner.parts) if (reports !== undefined) tell(reports)
  }

  #began(report: RequestSeen): void {
    this.#tell(reports => reports.requested(report))
    const { host = '', method, path } = report
    this.#requests.begin(report, host.length + method.length + path.length)
    this.#owner.emit('request', requestEvent(report))
  }

  #switched(id: number): void {
    const request = this.#requests.find(id)
    if (request !== undefined) this.#owner.emit('upgraded', requestEvent(request))
  }

  #ended(report: ResponseSeen): void {
    let name: string | undefined
    this.#tell(reports => (name ??= reports.responded(report)))
    const request = this.#requests.end(report.id)
    if (request === undefined) return
    const { status, durationMs, bytes, error, reason } = report
    const failure = { ...(error !== undefined && { error }), ...(reason !== undefined && { reason }) }
    const outcome = { status, durationMs, bytes, ...failure, ...(name !== undefined && { event: name }) }
    this.#owner.emit('response', { ...requestEvent(request), ...outcome })
  }

  #connected({ id, tunnel, remoteAddress, remotePort }: VisitorSeen): void {
    const visitor = { id, tunnel, remoteAddress, remotePort }
    this.#visitors.begin(visitor, remoteAddress.length)
    this.#tell(reports => reports.visitorConnected(visitor))
    this.#owner.emit('visitorConnected', visitor)
  }

  #disconnected({ id, durationMs, bytesIn, bytesOut, error }: VisitorGone): void {
    this.#tell(reports => reports.visitorLeft({ id, durationMs, bytesIn, bytesOut }))
    const visitor = this.#visitors.end(id)
    if (visitor === undefined) return
    const end = { durationMs, bytesIn, bytesOut, ...(error !== undefined && { error }) }
    this.#owner.emit('visitorDisconnected', { ...visitor, ...end })
  }
}

type VisitReport =
  | 'request'
  | 'switched'
  | 'response'
  | 'requests'
  | 'visitorConnected'
  | 'visitorDisconnected'

/** Makes an event field by field, because a report may have more fields. */
function requestEvent({ id, tunnel, host, method, path }: RequestSeen): TunnelClientEvents['request'] {
  return { id, tunnel, ...(host !== undefined && { host }), method, path }
}

/** The maximum number of requests. Our server has fewer; if another one never reports ends, the oldest are forgotten. */
const MAX_ENTRIES = 10_000
/**
 * The maximum length of all texts. An honest path has about a hundred characters; a hostile server could send 60,000
 * in each message.
 */
const MAX_CHARS = 4_000_000

interface Begun<Report> {
  readonly report: Report
  readonly chars: number
  /** The time of the report, on the clock of `performance.now()`. */
  readonly at: number
}

export class UnderWay<Report extends { readonly id: number }> {
  readonly #begun = new Map<number, Begun<Report>>()
  #chars = 0

  /** Remembers a report. `chars` is the length of its texts together. */
  begin(report: Report, chars: number): void {
    // An id that comes twice counts once.
    this.end(report.id)
    if (this.#begun.size >= MAX_ENTRIES || this.#chars + chars > MAX_CHARS) this.forget()
    this.#chars += chars
    this.#begun.set(report.id, { report, chars, at: performance.now() })
  }

  find(id: number): Report | undefined {
    return this.#begun.get(id)?.report
  }

  /** Returns the report of the beginning, and forgets it. */
  end(id: number): Report | undefined {
    const begun = this.#begun.get(id)
    if (begun === undefined) return undefined
    this.#begun.delete(id)
    this.#chars -= begun.chars
    return begun.report
  }

  /** Returns all requests, with the milliseconds since the start of each. */
  all(): readonly { readonly id: number; readonly durationMs: number }[] {
    const now = performance.now()
    return [...this.#begun].map(([id, { at }]) => ({ id, durationMs: Math.round((now - at) * 100) / 100 }))
  }

  forget(): void {
    this.#begun.clear()
    this.#chars = 0
  }
}
