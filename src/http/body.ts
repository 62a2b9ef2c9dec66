// Finds the end of a body from the framing in its head, and can return the payload without framing.

import { copyBytes, copyOf } from '../bytes.ts'
import {
  ascii,
  BACKSLASH,
  COLON,
  CR,
  EQUALS,
  isForbiddenInValue,
  joined,
  LF,
  QUOTE,
  SEMICOLON,
  SP,
  TAB,
  TOKEN,
} from './characters.ts'
import { isAmong, isBelieved, kindOf, OTHER } from './field-names.ts'
import type { BodyKind } from './head.ts'
import { LooseHead, nameOf } from './loose-head.ts'

/** The maximum number of bytes between the size of one chunk and its CRLF. Almost only request smugglers send extensions. */
const MAX_EXTENSION_BYTES = 256
/** The maximum number of such bytes if they are ignored. Go's reader, and so Caddy, allows as many. */
const MAX_IGNORED_BYTES = 4_096
/** The maximum number of digits of a chunk size, including leading zeros. The value has a limit of its own. */
const MAX_SIZE_DIGITS = 16
const MAX_TRAILER_BYTES = 8192
const MAX_TRAILERS = 64
/** The number of bytes of a trailer name that are compared. No forbidden name is longer. */
const MAX_KNOWN_NAME = 32

/** The size up to which chunks are returned together. Each by itself would cost a write, or an array that is kept. */
const SMALL_CHUNK_BYTES = 4_096
const GATHERED_BYTES = 16_384

/**
 * Called with payload without chunk framing: bytes[start, end), piece by piece. The array is the one given to `feed`,
 * or another one in which small chunks were collected.
 */
export type Payload = (bytes: Uint8Array, start: number, end: number) => void

// States of a chunked body, in the order of the bytes (RFC 9112 section 7.1):
//
//   SIZE_START 5 SIZE ; EXT_START a EXT_NAME = EXT_VALUE_START b EXT_VALUE \r SIZE_LF \n DATA hello \r DATA_CR \n DATA_LF
//   0 \r\n LINE Name NAME : VALUE \r VALUE_LF \n LINE \r LAST_LF \n
//
// Blanks may be around `;` and `=`: EXT_NAME_END after a name, EXT_END after the size or a value. A tolerant reader is
// in EXT_IGNORED for all of `; a = b`.
const SIZE_START = 0
const SIZE = 1
const EXT_START = 2
const EXT_NAME = 3
const EXT_NAME_END = 4
const EXT_VALUE_START = 5
const EXT_VALUE = 6
const EXT_QUOTED = 7
const EXT_ESCAPED = 8
const EXT_QUOTED_END = 9
const EXT_END = 10
const EXT_IGNORED = 11
const SIZE_LF = 12
const DATA = 13
const DATA_CR = 14
const DATA_LF = 15
const LINE = 16
const NAME = 17
const VALUE = 18
const VALUE_LF = 19
const LAST_LF = 20

const EMPTY = new Uint8Array(0)
const ONE_CR = Uint8Array.of(CR)

/** Frames one body after another. It only counts: it takes bytes and returns where the body ends. */
export class BodyFramer {
  /** Whether the last byte of the body was seen. A body of kind `close` is complete only after `ended`. */
  complete = true
  /** The number of payload bytes so far, without chunk framing. */
  payloadBytes = 0
  /** The bytes of chunk framing after which `feed` stops. They cost a hundred times as much as payload. */
  framingLeft: number = Number.POSITIVE_INFINITY
  /**
   * Whether to read a body as tolerant proxies do: ignores anything after the size of a chunk, accepts LF alone as a
   * line end, and accepts trailers as loose as heads. Forbidden trailers are left out.
   */
  isTolerant = false
  /** The bytes that `feed` read, rewritten for a strict reader. `undefined` if they are unchanged. */
  cleaned: Uint8Array | undefined

