// A SocketHandler that remembers what happened and lets a test wait for it.

import { copyOf } from '../../src/bytes.ts'
import type { SocketHandler } from '../../src/socket.ts'
import { deferred, within } from './within.ts'

export class Recorder implements SocketHandler {
  readonly events: string[] = []
  readonly #pieces: Uint8Array[] = []
  receivedBytes = 0
  error: Error | undefined
  readonly #waiting = new Set<() => void>()

  received(bytes: Uint8Array): void {
    this.#pieces.push(copyOf(bytes))
    this.receivedBytes += bytes.length
    this.#happened('received')
  }
  drained(): void {
    this.#happened('drained')
  }
  ended(): void {
    this.#happened('ended')
  }
  closed(error?: Error): void {
    this.error = error
    this.#happened('closed')
  }

  /** Everything received so far. */
  get bytes(): Uint8Array {
    const whole = new Uint8Array(this.receivedBytes)
    let at = 0
    for (const piece of this.#pieces) {
      whole.set(piece, at)
      at += piece.length
    }
    return whole
  }

  get text(): string {
    return new TextDecoder().decode(this.bytes)
  }

  /** Code of the error that `closed` got; `undefined` for a clean end. */
  get errorCode(): string | undefined {
    return this.error && 'code' in this.error ? String(this.error.code) : this.error?.message
  }

  count(event: string): number {
    return this.events.filter(one => one === event).length
  }

  /** Waits until `condition` holds, looking again at each event. */
  async until(condition: () => boolean, what: string): Promise<void> {
    while (!condition()) {
      const { promise, resolve } = deferred()
      this.#waiting.add(resolve)
      await within(promise, what)
      this.#waiting.delete(resolve)
    }
  }

  /** Waits for the first event of this name. */
  happened(event: string): Promise<void> {
    return this.until(() => this.count(event) > 0, `event ${event}, got ${this.events.join(' ')}`)
  }

  #happened(event: string): void {
    this.events.push(event)
    for (const wake of this.#waiting) wake()
  }
}
