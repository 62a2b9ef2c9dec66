// Sends responses to a visitor's connection. Bytes that the kernel does not take wait here, with a time limit for progress.

import { type Account, SendQueue } from '../../bytes.ts'
import type { Socket, Splice, SpliceDone } from '../../socket.ts'
import { type Deadlines, type Movement, Progress } from '../limits/deadlines.ts'

/** The operations of the connection that an output needs. */
export interface OutputOwner {
  readonly limits: { readonly sendTimeoutMs: number }
  /** Called when bytes wait and the visitor took none of them for too long. */
  visitorStalled(): void
  /** Called when no bytes wait for the visitor and the origin sent none for too long (`expectAnswer`). */
  answerStalled(): void
}

export class HttpOutput implements Movement {
  readonly #socket: Socket
  readonly #owner: OutputOwner
  /** Bytes that the kernel did not take yet. */
  readonly #unsent: SendQueue = new SendQueue()
  readonly #progress: Progress
  /** The transfer by the kernel that moves bytes of the response, if there is one. */
  #splice: Splice | undefined
  #writtenBytes = 0
  /** The time in milliseconds for which the origin may send nothing; 0: without limit. */
  #responseTimeoutMs = 0
  /** The time in milliseconds for which the visitor may read nothing. `undefined`: `sendTimeoutMs`. */
  #takeTimeoutMs: number | undefined
  /** Whether FIN follows the unsent bytes. */
  #isEnding = false

  constructor(socket: Socket, deadlines: Deadlines, owner: OutputOwner) {
    this.#socket = socket
    this.#owner = owner
    this.#progress = new Progress(deadlines, this)
  }

  /** Sends bytes, like `Visit.write`. */
  write(bytes: Uint8Array, start = 0, end: number = bytes.length): boolean {
    const count = end - start
    this.#writtenBytes += count
    const isFirst = this.#unsent.isEmpty
    if (this.#unsent.send(this.#socket, bytes, start, end) === count) return true
    if (isFirst) this.#watch()
    return false
  }

  /** Sends bytes of a socket, like `Visit.writeFrom`. */
  writeFrom(from: Socket, limitBytes: number, done: SpliceDone): Splice | undefined {
    if (!this.#unsent.isEmpty) return undefined
    this.#splice = from.spliceTo?.(this.#socket, limitBytes, movedBytes => {
      this.#splice = undefined
      this.#writtenBytes += movedBytes
      this.#watch()
      done(movedBytes)
    })
    if (this.#splice !== undefined) this.#watch()
    return this.#splice
  }

  /** Called when the kernel has room again. Returns `false` if bytes still wait. */
  flush(): boolean {
    const taken = this.#unsent.flush(this.#socket)
    if (taken > 0) this.#watch()
    if (!this.#unsent.isEmpty) return false
    if (this.#isEnding) this.#socket.end()
    return true
  }

  /** Sends FIN after the bytes that wait. */
  end(): void {
    this.#isEnding = true
    if (this.#unsent.isEmpty) this.#socket.end()
  }

  get isEmpty(): boolean {
    return this.#unsent.isEmpty
  }

  /** The account that is charged for queued bytes. */
  get account(): Account | undefined {
    return this.#unsent.account
  }

  set account(account: Account | undefined) {
    this.#unsent.account = account
  }

  /** Limits the time in which the origin sends nothing while no bytes wait for the visitor to `ms`; 0: no limit. */
  expectAnswer(ms: number): void {
    if (ms === this.#responseTimeoutMs && ms === 0) return
    this.#responseTimeoutMs = ms
    this.#watch()
  }

  /** Gives the visitor less time to read some of the bytes that wait. */
  hurry(takeTimeoutMs: number): void {
    this.#takeTimeoutMs = takeTimeoutMs
    this.#watch()
  }

  close(): void {
    this.#unsent.clear()
    this.#progress.stop()
  }

  // ── Movement ───────────────────────────────────────────────────────────────────────────────────────────────

  get movedBytes(): number {
    if (this.#splice !== undefined) return this.#splice.movedBytes
    return this.#unsent.isEmpty ? this.#writtenBytes : 0
  }

  /**
   * Whether bytes wait for the visitor. If the kernel moves bytes and none are between the sockets, the origin is the
   * side that has stopped.
   */
  get isWaiting(): boolean {
    return this.#splice === undefined || this.#splice.takenBytes > this.#splice.movedBytes
  }

  stalled(): void {
    if (this.#splice === undefined && this.#unsent.isEmpty) this.#owner.answerStalled()
    else this.#owner.visitorStalled()
  }

  #watch(): void {
    const isBusy = this.#splice !== undefined || !this.#unsent.isEmpty
    const takeTimeoutMs = this.#takeTimeoutMs ?? this.#owner.limits.sendTimeoutMs
    this.#progress.expect(isBusy ? takeTimeoutMs : this.#responseTimeoutMs)
  }
}
