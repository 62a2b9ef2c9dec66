// The status line of a terminal: services that are live or away, how much came, and how fast it was.

import type { CliEvent, ResponseEvent } from '../output.ts'
import { count, formatDuration, visible } from '../terminal/format.ts'

/** The time in milliseconds for which the status line says that the URL was copied. */
const COPIED_MS = 4_000
/** The maximum number of durations that count, and the minimum number to show a percentile. */
const [MAX_DURATIONS, MIN_DURATIONS] = [200, 10]

type StatusText = readonly [mark: '●' | '◐' | '○' | '', text: string, bad?: string, right?: string]

interface Away {
  readonly origin: string
  readonly atMs: number
}

/** The state behind the status line. Only `take` and `granted` change it. */
export class Status {
  isReady = false
  isListening = false
  isDraining = false
  url = ''
  lostAt: number | undefined
  /** The apps that accept no connection, by their services, with the time since when. */
  readonly down: Map<string | undefined, Away> = new Map()
  readonly #now: () => Date
  readonly #known = new Set<string>()
  #connecting: string | undefined
  #requests = 0
  #errors = 0
  /** The durations of the latest requests, in milliseconds. */
  readonly #durations: number[] = []
  #connections = 0
  #openConnections = 0
  readonly #webSockets = new Set<number>()
  /** The reasons why ordered certificates are waiting, by their names. */
  readonly #orders = new Map<string, string>()
  /** The missing certificates of the server itself, by their names: the first name, and the time of the next order. */
  readonly #missing = new Map<string, { readonly name: string; readonly retryAtMs: number }>()
  #domains: readonly string[] = []
  /** The result of the copy key, and until when the status line shows it. */
  #copied = { text: '', untilMs: 0 }

  constructor(now: () => Date) {
    this.#now = now
  }

  /** Adds services that were granted. */
  granted(services: readonly { readonly service: string }[]): void {
    this.isReady = true
    for (const { service } of services) this.#known.add(service)
  }

  take(event: CliEvent): void {
    const nowMs = this.#now().getTime()
    this.#noteCertificates(event)
    switch (event.type) {
      case 'connecting':
        this.#connecting = visible(event.server)
        break
      case 'ready':
        this.isReady = true
        break
      case 'removed':
        this.#known.delete(event.service)
        this.down.delete(event.service)
        break
      case 'listening':
        this.isListening = true
        this.#domains = event.domains
        break
      case 'upgraded':
        this.#webSockets.add(event.id)
        break
      case 'response':
        this.#webSockets.delete(event.id)
        this.#count(event)
        break
      case 'suppressed':
        this.#requests += event.requests
        this.#errors += event.errors
        this.#connections += event.opened
        this.#openConnections += event.opened - event.connections
        break
      case 'visitorConnected':
        this.#connections++
        this.#openConnections++
        break
      case 'visitorDisconnected':
        this.#openConnections--
        break
      case 'disconnected':
        // Open requests ended with the connection, and no more events about them come.
        this.#openConnections = 0
        this.#webSockets.clear()
        break
      case 'reconnecting':
        this.lostAt ??= nowMs
        break
      case 'connected':
        this.lostAt = undefined
        this.url = event.url
        break
      case 'origin':
        if (event.isUp) this.down.delete(event.service)
        else if (!this.down.has(event.service))
          this.down.set(event.service, { origin: visible(event.origin), atMs: nowMs })
        break
      case 'draining':
        this.isDraining = true
        break
      case 'notice':
        if (event.code === 'COPIED') this.#copied = { text: event.message, untilMs: nowMs + COPIED_MS }
    }
  }

