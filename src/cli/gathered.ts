// A stream that gets what is told at one time in one write: at thousands of requests a second, each line was a system call.

import type { Sink } from './output.ts'

export class GatheredSink implements Sink {
  readonly #stream: NodeJS.WriteStream
  #text = ''

  constructor(stream: NodeJS.WriteStream) {
    this.#stream = stream
  }

  /** Leaves once whoever tells of something now has told all of it. */
  write(text: string): void {
    if (this.#text === '') queueMicrotask(() => this.flush())
    this.#text += text
  }

  get columns(): number {
    return this.#stream.columns || 80
  }

  /** Before anything is written past this one, and before the process ends. */
  flush(): void {
    if (this.#text === '') return
    this.#stream.write(this.#text)
    this.#text = ''
  }
}
