// Collects all lines of one moment into one write. With one write each, thousands of requests a second would need a
// system call per line.

import type { Sink } from '../output.ts'

export class GatheredSink implements Sink {
  readonly #stream: NodeJS.WriteStream
  #text = ''
  /** The number of writes that the kernel has not taken: a pipe takes 64 KiB, and the rest waits for its reader. */
  #pending = 0
  #whenWritten: (() => void) | undefined
  readonly #settled = (): void => {
    if (--this.#pending === 0) this.#whenWritten?.()
  }

  constructor(stream: NodeJS.WriteStream) {
    this.#stream = stream
  }

  /** Writes text at the end of this turn of the microtask queue, together with all other text until then. */
  write(text: string): void {
    if (text === '') return
    if (this.#text === '') queueMicrotask(() => this.flush())
    this.#text += text
  }

  get columns(): number {
    return this.#stream.columns || 80
  }

  /** Writes everything now, before other writes and before the process ends. */
  flush(): void {
    if (this.#text === '') return
    this.#pending++
    const text = this.#text
    this.#text = ''
    // On Bun, the callback of an empty write does not wait for the writes before it, so each write has its own.
    this.#stream.write(text, this.#settled)
  }

  /** Resolves when the kernel has everything, or the reader is gone. */
  written(): Promise<void> {
    this.flush()
    return new Promise(resolve => {
      this.#whenWritten = resolve
      if (this.#pending === 0 || this.#stream.destroyed || this.#stream.errored) resolve()
    })
  }
}