  /**
   * Notes the state of certificates. A tunnel's own is ordered on a visitor's request, so its failure says nothing
   * about the server.
   */
  #noteCertificates(event: CliEvent): void {
    if (!('names' in event) || event.names === undefined) return
    const id = String(event.names)
    this.#orders.delete(id)
    if (event.type === 'notice') {
      // A step of an order does not mean that the certificate exists.
      if (event.code === 'CERTIFICATE_ORDERED') this.#orders.set(id, event.message)
      else this.#missing.delete(id)
      return
    }
    const name = event.names.find(one => this.#domains.includes(one))
    if (name === undefined || event.retryAt === undefined || event.hasCertificate) return
    this.#missing.set(id, { name, retryAtMs: Date.parse(event.retryAt) })
  }

  #count({ status, durationMs, error }: ResponseEvent): void {
    this.#requests++
    if (status >= 500 || (error !== undefined && error !== 'CANCELLED')) this.#errors++
    // A WebSocket's duration does not show how fast the app is.
    if (status === 101) return
    this.#durations.push(durationMs)
    if (this.#durations.length > MAX_DURATIONS) this.#durations.shift()
  }

  get text(): StatusText {
    if (this.isDraining) return ['', '']
    if (this.lostAt !== undefined) {
      const outageMs = this.#now().getTime() - this.lostAt
      const what = this.isReady ? 'reconnecting' : 'server unreachable, retrying'
      return ['◐', `${what}${outageMs < 1_000 ? '' : `, ${formatDuration(outageMs)}`}`]
    }
    const [[service, down] = []] = this.down
    if (down !== undefined && this.isReady) {
      const forMs = this.#now().getTime() - down.atMs
      const since = forMs < 1_000 ? '' : `, ${formatDuration(forMs)}`
      const live =
        service === undefined ? '' : `${this.#known.size - this.down.size} of ${this.#known.size} live  `
      // The order is that of the file rather than of the failures.
      const names = [...this.#known].filter(name => this.down.has(name)).map(visible)
      if (this.down.size > 1) return ['○', `${live}${names.join(', ')} down`]
      return ['○', `${live}nothing on ${down.origin} yet${since}`]
    }
    const [order] = this.#orders.values()
    if (order !== undefined) return ['◐', `${firstOf(this.#orders)}${visible(order)}`]
    const [missing] = this.#missing.values()
    if (missing !== undefined) {
      const inMs = missing.retryAtMs - this.#now().getTime()
      const next = inMs < 1_000 ? 'trying again' : `next try in ${formatDuration(inMs)}`
      return ['◐', `${firstOf(this.#missing)}up, no certificate for ${visible(missing.name)}: ${next}`]
    }
    const open = this.#openConnections + this.#webSockets.size
    const seen = [
      ...(this.#requests === 0 ? [] : [count(this.#requests, 'request')]),
      ...(this.#connections === 0 ? [] : [count(this.#connections, 'connection')]),
      ...(open === 0 ? [] : [`${open} open`]),
    ].join(', ')
    const bad = this.#errors === 0 ? '' : `  ${count(this.#errors, 'error')}`
    if (this.isReady || this.isListening) {
      // Instead of the counts, because both do not fit into 60 columns.
      if (this.#now().getTime() < this.#copied.untilMs) return ['●', 'live', '', this.#copied.text]
      return ['●', seen === '' ? 'live' : `live  ${seen}`, bad, this.#percentile]
    }
    // Registered, and a request to the public URL is in transit.
    if (this.url.startsWith('http')) return ['◐', `${visible(this.url)}  checking`]
    return this.#connecting === undefined ? ['', ''] : ['◐', `connecting to ${this.#connecting}`]
  }

  /** The text `p95 24 ms`: of 20 of the latest requests, 19 were at least as fast. */
  get #percentile(): string {
    if (this.#durations.length < MIN_DURATIONS) return ''
    const sorted = this.#durations.toSorted((one, other) => one - other)
    return `p95 ${formatDuration(sorted[Math.ceil((sorted.length * 95) / 100) - 1] ?? 0)}`
  }
}

/** Returns `(1 of 2) `, as a prefix of a text about the first of several. */
function firstOf({ size }: ReadonlyMap<string, unknown>): string {
  return size === 1 ? '' : `(1 of ${size}) `
}
