// Checks that the other side is alive: pings a silent carrier, closes a dead one, and measures the smallest round trip.

import type { Scheduler } from './scheduler.ts'

export interface HeartbeatOptions {
  /** The silence before a PING, in milliseconds. */
  readonly pingIntervalMs: number
  /** The silence before the carrier is closed, in milliseconds. */
  readonly deadAfterMs: number
  /** The same time while a visitor waits for the other side (`isAwaited`). Default `deadAfterMs`. */
  readonly hungAfterMs?: number
}

interface Ping {
  readonly number: number
  readonly sentAt: number
  readonly answered: (() => void) | undefined
}

/** The maximum number of PINGs without a reply that are remembered: enough for the last minute of a dead carrier. */
const MAX_UNANSWERED = 8

export class Heartbeat {
  /** Whether bytes have arrived since the last tick. */
  hasHeard = false
  /** The smallest round trip in milliseconds; 0 before the first. */
  roundTripMs = 0
  readonly #scheduler: Scheduler
  readonly #options: HeartbeatOptions
  readonly #sendPing: (number: number) => void
  readonly #died: () => void
  #unanswered: Ping[] = []
  #nextNumber = 1
  #silentMs = 0
  /** The part of the silence, in milliseconds, during which a visitor waited. */
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

  /** Called when a PONG arrived. A PONG without a PING is ignored. */
  answered(number: number): void {
    const index = this.#unanswered.findIndex(ping => ping.number === number)
    const ping = this.#unanswered[index]
    if (ping === undefined) return
    this.#unanswered.splice(0, index + 1)
    // A clock that did not advance within a tick would give 0, which means "no round trip known".
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
      // Planned before the ping: if that finds the carrier closed, `stop` must cancel this tick.
      this.#cancelTick = this.#planTick()
      if (this.#silentMs >= pingIntervalMs || this.#awaitedMs === tickMs) this.ping()
    })
  }
}
