// The request of an exchange on a stream: its bytes being sent, kept for as long as it could be sent once more.

import { IDEMPOTENT } from '../../http/request-line.ts'
import type { ByteStream } from '../../session/byte-stream.ts'
import type { Socket, Splice, SpliceDone } from '../../socket.ts'
import type { Clock } from '../contracts/clock.ts'
import { type Movement, Progress } from '../limits/progress.ts'
import type { Bounds } from '../settings/bounds.ts'
import { scratch } from './forwarded.ts'

/** Request body kept for a second try on a fresh stream. nginx keeps as much in memory by default. */
const MAX_REPLAY_BYTES = 65_536
/** With less to come of a body, starting a splice costs more than it saves; measured by `benchmarks/speed.ts --only 1m10`. */
export const MIN_SPLICED_BYTES = 262_144

export class RequestSender implements Movement {
  /** The request is complete; after a switch: the visitor sent FIN. */
  isDone = false
  readonly #limits: Bounds
  /** The origin does not read as fast as the visitor sends: bounds how long it may take nothing at all. */
  readonly #progress: Progress
  readonly #stalled: () => void
  #stream: ByteStream | undefined
  /** Bytes sent on the stream before this request: the origin had received at most this many of them then. */
  #sentBefore = 0
  /** The origin has all of the request already. */
  #wasSent = false
  /** Body pieces of the request, while it could be sent again; `undefined` when it no longer can. */
  #replay: Uint8Array[] | undefined
  #replayBytes = 0
  /** The kernel moves the body. */
  #upload: Splice | undefined
  /** Bytes wait for the origin, which takes none of them at the moment. */
  #isBackedUp = false

  constructor(limits: Bounds, deadlines: Clock, stalled: () => void) {
    this.#limits = limits
    this.#progress = new Progress(deadlines, this)
    this.#stalled = stalled
  }

  /**
   * Sends the head that `forwarded.ts` has built, up to `headEnd`. `mayRepeat`: the body is kept for a second try. `sentBytes`: so
   * many are with the origin already, head and body. `false`: the visitor has to wait.
   */
  begin(stream: ByteStream, headEnd: number, mayRepeat: boolean, sentBytes: number): boolean {
    this.#stream = stream
    this.isDone = false
    this.#sentBefore = stream.sentBytes - sentBytes
    this.#wasSent = sentBytes > 0
    this.#replay = mayRepeat ? [] : undefined
    this.#replayBytes = 0
    return this.#wasSent || stream.write(scratch, true, 0, headEnd)
  }

  /** Sends a piece of the body. `false`: the visitor has to wait. */
  body(bytes: Uint8Array): boolean {
    if (this.#replay !== undefined) {
      this.#replayBytes += bytes.length
      if (this.#replayBytes > MAX_REPLAY_BYTES) this.#replay = undefined
      else this.#replay.push(bytes)
    }
    if (this.#wasSent || this.#stream?.write(bytes) !== false) return true
    this.expectProgress()
    return false
  }

  bodyFrom(from: Socket, limitBytes: number, done: SpliceDone): Splice | undefined {
    if (limitBytes < MIN_SPLICED_BYTES || this.#isBackedUp) return undefined
    this.#upload = this.#stream?.writeFrom(from, limitBytes, movedBytes => {
      this.#upload = undefined
      this.#progress.stop()
      done(movedBytes)
    })
    if (this.#upload === undefined) return undefined
    this.#replay = undefined
    this.#progress.expect(this.#limits.sendTimeoutMs)
    return this.#upload
  }

  /** Ends the direction of the visitor, after a switch. */
  end(): void {
    this.#stream?.end()
  }

  /** The origin has to take some of what waits, or the exchange fails. */
  expectProgress(): void {
    this.#isBackedUp = true
    this.#progress.expect(this.#limits.sendTimeoutMs)
  }

  /** Nothing waits any more, or it does not matter how long it waits. */
  stopExpecting(): void {
    if (!this.#isBackedUp) return
    this.#isBackedUp = false
    if (this.#upload === undefined) this.#progress.stop()
  }

  /** A response has begun: the request is not sent again. */
  forgetReplay(): void {
    this.#replay = undefined
  }

  /** The exchange is over. */
  stop(): void {
    this.#isBackedUp = false
    this.#progress.stop()
    this.#replay = undefined
    this.#stream = undefined
  }

  /** Pieces of the body so far, if the origin received nothing of the request; `undefined`: it cannot be sent again. */
  piecesUnlessDelivered(delivered: number): readonly Uint8Array[] | undefined {
    return delivered <= this.#sentBefore ? this.#replay : undefined
  }

  /** The same, also where the method does no harm when the request arrives twice. */
  piecesToRepeat(delivered: number, method: string): readonly Uint8Array[] | undefined {
    return IDEMPOTENT.has(method) ? this.#replay : this.piecesUnlessDelivered(delivered)
  }

  // ── Movement ───────────────────────────────────────────────────────────────────────────────────────────────

  get movedBytes(): number {
    if (this.#upload !== undefined) return this.#upload.movedBytes
    const stream = this.#stream
    return stream === undefined ? 0 : stream.sentBytes - stream.waitingBytes
  }

  /** The visitor has not sent bytes that a splice has not moved yet: then it is not the origin that is slow. */
  get isWaiting(): boolean {
    return this.#upload === undefined || this.#upload.takenBytes > this.#upload.movedBytes
  }

  stalled(): void {
    this.#stalled()
  }
}