  readonly #payload: Payload | undefined
  readonly #trailer: Payload | undefined
  #kind: BodyKind = 'none'
  /** The number of bytes left in the body or the chunk. */
  #left = 0
  #state = SIZE_START
  /** The number of size digits, extension bytes or trailer bytes so far, for the limit that applies. */
  #used = 0
  #trailers = 0
  #nameLength = 0
  readonly #name: Uint8Array
  readonly #forbidden: readonly Uint8Array[]
  // Small chunks that one `feed` read and has not returned. A single chunk stays where it was read; several are copied
  // into one array.
  #firstStart = 0
  #firstEnd = 0
  #gathered: Uint8Array | undefined
  #gatheredBytes = 0
  // The strict copy that is being made, and the position up to which it is complete.
  #isCleaning = false
  #cleaning: Uint8Array = EMPTY
  #cleanedBytes = 0
  #uncleanedFrom = 0
  /** Incomplete trailers of an app, with their bytes so far. */
  #trailing: { readonly loose: LooseHead; readonly text: Uint8Array } | undefined
  /** The state before the byte that broke the framing, for the message. */
  #brokenIn = SIZE_START
  #trailerFault = ''

  /**
   * Makes a framer. `trailer` gets the bytes after the last chunk, including the blank line. `forbidden`: lower-case
   * names that no trailer may have, in addition to those that are always forbidden; `_` counts as `-`.
   */
  constructor(payload?: Payload, trailer?: Payload, forbidden: readonly string[] = []) {
    this.#payload = payload
    this.#trailer = trailer
    this.#forbidden = forbidden.map(ascii)
    this.#name = new Uint8Array(Math.max(MAX_KNOWN_NAME, ...forbidden.map(name => name.length)))
  }

  begin(kind: BodyKind, contentLength: number): void {
    this.#kind = kind
    this.#left = kind === 'length' ? contentLength : 0
    this.#state = SIZE_START
    this.#used = 0
    this.#trailers = 0
    this.payloadBytes = 0
    this.cleaned = undefined
    this.#trailing = undefined
    this.complete = kind === 'none' || (kind === 'length' && contentLength === 0)
  }

