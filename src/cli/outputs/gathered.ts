// A stream that gets all lines of one moment in one write: at thousands of requests a second each line was a system call.

import type { Sink } from '../output.ts'

export class GatheredSink implements Sink {
  readonly #stream: NodeJS.WriteStream
  #text = ''
  /** Writes that the stream has not passed on to the kernel yet: a pipe takes 64 KiB, the rest waits for its reader. */
  #pending = 0
  #whenWritten: (() => void) | undefined
  readonly #settled = (): void => {
    if (--this.#pending === 0) this.#whenWritten?.()
  }

  constructor(stream: NodeJS.WriteStream) {
    this.#stream = stream
  }

  /** Leaves at the end of this turn of the microtask queue, with what else was written until then. */
  write(text: string): void {
    if (text === '') return
    if (this.#text === '') queueMicrotask(() => this.flush())
    this.#text += text
  }

  get columns(): number {
    return this.#stream.columns || 80
  }

  /** Writes everything, before other writes and before the process ends. */
  flush(): void {
    if (this.#text === '') return
    this.#pending++
    const text = this.#text
    this.#text = ''
    // The callback of an empty write does not wait for the writes before it on Bun: each write has its own.
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
