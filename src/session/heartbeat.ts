// Signs of life: pings a silent carrier, gives up a dead one, and knows the smallest round trip.

import type { Scheduler } from './scheduler.ts'

export interface HeartbeatOptions {
  /** The silence before a PING, in milliseconds. */
  readonly pingIntervalMs: number
  /** The silence before the carrier is closed, in milliseconds. */
  readonly deadAfterMs: number
  /** The same while a visitor waits for the other side: `isAwaited`. Default `deadAfterMs`. */
  readonly hungAfterMs?: number
}

interface Ping {
  readonly number: number
  readonly sentAt: number
  readonly answered: (() => void) | undefined
}

/** The maximum number of remembered PINGs without a reply: enough for a dead carrier's last minute. */
const MAX_UNANSWERED = 8

export class Heartbeat {
  /** Whether any bytes have arrived lately. */
  hasHeard = false
  /** Smallest round trip seen, milliseconds; 0 before the first. */
  roundTripMs = 0
  readonly #scheduler: Scheduler
  readonly #options: HeartbeatOptions
  readonly #sendPing: (number: number) => void
  readonly #died: () => void
  #unanswered: Ping[] = []
  #nextNumber = 1
  #silentMs = 0
  /** The part of the silence in which a visitor has waited. */
  #awaitedMs = 0
  readonly #isAwaited: () => boolean
  #cancelTick: () => void

  constructor(
    scheduler: Scheduler,
    options: HeartbeatOptions,
    sendPing: (number: number) => void,
    died: () => void,
    isAwaited: () => boolean = () => false,
  ) {
    this.#scheduler = scheduler
    this.#options = options
    this.#sendPing = sendPing
    this.#died = died
    this.#isAwaited = isAwaited
    this.#cancelTick = this.#planTick()
  }

  ping(answered?: () => void): void {
    if (this.#unanswered.length >= MAX_UNANSWERED) this.#unanswered.shift()
    const number = this.#nextNumber++
    this.#unanswered.push({ number, sentAt: this.#scheduler.now(), answered })
    this.#sendPing(number)
  }

  /** A PONG arrived. A PONG without a PING means nothing. */
  answered(number: number): void {
    const index = this.#unanswered.findIndex(ping => ping.number === number)
    const ping = this.#unanswered[index]
    if (ping === undefined) return
    this.#unanswered.splice(0, index + 1)
    // A clock that stood still within a tick must not pass for "no round trip known".
    const elapsed = Math.max(this.#scheduler.now() - ping.sentAt, 0.01)
    this.roundTripMs = this.roundTripMs === 0 ? elapsed : Math.min(this.roundTripMs, elapsed)
    ping.answered?.()
  }

  stop(): void {
    this.#cancelTick()
    this.#unanswered = []
  }

  #planTick(): () => void {
    const { pingIntervalMs, deadAfterMs, hungAfterMs = deadAfterMs } = this.#options
    const tickMs = Math.min(pingIntervalMs, deadAfterMs, hungAfterMs) / 4
    return this.#scheduler.after(tickMs, () => {
      this.#silentMs = this.hasHeard ? 0 : this.#silentMs + tickMs
      this.#awaitedMs = !this.hasHeard && this.#isAwaited() ? this.#awaitedMs + tickMs : 0
      this.hasHeard = false
      if (this.#silentMs >= deadAfterMs || this.#awaitedMs >= hungAfterMs) return this.#died()
      // Planned first: a ping may find the carrier closed, and `stop` must then find the next tick to cancel.
      this.#cancelTick = this.#planTick()
      if (this.#silentMs >= pingIntervalMs || this.#awaitedMs === tickMs) this.ping()
    })
  }
}
