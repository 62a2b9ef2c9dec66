// Turns the frames of one HTTP/2 connection into entries: each stream is read as HTTP/1.1 text.

import { copyOf } from '../../bytes.ts'
import type { TunnelError } from '../../errors.ts'
import { ascii } from '../../http/characters.ts'
import { writeResponseHead, writeTrailers } from '../../http2/answer-text.ts'
import { FieldList } from '../../http2/field-list.ts'
import { PREFACE } from '../../http2/frame.ts'
import { FrameDecoder, type FrameHandler } from '../../http2/frame-decoder.ts'
import { HpackDecoder } from '../../http2/hpack-decoder.ts'
import { maxTextBytes } from '../../http2/message-fields.ts'
import { writeRequestHead } from '../../http2/request-text.ts'
import type { Capture } from './capture.ts'
import type { Place } from './entry.ts'
import { FROM_APP, TO_APP, type Way } from './flow.ts'
import { HEAD_LIMITS, HttpReader } from './http-reader.ts'

/** The number of streams followed at once: as many as the server opens. Further ones are not captured. */
export const MAX_STREAMS = 100
/** A large number, because the server limits heads before they come here. */
const MAX_CONTINUATIONS = 1_024
/** The size of an upgrade's lines. */
const UPGRADE_BYTES = 256
/** A placeholder for the key of a WebSocket, which HTTP/2 does not have. */
const KEY = 'AAAAAAAAAAAAAAAAAAAAAA=='
const LAST_CHUNK = ascii('0\r\n\r\n')
const CRLF = ascii('\r\n')

/** The text of a stream's two messages, for a reader. */
interface Exchange {
  readonly reader: HttpReader
  method: string
  isUpgrade: boolean
  readonly isChunked: [boolean, boolean]
  readonly hasHead: [boolean, boolean]
  readonly hasEnded: [boolean, boolean]
}

export class Http2Reader {
  readonly #room: Capture
  readonly #place: Place
  readonly #exchanges = new Map<number, Exchange>()
  readonly #decoders: readonly [FrameDecoder, FrameDecoder]
  #at = 0
  isOver = false

