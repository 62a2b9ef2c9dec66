// Responses in transit to a visitor's connection: bytes that the kernel does not take wait here, and must move within a time.

import { type Account, SendQueue } from '../../bytes.ts'
import type { Socket, Splice, SpliceDone } from '../../socket.ts'
import { type Deadlines, type Movement, Progress } from '../limits/deadlines.ts'

/** The operations of the connection that an output needs. */
export interface OutputOwner {
  readonly limits: { readonly sendTimeoutMs: number }
  /** Bytes wait, and the visitor has taken none of them for too long. */
  visitorStalled(): void
  /** Called when nothing waits for the visitor, and the origin has sent nothing for too long (`expectAnswer`). */
  answerStalled(): void
}

export class HttpOutput implements Movement {
  readonly #socket: Socket
  readonly #owner: OutputOwner
  /** Bytes that the kernel did not take yet. */
  readonly #unsent: SendQueue = new SendQueue()
  readonly #progress: Progress
  /** The kernel moves bytes of the response. */
  #splice: Splice | undefined
  #writtenBytes = 0
  /** The time in milliseconds for which the origin may send nothing; 0: no limit. */
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

  /** The kernel has room again. `false`: not for all that waits. */
  flush(): boolean {
    const taken = this.#unsent.flush(this.#socket)
    if (taken > 0) this.#watch()
    if (!this.#unsent.isEmpty) return false
    if (this.#isEnding) this.#socket.end()
    return true
  }

  /** Sends FIN behind what waits. */
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

  /** The origin has to send something within `ms` whenever nothing waits for the visitor; 0: it need not. */
  expectAnswer(ms: number): void {
    if (ms === this.#responseTimeoutMs && ms === 0) return
    this.#responseTimeoutMs = ms
    this.#watch()
  }

  /** Gives the visitor less time to read some of what waits. */
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

  /** Whether bytes wait. While the kernel moves bytes and none are between the sockets, the origin has sent no more. */
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
