// Reads one direction of a WebSocket (RFC 6455) as messages, decompressed if they use permessage-deflate (RFC 7692).
// It sends and refuses nothing; after a protocol error it stops reading.

import { constants, inflateRawSync } from 'node:zlib'
import { copyOf } from '../../../bytes.ts'
import type { Frame } from '../../../exchange.ts'
import { joined } from '../../../http/characters.ts'

/** The negotiated compression of one direction. */
export interface Deflate {
  /** Whether each message begins with an empty dictionary. */
  readonly noContextTakeover: boolean
}

/** A frame without `index`, `atMs` and `from`, which the caller adds. */
export type FoundFrame = Omit<Frame, 'index' | 'atMs' | 'from'>

const CONTINUATION = 0
const TEXT = 1
const CLOSE = 8
const PING = 9
const PONG = 10
/** The bytes that the sender removed from the end (RFC 7692 section 7.2.1). */
const DEFLATE_TAIL = new Uint8Array([0, 0, 0xff, 0xff])
const WINDOW_BYTES = 32_768
/** The factor by which compressed messages may exceed the limit of a message. With less, most of them could not be read. */
const INFLATE_FACTOR = 4

interface Message {
  readonly opcode: number
  readonly isCompressed: boolean
  pieces: Uint8Array[]
  keptBytes: number
  totalBytes: number
}

export class WebSocketReader {
  readonly #maxBytes: number
  readonly #found: (frame: FoundFrame) => void
  readonly #deflate: Deflate | undefined
  /** The end of the last decompressed data. `undefined` if it is unknown, so that nothing more can be decompressed. */
  #dictionary: Uint8Array | undefined = new Uint8Array(0)
  /** The beginning of a frame's header. */
  readonly #head = new Uint8Array(14)
  #headLength = 0
  /** The number of bytes left of the frame's payload; -1 until its header is complete. */
  #left = -1
  #position = 0
  #isMasked = false
  #isLast = false
  #maskAt = 0
  #data: Message | undefined
  #current: Message | undefined
  /** Whether the bytes are not WebSocket frames. */
  isBroken = false

  /** Makes a reader. `maxBytes` is the size of the stored part of a message. */
  constructor(maxBytes: number, deflate: Deflate | undefined, found: (frame: FoundFrame) => void) {
    this.#maxBytes = maxBytes
    this.#deflate = deflate
    this.#found = found
  }