  /**
   * Takes bytes[start, end) as body. Returns the index after the last byte of the body; `end` if more follows; -1 if
   * the framing is broken, after which the framer needs `begin`. Returns an earlier index without being complete when
   * `framingLeft` is used up: then feed the rest again.
   */
  feed(bytes: Uint8Array, start: number, end: number): number {
    if (this.complete) return start
    if (this.#kind === 'chunked') return this.#feedChunks(bytes, start, end)
    let stop = end
    if (this.#kind === 'length') {
      if (end - start >= this.#left) {
        stop = start + this.#left
        this.complete = true
      }
      this.#left -= stop - start
    }
    this.#pay(bytes, start, stop)
    return stop
  }

  /** Returns the fault in words for the sender's owner, after a tolerant reader returned -1. */
  get fault(): string {
    if (this.#brokenIn >= LINE) return this.#trailerFault
    if (this.#brokenIn === DATA_CR || this.#brokenIn === DATA_LF)
      return 'a chunk of its body is longer than its size'
    if (this.#brokenIn === SIZE && this.#used > MAX_SIZE_DIGITS)
      return `the size of a chunk has more than ${MAX_SIZE_DIGITS} digits`
    if (this.#used > MAX_IGNORED_BYTES)
      return `the size of a chunk has more than ${MAX_IGNORED_BYTES} bytes behind it`
    if (this.#brokenIn <= SIZE) return 'a chunk of its body has no size in hexadecimal digits'
    return 'the line with the size of a chunk is malformed'
  }

  /** The number of bytes still to come if the head announced a length; otherwise 0. */
  get leftBytes(): number {
    return this.#kind === 'length' ? this.#left : 0
  }

  /** Counts bytes of the body that moved without being read, at most `leftBytes`. */
  skip(count: number): void {
    this.#left -= count
    this.payloadBytes += count
    if (this.#left === 0) this.complete = true
  }

  /**
   * Called when the connection ended. Returns whether the body may end here, because a truncated one must never look complete.
   */
  ended(): boolean {
    if (this.#kind === 'close') this.complete = true
    return this.complete
  }

  #pay(bytes: Uint8Array, start: number, end: number): void {
    this.payloadBytes += end - start
    if (end > start) this.#payload?.(bytes, start, end)
  }

  #feedChunks(bytes: Uint8Array, start: number, end: number): number {
    this.cleaned = undefined
    const stop = this.#scanChunks(bytes, start, end)
    if (this.#payload !== undefined) this.#handOut(bytes)
    if (this.#isCleaning) {
      this.#isCleaning = false
      this.cleaned = this.#addCleaned(bytes, this.#uncleanedFrom, stop).subarray(0, this.#cleanedBytes)
    }
    return stop
  }

  /** Replaces bytes[from, to) by `text` in the strict copy. `start`: the first fed byte. */
  #replace(bytes: Uint8Array, start: number, from: number, to: number, text: Uint8Array): void {
    if (!this.#isCleaning) {
      this.#isCleaning = true
      this.#cleaning = EMPTY
      this.#cleanedBytes = 0
      this.#uncleanedFrom = start
    }
    this.#addCleaned(bytes, this.#uncleanedFrom, from)
    this.#addCleaned(text, 0, text.length)
    this.#uncleanedFrom = to
  }

  #addCleaned(bytes: Uint8Array, start: number, end: number): Uint8Array {
    if (end <= start) return this.#cleaning
    const before = this.#cleaning
    const needed = this.#cleanedBytes + end - start
    if (needed > before.length) {
      this.#cleaning = new Uint8Array(2 * needed)
      copyBytes(before, 0, this.#cleanedBytes, this.#cleaning, 0)
    }
    copyBytes(bytes, start, end, this.#cleaning, this.#cleanedBytes)
    this.#cleanedBytes = needed
    return this.#cleaning
  }

  #scanChunks(bytes: Uint8Array, start: number, end: number): number {
    const most = this.framingLeft
    let framing = 0
    let at = start
    while (at < end) {
      if (this.#state === DATA) {
        const stop = Math.min(end, at + this.#left)
        this.#left -= stop - at
        if (this.#left === 0) this.#state = DATA_CR
        if (this.#payload === undefined) this.payloadBytes += stop - at
        else this.#gather(bytes, at, stop)
        at = stop
        continue
      }
      if (this.#state >= LINE) {
        this.#handOut(bytes)
        return this.isTolerant
          ? this.#readTrailers(bytes, start, at, end)
          : this.#scanTrailers(bytes, at, end)
      }
      if (framing === most) break
      framing++
      const byte = bytes[at]!
      const state = this.#state
      if (byte === LF && this.isTolerant && this.#mayEndLine) {
        this.#takeFraming(CR)
        this.#replace(bytes, start, at, at, ONE_CR)
      }
      if (!this.#takeFraming(byte)) return this.#break(state)
      if (this.isTolerant && (this.#state === EXT_END || this.#state === EXT_IGNORED))
        this.#replace(bytes, start, at, at + 1, EMPTY)
      at++
    }
    this.framingLeft = most - framing
    return at
  }

  #break(state: number): -1 {
    this.#brokenIn = state
    return -1
  }

  /** Reads the bytes after the last chunk. Their number has a limit of its own. */
  #scanTrailers(bytes: Uint8Array, start: number, end: number): number {
    let at = start
    while (at < end && !this.complete) if (!this.#takeFraming(bytes[at++]!)) return this.#break(LINE)
    this.#trailer?.(bytes, start, at)
    return at
  }

  /** Reads the trailers of an app, which are forwarded once they are complete. */
  #readTrailers(bytes: Uint8Array, start: number, from: number, end: number): number {
    const isFirst = this.#trailing === undefined
    // Nearly every body ends like this, without trailers.
    if (isFirst && bytes[from] === CR && bytes[from + 1] === LF && from + 1 < end)
      return this.#scanTrailers(bytes, from, end)
    const { loose = new LooseHead('trailers'), text: before = EMPTY } = this.#trailing ?? {}
    const text = joined([before, bytes.subarray(from, end)])
    const length = loose.take(text, 0, text.length)
    this.#trailerFault = loose.fault || `its trailers are longer than ${MAX_TRAILER_BYTES} bytes`
    if (length < 0 || (length === 0 && text.length > MAX_TRAILER_BYTES)) return this.#break(LINE)
    if (length === 0) {
      this.#trailing = { loose, text: copyOf(text) }
      this.#replace(bytes, start, from, end, EMPTY)
      return end
    }
    this.#trailerFault = `its trailers have more than ${MAX_TRAILERS} lines, or ${MAX_TRAILER_BYTES} bytes`
    loose.lines = loose.lines.filter(line => this.#mayTrail(ascii(nameOf(line))))
    const strict = loose.text()
    if (this.#scanTrailers(strict, 0, strict.length) !== strict.length) return this.#break(LINE)
    const to = from + length - before.length
    const isSame = isFirst && length === strict.length && strict.every((byte, at) => byte === text[at])
    if (!isSame) this.#replace(bytes, start, from, to, strict)
    return to
  }

  /** Returns a piece of payload through `payload`, or keeps it to be joined with others of this `feed`. */
  #gather(bytes: Uint8Array, start: number, end: number): void {
    const count = end - start
    if (count > SMALL_CHUNK_BYTES) {
      this.#handOut(bytes)
      return this.#pay(bytes, start, end)
    }
    if (this.#firstStart === this.#firstEnd && this.#gatheredBytes === 0) {
      this.#firstStart = start
      this.#firstEnd = end
      return
    }
    if (this.#gatheredBytes + count > GATHERED_BYTES) this.#handOut(bytes)
    this.#gathered ??= new Uint8Array(GATHERED_BYTES)
    if (this.#firstEnd > this.#firstStart) this.#copy(bytes, this.#firstStart, this.#firstEnd)
    this.#firstStart = this.#firstEnd = 0
    this.#copy(bytes, start, end)
  }

  #copy(bytes: Uint8Array, start: number, end: number): void {
    copyBytes(bytes, start, end, this.#gathered!, this.#gatheredBytes)
    this.#gatheredBytes += end - start
  }

  #handOut(bytes: Uint8Array): void {
    const [start, end, gathered, gatheredBytes] = [
      this.#firstStart,
      this.#firstEnd,
      this.#gathered,
      this.#gatheredBytes,
    ]
    this.#firstStart = this.#firstEnd = this.#gatheredBytes = 0
    this.#gathered = undefined
    if (end > start) this.#pay(bytes, start, end)
    else if (gathered !== undefined && gatheredBytes > 0) this.#pay(gathered, 0, gatheredBytes)
  }

  /** Takes a byte of framing. Returns `false` if it is not allowed there. */
  #takeFraming(byte: number): boolean {
    switch (this.#state) {
      case SIZE_START:
        this.#left = 0
        this.#used = 0
        this.#state = SIZE
        return this.#takeDigit(byte)
      case SIZE:
        if (byte === CR) this.#state = SIZE_LF
        else if (byte === SEMICOLON || isBlank(byte)) {
          this.#state = byte === SEMICOLON ? this.#extension : EXT_END
          this.#used = 1
        } else return this.#takeDigit(byte)
        return true
      case SIZE_LF:
        this.#state = this.#left === 0 ? LINE : DATA
        this.#used = 0
        return byte === LF
      case DATA_CR:
        this.#state = DATA_LF
        return byte === CR
      case DATA_LF:
        this.#state = SIZE_START
        return byte === LF
      case LINE:
      case NAME:
      case VALUE:
      case VALUE_LF:
      case LAST_LF:
        return ++this.#used <= MAX_TRAILER_BYTES && this.#takeTrailer(byte)
      default:
        if (byte === CR && this.#mayEndLine) {
          this.#state = SIZE_LF
          return true
        }
        return (
          ++this.#used <= (this.isTolerant ? MAX_IGNORED_BYTES : MAX_EXTENSION_BYTES) &&
          this.#takeExtension(byte)
        )
    }
  }

  /** Whether a CR is allowed here. It is not allowed after blanks that lead to nothing. */
  get #mayEndLine(): boolean {
    const state = this.#state
    if (this.isTolerant)
      return state === SIZE || state === EXT_END || state === EXT_IGNORED || state === DATA_CR
    return state === EXT_NAME || state === EXT_VALUE || state === EXT_QUOTED_END
  }

  /** The state after the `;` of a size. */
  get #extension(): number {
    return this.isTolerant ? EXT_IGNORED : EXT_START
  }

  #takeDigit(byte: number): boolean {
    const lower = byte | 0x20
    let digit = byte - 0x30
    if (digit < 0 || digit > 9) {
      if (lower < 0x61 || lower > 0x66) return false
      digit = lower - 0x57
    }
    this.#left = this.#left * 16 + digit
    return ++this.#used <= MAX_SIZE_DIGITS && this.#left <= Number.MAX_SAFE_INTEGER
  }

  /**
   * Takes a byte of ` ; name = "value"` (RFC 9112 section 7.1.1). CR and LF are refused even in quotes: a reader that
   * does not know quotes would end the line there.
   */
  #takeExtension(byte: number): boolean {
    switch (this.#state) {
      case EXT_START:
        if (isBlank(byte)) return true
        this.#state = EXT_NAME
        return TOKEN[byte] === 1
      case EXT_VALUE_START:
        if (isBlank(byte)) return true
        this.#state = byte === QUOTE ? EXT_QUOTED : EXT_VALUE
        return byte === QUOTE || TOKEN[byte] === 1
      case EXT_QUOTED:
        if (byte === QUOTE) this.#state = EXT_QUOTED_END
        else if (byte === BACKSLASH) this.#state = EXT_ESCAPED
        return !isForbiddenInValue(byte)
      case EXT_ESCAPED:
        this.#state = EXT_QUOTED
        return !isForbiddenInValue(byte)
      case EXT_IGNORED:
        return byte !== CR && byte !== LF
      default:
        return this.#goOnBehind(byte)
    }
  }

  /** Takes a byte in or after a name or a value, or after the size. */
  #goOnBehind(byte: number): boolean {
    const isOfName = this.#state === EXT_NAME || this.#state === EXT_NAME_END
    if (byte === SEMICOLON) this.#state = this.#extension
    else if (byte === EQUALS && isOfName) this.#state = EXT_VALUE_START
    else if (isBlank(byte)) this.#state = isOfName ? EXT_NAME_END : EXT_END
    else return (this.#state === EXT_NAME || this.#state === EXT_VALUE) && TOKEN[byte] === 1
    return true
  }

  /**
   * Takes a byte after the last chunk. Trailers are lines as in a head, without those that framing, routing or guards depend on.
   */
  #takeTrailer(byte: number): boolean {
    switch (this.#state) {
      case LINE:
        if (byte === CR) {
          this.#state = LAST_LF
          return true
        }
        this.#state = NAME
        this.#nameLength = 0
        return ++this.#trailers <= MAX_TRAILERS && this.#takeName(byte)
      case NAME:
        if (byte !== COLON) return this.#takeName(byte)
        this.#state = VALUE
        return this.#mayTrail(this.#name, this.#nameLength)
      case VALUE:
        if (byte === CR) this.#state = VALUE_LF
        else return !isForbiddenInValue(byte)
        return true
      case VALUE_LF:
        this.#state = LINE
        return byte === LF
      default:
        this.complete = byte === LF
        return this.complete
    }
  }

  /**
   * Whether a trailer may have this name. `name` has the first bytes of it, as many as are compared; `length` is the
   * length of the whole name.
   */
  #mayTrail(name: Uint8Array, length: number = name.length): boolean {
    return (
      !isBelieved(name, length) &&
      !isAmong(this.#forbidden, name, length) &&
      (length > MAX_KNOWN_NAME || kindOf(name, 0, length) === OTHER)
    )
  }

  #takeName(byte: number): boolean {
    if (this.#nameLength < this.#name.length) this.#name[this.#nameLength] = byte
    this.#nameLength++
    return TOKEN[byte] === 1
  }
}

/** Makes a framer at the beginning of the body behind `head`. The other parameters are those of `BodyFramer`. */
export function bodyOf(
  head: { readonly body: BodyKind; readonly contentLength: number },
  payload?: Payload,
  forbidden?: readonly string[],
): BodyFramer {
  const framer = new BodyFramer(payload, undefined, forbidden)
  framer.begin(head.body, head.contentLength)
  return framer
}

/** Whether the byte is BWS: white space that the grammar tolerates. */
function isBlank(byte: number): boolean {
  return byte === SP || byte === TAB
}
