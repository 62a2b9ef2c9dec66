// Reports faults of plugins as `error` events: the first of each plugin at once, later ones as a count once a minute.
// Otherwise a plugin that fails for every visitor would emit an event for each.

import { type ErrorCode, TunnelError } from '../../errors.ts'
import type { Deadline, Deadlines } from '../limits/deadlines.ts'

const REPORT_EVERY_MS = 60_000
/**
 * The number of plugins that are counted separately. A client that is refused again and again brings a new guard each
 * time. Above it, all others are counted together.
 */
const MAX_PLUGINS = 1_000
const OTHERS = {}
/** The next step for the operator. The step of the code is for the visitor who gets the response. */
const ACTION = 'Correct the plugin, or what it waits for.'

export class PluginFaults {
  readonly #deadlines: Deadlines
  readonly #failed: (error: Error) => void
  readonly #everyMs: number
  /** The plugins with faults since the last report. */
  readonly #lasting = new Map<object, Lasting>()

  constructor(deadlines: Deadlines, failed: (error: Error) => void, everyMs: number = REPORT_EVERY_MS) {
    this.#deadlines = deadlines
    this.#failed = failed
    this.#everyMs = everyMs
  }

  report(plugin: object, code: ErrorCode, text: string, cause: unknown): void {
    const key = this.#lasting.has(plugin) || this.#lasting.size < MAX_PLUGINS ? plugin : OTHERS
    const known = this.#lasting.get(key)
    if (known !== undefined) return known.count(code, text, cause)
    const lasting = new Lasting(this.#failed, isLasting => {
      if (isLasting) return this.#deadlines.arm(lasting, this.#everyMs)
      this.#deadlines.forget(lasting)
      this.#lasting.delete(key)
    })
    this.#lasting.set(key, lasting)
    this.#deadlines.watch(lasting)
    this.#deadlines.arm(lasting, this.#everyMs)
    this.#failed(new TunnelError(code, text, { cause, action: ACTION }))
  }

  /** Reports the counted faults now, because the server stops. */
  flush(): void {
    for (const lasting of this.#lasting.values()) {
      this.#deadlines.forget(lasting)
      lasting.tell()
    }
    this.#lasting.clear()
  }
}

/** The faults of one plugin since the last report. */
class Lasting implements Deadline {
  dueTick = 0
  readonly #failed: (error: Error) => void
  readonly #told: (isLasting: boolean) => void
  #count = 0
  #last: readonly [ErrorCode, string, unknown] | undefined

  /** Makes a counter. `told` is called when a report is due, with whether there were faults since the last one. */
  constructor(failed: (error: Error) => void, told: (isLasting: boolean) => void) {
    this.#failed = failed
    this.#told = told
  }

  count(code: ErrorCode, text: string, cause: unknown): void {
    this.#count++
    this.#last = [code, text, cause]
  }

  expired(): void {
    this.#told(this.#count > 0)
    this.tell()
  }

  tell(): void {
    if (this.#last === undefined) return
    const [code, text, cause] = this.#last
    const counted = `${text} Failures since the last report: ${this.#count}.`
    this.#last = undefined
    this.#count = 0
    this.#failed(new TunnelError(code, counted, { cause, action: ACTION }))
  }
}
