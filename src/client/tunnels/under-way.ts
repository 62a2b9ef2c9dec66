// The requests that the server has reported as begun and not yet as ended.

/**
 * The maximum number of requests. Our server has fewer; if another one never reports ends, the oldest are forgotten.
 */
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
