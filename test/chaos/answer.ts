// An answer as it comes, byte for byte: whether it is the one that was asked for, and whether it says itself that it is complete.

import { isBody } from '../hostile/scene/pattern.ts'

/** `truncated`: it says that it is complete, and is not. Else why there is no right answer, or none yet. */
export type Judgement = 'right' | 'wrong' | 'truncated' | `failed: ${string}`

export interface Expected {
  /** What the app says of whose request it was. */
  readonly whose: string
  readonly id: number
  readonly bytes: number
}

export class Answer {
  readonly #expected: Expected
  #head = ''
  #taken = 0
  /** Bytes of the body that are still to come by Content-Length, or of this chunk. */
  #left = 0
  #isChunked = false
  /** The line of a chunk's size, and what follows the chunk, as far as they have come. */
  #line = ''
  #isLastChunk = false
  /** It said that the connection ends with it. */
  isLast = false

  constructor(expected: Expected) {
    this.#expected = expected
  }

  /** `undefined`: more is to come. */
  take(bytes: Buffer): Judgement | undefined {
    let at = 0
    if (!this.#head.endsWith('\r\n\r\n')) {
      const text = this.#head + bytes.toString('latin1')
      const end = text.indexOf('\r\n\r\n')
      if (end < 0) {
        this.#head = text
        return undefined
      }
      at = end + 4 - this.#head.length
      this.#head = text.slice(0, end + 4)
      const refused = this.#readHead()
      if (refused !== undefined) return refused
    }
    return this.#isChunked ? this.#takeChunks(bytes.subarray(at)) : this.#takeCounted(bytes.subarray(at))
  }

  /** The connection is over, and this was not complete. */
  lost(why: string): Judgement {
    return this.#head === '' ? `failed: ${why}` : `failed: ${why} within the answer`
  }

  #readHead(): Judgement | undefined {
    if (!this.#head.startsWith('HTTP/1.1 200 ')) return refusalIn(this.#head)
    this.isLast = this.#field('connection').toLowerCase() === 'close'
    if (this.#field('x-id') !== this.#expected.whose) return 'wrong'
    this.#isChunked = this.#field('transfer-encoding') !== ''
    this.#left = this.#isChunked ? 0 : Number(this.#field('content-length') || Number.NaN)
    // Nothing says where it ends: whatever comes would look complete.
    return Number.isNaN(this.#left) ? 'wrong' : undefined
  }

  #field(name: string): string {
    return fieldOf(this.#head, name)
  }

  #takeBody(piece: Buffer): boolean {
    const isRight = isBody(this.#expected.id, this.#taken, piece)
    this.#taken += piece.length
    return isRight && this.#taken <= this.#expected.bytes
  }

  #complete(): Judgement {
    return this.#taken === this.#expected.bytes ? 'right' : 'truncated'
  }

  #takeCounted(bytes: Buffer): Judgement | undefined {
    if (bytes.length > this.#left || !this.#takeBody(bytes)) return 'wrong'
    this.#left -= bytes.length
    return this.#left === 0 ? this.#complete() : undefined
  }

  #takeChunks(bytes: Buffer): Judgement | undefined {
    for (let at = 0; at < bytes.length; ) {
      if (this.#left > 0) {
        const piece = bytes.subarray(at, at + this.#left)
        if (!this.#takeBody(piece)) return 'wrong'
        this.#left -= piece.length
        at += piece.length
        continue
      }
      this.#line += String.fromCharCode(bytes[at++]!)
      if (!this.#line.endsWith('\r\n')) continue
      const line = this.#line.slice(0, -2)
      this.#line = ''
      // What ends the chunk before, or the answer: the app sends no trailers.
      if (line === '') {
        if (this.#isLastChunk) return this.#complete()
        continue
      }
      this.#left = Number.parseInt(line, 16)
      if (Number.isNaN(this.#left)) return 'wrong'
      this.#isLastChunk = this.#left === 0
    }
    return undefined
  }
}

/** Why a server does not do what it was asked. */
export function refusalIn(head: string): Judgement {
  const [, status = '?'] = /^HTTP\/1\.1 (\d+)/.exec(head) ?? []
  return `failed: ${status} ${fieldOf(head, 'x-localtunnels-error')}`
}

function fieldOf(head: string, name: string): string {
  return new RegExp(`\r\n${name}: *([^\r]*)\r\n`, 'i').exec(head)?.[1] ?? ''
}
