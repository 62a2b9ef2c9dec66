// The bytes of a chunked body that are no payload: what is left of them at its end holds the trailers.

import { copyOf } from '../../bytes.ts'
import { joined, latin1 } from '../../http/characters.ts'
import { NOTHING } from './entry.ts'

export class Tail {
  #bytes: Uint8Array = NOTHING
  /** Where the last payload of the current piece ended; -1: it had none. */
  #payloadEnd = -1

  /** A body begins, perhaps behind one that was not chunked and told where its payload ended. */
  begin(): void {
    this.#bytes = NOTHING
    this.#payloadEnd = -1
  }

  /** Payload was handed out, up to this index of the piece that is being fed. */
  payload(end: number): void {
    this.#payloadEnd = end
  }

  /** bytes[start, end) were fed. */
  fed(bytes: Uint8Array, start: number, end: number): void {
    const from = this.#payloadEnd < 0 ? start : this.#payloadEnd
    const rest = copyOf(bytes, from, end)
    this.#bytes = this.#payloadEnd < 0 && this.#bytes.length > 0 ? joined([this.#bytes, rest]) : rest
    this.#payloadEnd = -1
  }

  /** The lines of the trailers of a body that is complete, each with its line end. */
  takeTrailers(): Uint8Array {
    const bytes = this.#bytes
    this.#bytes = NOTHING
    const text = latin1(bytes, 0, bytes.length)
    // Behind payload: its CRLF, then the line of the last chunk.
    const lastChunk = text.startsWith('\r\n') ? 2 : 0
    const from = text.indexOf('\r\n', lastChunk) + 2
    return text.length - 2 > from ? copyOf(bytes, from, bytes.length - 2) : NOTHING
  }
}
