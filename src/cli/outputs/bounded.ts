// Limits an output to a number of lines per second. Events above it are counted, in one line at the end of the second.

import type { CliEvent, OfferedKey, Output, SuppressedEvent } from '../output.ts'

const SECOND_MS = 1_000

type Counts = { -readonly [Name in keyof Omit<SuppressedEvent, 'type'>]: number }

export class BoundedOutput implements Output {
  readonly inner: Output
  readonly #linesPerSecond: number
  /** Whether every event is a line, as for programs. For people, some only change the status. */
  readonly #countsAll: boolean
  readonly #open = new Set<number>()
  #left: number
  /** The timer from the first line of a second to its end. */
  #timer: ReturnType<typeof setTimeout> | undefined
  #more: Counts = nothing()
  #hasMore = false

  constructor(inner: Output, linesPerSecond: number, countsAll: boolean) {
    this.inner = inner
    this.#linesPerSecond = linesPerSecond
    this.#countsAll = countsAll
    this.#left = linesPerSecond
  }

  event(event: CliEvent): void {
    const name = isOften(event)
    // Numbers begin again with the next connection, and the ends of earlier requests are not reported.
    if (event.type === 'disconnected') this.#open.clear()
    if (event.type === 'suppressed') return this.#add(event)
    // The last line of a clean end is always printed.
    if (event.type === 'totals') this.#begin()
    if (name === undefined) return this.inner.event(event)
    if (this.#left <= 0 && !this.#isAwaited(event)) return this.#count(event, name)
    if (this.#countsAll || (name !== 'started' && name !== 'opened')) this.#take()
    if (event.type === 'upgraded') this.#open.add(event.id)
    else if (event.type === 'response') this.#open.delete(event.id)
    this.inner.event(event)
  }

  block(text: string): void {
    this.inner.block(text)
  }

  offer(keys: readonly OfferedKey[]): void {
    this.inner.offer?.(keys)
  }

  close(): void {
    this.#begin()
    this.inner.close()
  }

  /** Whether an event belongs to a WebSocket whose opening had a line: then its end has one too. */
  #isAwaited(event: CliEvent): boolean {
    return event.type === 'response' && this.#open.has(event.id)
  }

  #take(): void {
    this.#left--
    this.#startSecond()
  }

  #startSecond(): void {
    if (this.#timer !== undefined) return
    this.#timer = setTimeout(() => this.#begin(), SECOND_MS)
    this.#timer.unref()
  }

  /** Begins a new second. */
  #begin(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#left = this.#linesPerSecond
    if (!this.#hasMore) return
    const counts = this.#more
    this.#more = nothing()
    this.#hasMore = false
    this.inner.event({ type: 'suppressed', ...counts })
  }

  /** Adds counts of the server or the client to the summary line. */
  #add(more: SuppressedEvent): void {
    this.#hasMore = true
    for (const name of NAMES) this.#more[name] += more[name]
    this.#startSecond()
  }

  #count(event: CliEvent, name: keyof Counts): void {
    this.#hasMore = true
    this.#more[name]++
    // A visitor that left is not a failure.
    if ('error' in event && event.error !== undefined && event.error !== 'CANCELLED') this.#more.errors++
  }
}

const nothing = (): Counts => ({ started: 0, requests: 0, opened: 0, connections: 0, errors: 0, others: 0 })
const NAMES = ['started', 'requests', 'opened', 'connections', 'errors', 'others'] as const

/** Returns the counter for an event that strangers can cause at any rate. `undefined` for other events. */
function isOften({ type }: CliEvent): keyof Counts | undefined {
  switch (type) {
    case 'request':
      return 'started'
    case 'response':
      return 'requests'
    case 'visitorConnected':
      return 'opened'
    case 'visitorDisconnected':
      return 'connections'
    case 'upgraded':
    case 'connection':
    case 'disconnection':
    case 'error':
      return 'others'
    default:
      return undefined
  }
}
