// Stores the response to a copy until it is known whether it counts, and reads the mark in its head.

import { copyOf } from '../../bytes.ts'
import { latin1 } from '../../http/characters.ts'

/**
 * The header in the response to another server's copy: 1 if it is that of the client whose response counts, otherwise
 * 0.
 */
export const COUNTS_HEADER = 'localtunnels-counts'
/** The number of stored bytes of a response that may still count. With more, the app waits. */
const MAX_KEPT_BYTES = 65_536
/** A pattern for the response of a client whose filter refused the request. */
const FILTERED_OUT = /^x-localtunnels-error:[ \t]*FILTERED_OUT[ \t]*$/im
/** A pattern for another server's mark. Its own line is the last one, because an app may send others. */
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

  /** Whether the client's filter refused the request. */
  get isNotTaken(): boolean {
    const text = this.#pieces.map(piece => latin1(piece, 0, piece.length)).join('')
    return FILTERED_OUT.test(text.split('\r\n\r\n', 1)[0] ?? '')
  }

  /**
   * Removes the mark of another server, and returns whether this is the named client's response. `undefined` without
   * a mark.
   */
  takeCounts(): boolean | undefined {
    const bytes = Buffer.concat(this.#pieces)
    const headEnd = bytes.indexOf('\r\n\r\n') + 2
    const line = COUNTS.exec(latin1(bytes, 0, headEnd))
    if (line === null) return undefined
    this.#pieces = [bytes.subarray(0, line.index), bytes.subarray(line.index + line[0].length)]
    return line[1] === '1'
  }
}
