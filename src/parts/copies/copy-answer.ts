// Holds the response to a copy until it is known whether it counts, and reads the mark in its head.

import { copyOf } from '../../bytes.ts'
import { latin1 } from '../../http/characters.ts'

/** The header in the response to a copy of another server: 1 if it is that of the client whose response counts, or 0. */
export const COUNTS_HEADER = 'localtunnels-counts'
/** The stored bytes of a response that may still count; then the app waits. */
const MAX_KEPT_BYTES = 65_536
/** A pattern for a client whose filter does not accept the request. */
const FILTERED_OUT = /^x-localtunnels-error:[ \t]*FILTERED_OUT[ \t]*$/im
/** A pattern for another server's note whose response it is. Its own line is the last one: an app may send others. */
const COUNTS = new RegExp(`^${COUNTS_HEADER}: ([01])\r\n(?![^]*^${COUNTS_HEADER}:)`, 'im')

export class CopyAnswer {
  #pieces: Uint8Array[] = []
  #bytes = 0

  get isFull(): boolean {
    return this.#bytes >= MAX_KEPT_BYTES
  }

  keep(bytes: Uint8Array, start: number, end: number): void {
    this.#pieces.push(copyOf(bytes, start, end))
    this.#bytes += end - start
  }

  /** Returns the stored bytes, and forgets them. */
  take(): Uint8Array[] {
    const pieces = this.#pieces
    this.#pieces = []
    this.#bytes = 0
    return pieces
  }

  /** The client's filter does not take the request. */
  get isNotTaken(): boolean {
    const text = this.#pieces.map(piece => latin1(piece, 0, piece.length)).join('')
    return FILTERED_OUT.test(text.split('\r\n\r\n', 1)[0] ?? '')
  }

  /** Takes out the line of another server, which says whether this is the named client's response; `undefined`: it sent none. */
  takeCounts(): boolean | undefined {
    const bytes = Buffer.concat(this.#pieces)
    const headEnd = bytes.indexOf('\r\n\r\n') + 2
    const line = COUNTS.exec(latin1(bytes, 0, headEnd))
    if (line === null) return undefined
    this.#pieces = [bytes.subarray(0, line.index), bytes.subarray(line.index + line[0].length)]
    return line[1] === '1'
  }
}