  constructor(room: Capture, place: Place) {
    this.#room = room
    this.#place = place
    const bounds = { maxBlockBytes: HEAD_LIMITS.maxHeadBytes, maxContinuations: MAX_CONTINUATIONS }
    this.#decoders = [
      new FrameDecoder(this.#handler(TO_APP), { role: 'server', ...bounds }),
      new FrameDecoder(this.#handler(FROM_APP), { role: 'client', ...bounds }),
    ]
  }

  take(way: Way, bytes: Uint8Array, at: number): void {
    if (this.isOver) return
    this.#at = at
    const fault = this.#decoders[way].receive(bytes, 0, bytes.length)
    if (fault === undefined) return
    this.lose(at)
    this.isOver = true
  }

  ended(): void {}

  unseenBytes(): number {
    return 0
  }

  passed(): void {}

  /** Ends the open exchanges without their rest. */
  lose(at: number): void {
    for (const { reader } of this.#exchanges.values()) reader.lose(at)
    this.#exchanges.clear()
  }

  closed(at: number, code: TunnelError['code'] | undefined): void {
    for (const { reader } of this.#exchanges.values()) reader.closed(at, code ?? 'ORIGIN_CLOSED')
    this.#exchanges.clear()
  }

  #handler(way: Way): FrameHandler {
    const hpack = new HpackDecoder({ maxListBytes: HEAD_LIMITS.maxHeadBytes })
    const fields = new FieldList()
    const nothing = () => {}
    return {
      frame: nothing,
      data: (stream, bytes, start, end) => this.#data(way, stream, bytes, start, end),
      dataEnded: (stream, _padding, isLast) => {
        if (isLast) this.#messageEnded(way, stream, LAST_CHUNK)
      },
      headers: (stream, isLast, _isMalformed, bytes, start, end) => {
        if (!hpack.decode(bytes, start, end, fields)) this.#decoders[way].fail(9, '')
        else this.#head(way, stream, fields, isLast)
      },
      reset: stream => {
        const exchange = this.#exchanges.get(stream)
        exchange?.reader.closed(this.#at, way === TO_APP ? 'CANCELLED' : 'ORIGIN_CLOSED')
        this.#exchanges.delete(stream)
      },
      settings: nothing,
      settingsAcknowledged: nothing,
      ping: nothing,
      pong: nothing,
      goaway: nothing,
      windowUpdate: nothing,
      streamFault: nothing,
    }
  }

  #head(way: Way, stream: number, fields: FieldList, isLast: boolean): void {
    const known = this.#exchanges.get(stream)
    if (known === undefined) {
      if (way === TO_APP) this.#begin(stream, fields, isLast)
    } else if (known.hasHead[way]) this.#trailers(way, stream, fields)
    else if (way === FROM_APP) this.#answer(stream, known, fields, isLast)
  }

  #begin(stream: number, fields: FieldList, isLast: boolean): void {
    if (this.#exchanges.size >= MAX_STREAMS) return
    const text = new Uint8Array(maxTextBytes(fields) + UPGRADE_BYTES)
    const end = fields.isTooLarge ? -1 : writeRequestHead(fields, isLast, KEY, text, 0)
    if (end < 0) return
    const isUpgrade = has(fields, ':protocol')
    const exchange: Exchange = {
      reader: new HttpReader(this.#room, this.#place, undefined),
      method: fields.value(0),
      isUpgrade,
      isChunked: [!isLast && !isUpgrade && !has(fields, 'content-length'), false],
      hasHead: [true, false],
      hasEnded: [isLast, false],
    }
    exchange.reader.take(TO_APP, text.subarray(0, end), this.#at)
    // This one is not captured, because there are too many requests.
    if (!exchange.reader.isOver) this.#exchanges.set(stream, exchange)
  }

  #answer(stream: number, exchange: Exchange, fields: FieldList, isLast: boolean): void {
    const { method, isUpgrade } = exchange
    const status = Number(fields.value(0))
    const text = new Uint8Array(maxTextBytes(fields) + UPGRADE_BYTES)
    const terms = { isLast, method, webSocketAccept: isUpgrade ? KEY : '' }
    const end = fields.isTooLarge ? -1 : writeResponseHead(fields, terms, text, 0)
    if (end < 0) return this.#drop(stream, exchange)
    const isFinal = status >= 200
    const isSwitched = isUpgrade && isFinal && status < 300
    const isWithoutBody = status === 204 || status === 304 || method === 'HEAD'
    exchange.hasHead[FROM_APP] = isFinal
    exchange.isChunked[FROM_APP] =
      isFinal && !isLast && !isSwitched && !isWithoutBody && !has(fields, 'content-length')
    exchange.reader.take(FROM_APP, text.subarray(0, end), this.#at)
    if (isLast) this.#messageEnded(FROM_APP, stream, undefined)
  }

  #trailers(way: Way, stream: number, fields: FieldList): void {
    const text = new Uint8Array(maxTextBytes(fields))
    const end = fields.isTooLarge ? -1 : writeTrailers(fields, way === FROM_APP, text, 0)
    this.#messageEnded(way, stream, end < 0 ? LAST_CHUNK : text.subarray(0, end))
  }

  #data(way: Way, stream: number, bytes: Uint8Array, start: number, end: number): void {
    const exchange = this.#exchanges.get(stream)
    if (exchange === undefined || !exchange.hasHead[way] || start === end) return
    const { reader } = exchange
    if (exchange.isChunked[way]) reader.take(way, ascii(`${(end - start).toString(16)}\r\n`), this.#at)
    reader.take(way, copyOf(bytes, start, end), this.#at)
    if (exchange.isChunked[way]) reader.take(way, CRLF, this.#at)
    if (reader.isOver) this.#exchanges.delete(stream)
  }

  #messageEnded(way: Way, stream: number, last: Uint8Array | undefined): void {
    const exchange = this.#exchanges.get(stream)
    if (exchange === undefined || exchange.hasEnded[way]) return
    const { reader, isChunked, isUpgrade, hasEnded } = exchange
    hasEnded[way] = true
    if (isChunked[way] && last !== undefined) reader.take(way, last, this.#at)
    if (isUpgrade) reader.ended(way, this.#at)
    if (!hasEnded[TO_APP] || !hasEnded[FROM_APP]) return
    this.#exchanges.delete(stream)
    reader.closed(this.#at, undefined)
  }

  #drop(stream: number, { reader }: Exchange): void {
    reader.lose(this.#at)
    this.#exchanges.delete(stream)
  }
}

/** Whether a connection of HTTP/2 begins with bytes[start, end). */
export function isPreface(bytes: Uint8Array, start: number, end: number): boolean {
  if (end - start < PREFACE.length) return false
  return PREFACE.every((byte, index) => bytes[start + index] === byte)
}

function has(fields: FieldList, name: string): boolean {
  for (let field = 0; field < fields.count; field++) if (fields.name(field) === name) return true
  return false
}
