// Probes the tunnel's public URL regularly: a proxy or firewall in front of the server may change while both ends work.

/** The watched client, and the receiver of reports. */
export interface PublicWatchContext {
  /** Probes the public URL. `undefined` if that is impossible for this tunnel. */
  probe(): Promise<boolean | undefined>
  /** Whether the client is connected. Without a connection, nothing is probed, and the user knows. */
  isConnected(): boolean
  changed(isReachable: boolean): void
}

/** The time in milliseconds between probes: soon enough for a user who waits for a visitor. */
export const DEFAULT_PROBE_INTERVAL_MS = 60_000
/** The number of failures in a row before a report, because a single lost probe means nothing. */
const FAILURES = 2

export class PublicWatch {
  readonly #context: PublicWatchContext
  readonly #everyMs: number
  #timer: ReturnType<typeof setInterval> | undefined
  #failures = 0
  #isAsking = false

  constructor(context: PublicWatchContext, everyMs: number) {
    this.#context = context
    this.#everyMs = everyMs
  }

  /** Starts or stops the probes, or changes nothing. They do not keep the process alive. */
  set(isWanted: boolean): void {
    if (isWanted === (this.#timer !== undefined)) return
    clearInterval(this.#timer)
    this.#timer = undefined
    this.#failures = 0
    if (!isWanted) return
    this.#timer = setInterval(() => void this.#ask(), this.#everyMs)
    this.#timer.unref()
  }

  async #ask(): Promise<void> {
    if (this.#isAsking || !this.#context.isConnected()) return
    this.#isAsking = true
    const timer = this.#timer
    const isProven = await this.#context.probe().catch(() => false)
    this.#isAsking = false
    if (isProven === undefined || timer !== this.#timer || !this.#context.isConnected()) return
    if (isProven) {
      const wasLost = this.#failures >= FAILURES
      this.#failures = 0
      if (wasLost) this.#context.changed(true)
    } else if (++this.#failures === FAILURES) this.#context.changed(false)
  }
}
