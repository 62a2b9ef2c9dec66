// Builds heads in a shared array within one call, and sends requests. Keeps a request while it may be sent again.

import { copyBytes, copyOf } from '../../bytes.ts'
import { CR, IDEMPOTENT, LF } from '../../http/characters.ts'
import {
  type AnswerStyle,
  forwardRequestHead,
  forwardResponseHead,
  maxForwardedBytes,
} from '../../http/forward.ts'
import type { RequestHead, ResponseHead } from '../../http/head.ts'
import type { ByteStream } from '../../session/byte-stream.ts'
import type { Socket, Splice, SpliceDone } from '../../socket.ts'
import type { Clock } from '../contracts/clock.ts'
import type { Rewrite, Visit } from '../contracts/upstream.ts'
import { type Movement, Progress } from '../limits/deadlines.ts'
import type { Bounds } from '../settings/bounds.ts'

/** The size of the shared array. A head and the part of its body that arrived with it leave in one write, up to this size. */
const SCRATCH_BYTES = 262_144

/** The shared array. Its content changes with the next head, so copy bytes to keep them. A longer head replaces the array. */
export let scratch: Uint8Array = new Uint8Array(SCRATCH_BYTES)

export function writeRequestHead(visit: Visit, rewrite: Rewrite | undefined): number {
  makeRoomFor(visit.head)
  return forwardRequestHead(visit.head, visit.hop(rewrite), scratch, 0)
}

/** Writes a request head unchanged, with a line in front of the others. Returns the end position. */
export function writeHeadWithLine({ head }: Visit, line: Uint8Array): number {
  const { bytes, start, end, fields } = head
  const firstLine = fields.count === 0 ? end - 2 : fields.lineStart(0)
  makeRoomFor(head)
  copyBytes(bytes, start, firstLine, scratch, 0)
  scratch.set(line, firstLine - start)
  copyBytes(bytes, firstLine, end, scratch, firstLine - start + line.length)
  return end - start + line.length
}

export function writeInterimHead(answer: ResponseHead, style: AnswerStyle): number {
  makeRoomFor(answer)
  return forwardResponseHead(answer, style, scratch, 0)
}

/** Writes the head of the final response, with the server's own lines. Returns the end position. */
export function writeAnswerHead(answer: ResponseHead, style: AnswerStyle, visit: Visit): number {
  let end = addLine(writeInterimHead(answer, style), visit.answerLines)
  const { hstsLine, altSvcLine } = visit
  if (hstsLine !== undefined && answer.header('strict-transport-security') === undefined)
    end = addLine(end, hstsLine)
  if (altSvcLine !== undefined && answer.header('alt-svc') === undefined) end = addLine(end, altSvcLine)
  return end
}

/** Appends a piece of the body after a head that ends at `end`. Returns `false` if it does not fit. */
export function addBody(end: number, bytes: Uint8Array, from: number, to: number): boolean {
  if (end + to - from > scratch.length) return false
  if (to > from) copyBytes(bytes, from, to, scratch, end)
  return true
}

/** Adds whole header lines to the head that ends at `end`, before its blank line. Returns the new end. */
function addLine(end: number, lines: Uint8Array | undefined): number {
  if (lines === undefined) return end
  // The array has room for lines of a request (`maxForwardedBytes`), of which a response has few.
  scratch.set(lines, end - 2)
  scratch[end + lines.length - 2] = CR
  scratch[end + lines.length - 1] = LF
  return end + lines.length
}

function makeRoomFor(head: RequestHead | ResponseHead): void {
  const needed = maxForwardedBytes(head.end - head.start)
  if (scratch.length < needed) scratch = new Uint8Array(needed)
}

/** The size of a request body that is kept for a second attempt on a new stream. nginx keeps as much in memory by default. */
const MAX_REPLAY_BYTES = 65_536
/**
 * If less of a body is left, starting a splice costs more than it saves; measured by `benchmarks/suites/speed.ts --only 1m10`.
 */
export const MIN_SPLICED_BYTES = 262_144

