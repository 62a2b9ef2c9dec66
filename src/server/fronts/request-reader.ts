// Frames the requests of one HTTP/1.1 connection: a head, then its body. What is not fully understood is refused.

import type { ErrorCode } from '../../errors.ts'
import { BodyFramer } from '../../http/body.ts'
import { parseRequestHead, type RequestHead } from '../../http/head.ts'
import type { Bounds } from '../settings/bounds.ts'
import type { HttpInput } from './http-input.ts'

/** A body in chunks is looked through in such pieces: chunks of one byte take some 100 ns each. */
const CHUNKED_BYTES_AT_ONCE = 65_536

export class RequestReader {
  /** The head of the open request. */
  readonly head: RequestHead
  readonly #framer: BodyFramer = new BodyFramer()

  constructor(head: RequestHead) {
    this.head = head
  }

  /**
   * Reads a head from `bytes` at `at`, behind what the input has kept of it. Returns where to go on; a code: it is refused;
   * `undefined`: it is not complete, and kept.
   */
  readHead(bytes: Uint8Array, at: number, input: HttpInput, limits: Bounds): number | ErrorCode | undefined {
    const before = input.keptBytes
    const pending = input.headWith(at === 0 ? bytes : bytes.subarray(at))
    const end = parseRequestHead(this.head, pending, 0, pending.length, limits)
    if (end === 0) {
      input.keepHead(pending)
      return undefined
    }
    input.clear()
    if (end === -1) return this.head.refusal
    this.#framer.begin(this.head.body, this.head.contentLength)
    return at + end - before
  }

  /** Reads body from `bytes` at `at`. Returns where it ends, or goes on another time; a code: the request went wrong. */
  readBody(bytes: Uint8Array, at: number, { maxBodyBytes }: Bounds): number | ErrorCode {
    const most = this.head.body === 'chunked' ? at + CHUNKED_BYTES_AT_ONCE : bytes.length
    const end = this.#framer.feed(bytes, at, Math.min(most, bytes.length))
    if (end === -1) return 'BAD_REQUEST'
    return maxBodyBytes > 0 && this.#framer.payloadBytes > maxBodyBytes ? 'BODY_TOO_LARGE' : end
  }

  /** Counts bytes of the body that the reader did not see. */
  skip(bodyBytes: number): void {
    this.#framer.skip(bodyBytes)
  }

  /** The body is complete, or there is none. */
  get isComplete(): boolean {
    return this.#framer.complete
  }

  /** Bytes of the body still to come, where its length is known. */
  get leftBytes(): number {
    return this.#framer.leftBytes
  }

  /** Bytes of the request: its head, and of its body what arrived. */
  get requestBytes(): number {
    return this.head.end - this.head.start + this.#framer.payloadBytes
  }
}
