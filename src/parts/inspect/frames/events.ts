// Reads server-sent events of a response (HTML Living Standard, section 9.2.6) as they pass.

import type { FoundFrame } from './websocket.ts'

const encoder = new TextEncoder()

export class EventsReader {
  readonly #maxBytes: number
  readonly #found: (frame: FoundFrame) => void
  readonly #decoder = new TextDecoder()
  /** The current line without its end. */
  #line = ''
  /** Whether the last character was CR: an LF after it belongs to it. */
  #isBehindCr = false
  #data: string[] = []
  #dataChars = 0
  #isCut = false
  #event = ''
  #id: string | undefined

  /** Makes a reader. `maxBytes` is the size of the stored part of an event. */
  constructor(maxBytes: number, found: (frame: FoundFrame) => void) {
    this.#maxBytes = maxBytes
    this.#found = found
  }

  take(bytes: Uint8Array, start: number, end: number): void {
    let text = this.#decoder.decode(bytes.subarray(start, end), { stream: true })
    if (this.#isBehindCr && text.startsWith('\n')) text = text.slice(1)
    if (text !== '') this.#isBehindCr = text.endsWith('\r')
    const lines = text.split(/\r\n|\n|\r/)
    for (const [index, line] of lines.entries()) {
      // One long line must not fill memory. The rest only counts.
      if (this.#line.length + line.length <= this.#maxBytes + 64) this.#line += line
      else this.#isCut = true
      if (index < lines.length - 1) this.#lineEnded()
    }
  }

  #lineEnded(): void {
    const line = this.#line
    this.#line = ''
    if (line === '') return this.#dispatch()
    const colon = line.indexOf(':')
    const name = colon < 0 ? line : line.slice(0, colon)
    const value = colon < 0 ? '' : line.slice(colon + (line[colon + 1] === ' ' ? 2 : 1))
    if (name === 'event') this.#event = value
    else if (name === 'id') this.#id = value
    else if (name === 'data') {
      this.#dataChars += value.length + 1
      if (this.#dataChars <= this.#maxBytes + 1) this.#data.push(value)
      else this.#isCut = true
    }
  }

  #dispatch(): void {
    const { length } = this.#data
    const text = this.#data.join('\n')
    if (length > 0 || this.#isCut) {
      const keptBytes = encoder.encode(text).length
      this.#found({
        type: 'event',
        // Only one fact is known: it was longer.
        totalBytes: this.#isCut ? Math.max(this.#dataChars, keptBytes + 1) : keptBytes,
        keptBytes,
        text,
        ...(this.#event !== '' && { event: this.#event }),
        ...(this.#id !== undefined && { eventId: this.#id }),
      })
    }
    this.#data = []
    this.#dataChars = 0
    this.#isCut = false
    this.#event = ''
    this.#id = undefined
  }
}