  take(bytes: Uint8Array): void {
    let at = 0
    while (at < bytes.length && !this.isBroken) {
      if (this.#left < 0) {
        this.#head[this.#headLength++] = bytes[at++]!
        this.#readHead()
      } else at = this.#readPayload(bytes, at)
      if (this.#left === 0 && !this.isBroken) this.#frameEnded()
    }
  }

  #readHead(): void {
    const head = this.#head
    if (this.#headLength < 2) return
    const short = head[1]! & 0x7f
    const lengthBytes = short === 126 ? 2 : short === 127 ? 8 : 0
    this.#isMasked = (head[1]! & 0x80) !== 0
    this.#maskAt = 2 + lengthBytes
    if (this.#headLength < this.#maskAt + (this.#isMasked ? 4 : 0)) return
    let length = short
    if (lengthBytes > 0) {
      length = 0
      for (let index = 2; index < this.#maskAt; index++) length = length * 256 + head[index]!
    }
    const opcode = head[0]! & 0x0f
    this.#isLast = (head[0]! & 0x80) !== 0
    this.#begin(opcode, (head[0]! & 0x40) !== 0)
    this.#left = length
    this.#position = 0
    this.#headLength = 0
  }

  #begin(opcode: number, isCompressed: boolean): void {
    const isControl = opcode >= CLOSE
    const continues = opcode === CONTINUATION
    if (
      opcode > PONG ||
      (opcode > 2 && !isControl) ||
      (!isControl && continues !== (this.#data !== undefined))
    ) {
      this.isBroken = true
      return
    }
    if (continues) this.#current = this.#data
    else this.#current = { opcode, isCompressed, pieces: [], keptBytes: 0, totalBytes: 0 }
    if (!isControl) this.#data = this.#current
  }

  #readPayload(bytes: Uint8Array, at: number): number {
    const message = this.#current!
    const count = Math.min(this.#left, bytes.length - at)
    const limit = message.isCompressed ? this.#maxBytes * INFLATE_FACTOR : this.#maxBytes
    const kept = Math.max(0, Math.min(count, limit - message.keptBytes))
    if (kept > 0) {
      const piece = copyOf(bytes, at, at + kept)
      if (this.#isMasked)
        for (let index = 0; index < kept; index++)
          piece[index]! ^= this.#head[this.#maskAt + ((this.#position + index) & 3)]!
      message.pieces.push(piece)
      message.keptBytes += kept
    }
    message.totalBytes += count
    this.#position += count
    this.#left -= count
    return at + count
  }

  #frameEnded(): void {
    this.#left = -1
    const message = this.#current!
    if (!this.#isLast) return
    if (message === this.#data) this.#data = undefined
    this.#tell(message)
  }

  #tell(message: Message): void {
    const raw = joined(message.pieces)
    const { totalBytes, opcode } = message
    if (opcode === CLOSE) {
      const hasCode = raw.length >= 2
      this.#found({
        type: 'close',
        totalBytes,
        keptBytes: raw.length,
        ...(hasCode && { closeCode: raw[0]! * 256 + raw[1]!, text: textOf(raw.subarray(2)) }),
      })
      return
    }
    if (opcode === PING || opcode === PONG) {
      const type = opcode === PING ? 'ping' : 'pong'
      return this.#found({ type, totalBytes, keptBytes: raw.length, base64: base64Of(raw) })
    }
    const inflated = message.isCompressed ? this.#inflate(raw, totalBytes) : raw
    const isCompressed = message.isCompressed ? ({ isCompressed: true } as const) : {}
    // A message that cannot be decompressed is shown as sent.
    const content = inflated ?? raw
    const kept = content.length > this.#maxBytes ? content.subarray(0, this.#maxBytes) : content
    const isText = opcode === TEXT && inflated !== undefined
    this.#found({
      type: opcode === TEXT ? 'text' : 'binary',
      totalBytes: inflated === undefined || !message.isCompressed ? totalBytes : inflated.length,
      keptBytes: kept.length,
      ...(isText ? { text: textOf(kept) } : { base64: base64Of(kept) }),
      ...isCompressed,
    })
  }

  #inflate(raw: Uint8Array, totalBytes: number): Uint8Array | undefined {
    if (this.#deflate === undefined || this.#dictionary === undefined) return undefined
    try {
      if (raw.length < totalBytes) throw new Error('it was not kept whole')
      const inflated = inflateRawSync(joined([raw, DEFLATE_TAIL]), {
        ...(this.#dictionary.length > 0 && { dictionary: this.#dictionary }),
        finishFlush: constants.Z_SYNC_FLUSH,
        maxOutputLength: Math.max(this.#maxBytes * INFLATE_FACTOR, 1),
      })
      if (!this.#deflate.noContextTakeover)
        this.#dictionary = joined([this.#dictionary, inflated]).slice(-WINDOW_BYTES)
      return inflated
    } catch {
      // Too large, or not deflate. Later messages may depend on this one.
      if (!this.#deflate.noContextTakeover) this.#dictionary = undefined
      return undefined
    }
  }
}

function textOf(bytes: Uint8Array): string {
  // A truncated message may end in the middle of a character.
  return new TextDecoder().decode(bytes, { stream: true })
}

function base64Of(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')
}

/** Returns the compression that the response's Sec-WebSocket-Extensions agrees to, for both directions. */
export function agreedDeflate(
  extensions: string,
): { readonly toApp: Deflate; readonly fromApp: Deflate } | undefined {
  const offer = extensions.split(',').map(one => one.split(';').map(part => part.trim().toLowerCase()))
  const agreed = offer.find(([name]) => name === 'permessage-deflate')
  if (agreed === undefined) return undefined
  return {
    toApp: { noContextTakeover: agreed.includes('client_no_context_takeover') },
    fromApp: { noContextTakeover: agreed.includes('server_no_context_takeover') },
  }
}
