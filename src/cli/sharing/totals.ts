// Counts requests and connections for the last line.

import type { DrainingEvent, TotalsEvent } from '../output.ts'

/**
 * The maximum number of requests and connections whose end was not seen. A hostile server may leave more open; those
 * are forgotten.
 */
const MAX_UNDER_WAY = 100_000

export class Totals {
  readonly #startedAt: number = performance.now()
  #requests = 0
  #errors = 0
  #bytes = 0
  #connections = 0
  readonly #countsConnections: boolean
  readonly #underWay = new Set<number>()
  #unreportedUnderWay = 0
  readonly #visitors = new Set<number>()

  /** Makes the totals. `countsConnections`: they name connections of raw tunnels even if there were none. */
  constructor(countsConnections = false) {
    this.#countsConnections = countsConnections
  }

  began(id: number): void {
    if (this.#underWay.size >= MAX_UNDER_WAY) this.#underWay.clear()
    this.#underWay.add(id)
  }

  ended(response: {
    readonly id: number
    readonly status: number
    readonly bytes: number
    readonly error?: string
  }): void {
    this.#requests++
    if (response.status >= 500 || isFailure(response.error)) this.#errors++
    this.#bytes += response.bytes
    this.#underWay.delete(response.id)
  }

  /** Counts requests that were not reported one by one. */
  unreported(counts: {
    readonly requests: number
    readonly errors: number
    readonly bytes: number
    readonly inFlight?: number
  }): void {
    this.#requests += counts.requests
    this.#errors += counts.errors
    this.#bytes += counts.bytes
    this.#unreportedUnderWay = counts.inFlight ?? 0
  }

  visitorConnected(id: number): void {
    if (this.#visitors.size >= MAX_UNDER_WAY) this.#visitors.clear()
    this.#visitors.add(id)
  }

  visitorDisconnected(end: {
    readonly id: number
    readonly bytesOut: number
    readonly error?: string
  }): void {
    this.#connections++
    if (isFailure(end.error)) this.#errors++
    this.#bytes += end.bytesOut
    this.#visitors.delete(end.id)
  }

  get #namesConnections(): boolean {
    return this.#countsConnections || this.#connections + this.#visitors.size > 0
  }

  draining(): DrainingEvent {
    const [requests, connections] = [this.#underWay.size + this.#unreportedUnderWay, this.#visitors.size]
    return { type: 'draining', requests, ...(this.#namesConnections && { connections }) }
  }

  event(): TotalsEvent {
    const durationMs = Math.round(performance.now() - this.#startedAt)
    return {
      type: 'totals',
      requests: this.#requests,
      ...(this.#namesConnections && { connections: this.#connections }),
      errors: this.#errors,
      bytes: this.#bytes,
      durationMs,
    }
  }
}

/** Whether a code is a failure. A visitor that leaves is not. */
function isFailure(code: string | undefined): boolean {
  return code !== undefined && code !== 'CANCELLED'
}