export class RequestSender implements Movement {
  /** Whether the request is complete; after a switch of protocols, whether the visitor sent FIN. */
  isDone = false
  readonly #limits: Bounds
  /** Limits the time for which the origin may take no bytes while some wait. */
  readonly #progress: Progress
  readonly #stalled: () => void
  #stream: ByteStream | undefined
  /** The number of bytes sent on the stream before this request. The origin has received at most this many of them. */
  #sentBefore = 0
  /** Whether the origin has the whole request already. */
  #wasSent = false
  /** Pieces of the body while the request may be sent again. `undefined` afterwards. */
  #replay: Uint8Array[] | undefined
  #replayBytes = 0
  /** The transfer by the kernel that moves the body, if there is one. */
  #upload: Splice | undefined
  /** Whether bytes wait for the origin, which takes none at the moment. */
  #isBackedUp = false

  constructor(limits: Bounds, deadlines: Clock, stalled: () => void) {
    this.#limits = limits
    this.#progress = new Progress(deadlines, this)
    this.#stalled = stalled
  }

  /**
   * Sends the head that `writeRequestHead` has built, up to `headEnd`. `mayRepeat`: the body is kept for a second
   * attempt.
   * `sentBytes`: bytes of head and body that the origin has already. Returns `false` if the visitor must pause.
   */
  begin(stream: ByteStream, headEnd: number, mayRepeat: boolean, sentBytes: number): boolean {
    this.#stream = stream
    this.isDone = false
    this.#sentBefore = stream.sentBytes - sentBytes
    this.#wasSent = sentBytes > 0
    this.#replay = mayRepeat ? [] : undefined
    this.#replayBytes = 0
    return this.#wasSent || stream.write(scratch, 0, headEnd)
  }

  /** Sends a piece of the body. Returns `false` if the visitor must pause. */
  body(bytes: Uint8Array): boolean {
    if (this.#replay !== undefined) {
      this.#replayBytes += bytes.length
      if (this.#replayBytes > MAX_REPLAY_BYTES) this.#replay = undefined
      else this.#replay.push(copyOf(bytes))
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

  /** Ends the visitor's direction after a switch of protocols. */
  end(): void {
    this.#stream?.end()
  }

  /** Requires the origin to take some of the waiting bytes in time; otherwise the exchange fails. */
  expectProgress(): void {
    this.#isBackedUp = true
    this.#progress.expect(this.#limits.sendTimeoutMs)
  }

  /** Ends that requirement: no bytes wait, or it does not matter how long they do. */
  stopExpecting(): void {
    if (!this.#isBackedUp) return
    this.#isBackedUp = false
    if (this.#upload === undefined) this.#progress.stop()
  }

  /** Drops the kept body, because a response has begun and the request is not sent again. */
  forgetReplay(): void {
    this.#replay = undefined
  }

  stop(): void {
    this.#isBackedUp = false
    this.#progress.stop()
    this.#replay = undefined
    this.#stream = undefined
  }

  /**
   * Returns the pieces of the body so far if the origin received nothing of the request. `undefined` if it cannot be sent again.
   */
  piecesUnlessDelivered(delivered: number): readonly Uint8Array[] | undefined {
    return delivered <= this.#sentBefore ? this.#replay : undefined
  }

  /** Does the same as `piecesUnlessDelivered`, but also for methods that do no harm when the request arrives twice. */
  piecesToRepeat(delivered: number, method: string): readonly Uint8Array[] | undefined {
    return IDEMPOTENT.has(method) ? this.#replay : this.piecesUnlessDelivered(delivered)
  }

  // ── Movement ───────────────────────────────────────────────────────────────────────────────────────────────

  get movedBytes(): number {
    if (this.#upload !== undefined) return this.#upload.movedBytes
    const stream = this.#stream
    return stream === undefined ? 0 : stream.sentBytes - stream.waitingBytes
  }

  /** Whether the origin is slow. It is not if a splice waits for bytes that the visitor has not sent. */
  get isWaiting(): boolean {
    return this.#upload === undefined || this.#upload.takenBytes > this.#upload.movedBytes
  }

  stalled(): void {
    this.#stalled()
  }
}
