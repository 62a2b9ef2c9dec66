// Output for programs: one JSON object per line.

import type { CliEvent, Output, Sink } from '../output.ts'
import { visibleJson } from '../terminal/format.ts'

export class JsonOutput implements Output {
  readonly #out: Sink
  readonly #now: () => Date

  constructor(out: Sink, now: () => Date) {
    this.#out = out
    this.#now = now
  }

  event(event: CliEvent): void {
    const { type, ...fields } = bounded(event)
    // No line break is left in the text, so that a line is always one event.
    this.#out.write(`${visibleJson({ type, time: this.#now().toISOString(), ...fields })}\n`)
  }

  block(): void {}

  close(): void {}
}

const MAX_PATH_CHARACTERS = 2_048
const MAX_METHOD_CHARACTERS = 64

/** Returns an event with long texts of visitors truncated, with `…` at the end. */
function bounded(event: CliEvent): CliEvent {
  if (!('path' in event)) return event
  const { path, method } = event
  if (path.length <= MAX_PATH_CHARACTERS && method.length <= MAX_METHOD_CHARACTERS) return event
  return { ...event, path: clip(path, MAX_PATH_CHARACTERS), method: clip(method, MAX_METHOD_CHARACTERS) }
}

function clip(text: string, characters: number): string {
  return text.length <= characters ? text : `${text.slice(0, characters)}…`
}
