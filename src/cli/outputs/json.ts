// Output for programs: one JSON object a line.

import type { CliEvent, Output, Sink } from '../output.ts'

export class JsonOutput implements Output {
  readonly #out: Sink
  readonly #now: () => Date

  constructor(out: Sink, now: () => Date) {
    this.#out = out
    this.#now = now
  }

  event(event: CliEvent): void {
    const { type, ...fields } = event
    // JSON.stringify escapes every line break, so that a line is always one event.
    this.#out.write(`${JSON.stringify({ type, time: this.#now().toISOString(), ...fields })}\n`)
  }

  block(): void {}

  close(): void {}
}
