// The header lines of one head: the position and kind of each. Strings are made only on request.

import type { ErrorCode } from '../errors.ts'
import { COLON, COMMA, CR, DEL, isSameText, isSpelled, LF, latin1, SP, TAB, TOKEN } from './characters.ts'
import { LOGS_CONNECTION_IN, OTHER_SCHEME, schemesIn } from './connection-logins.ts'
import {
  AUTHORIZATION,
  CONNECTION,
  CONTENT_LENGTH,
  EXPECT,
  HOST,
  kindOf,
  LOOKALIKE,
  OTHER,
  TRANSFER_ENCODING,
  UPGRADE,
  WWW_AUTHENTICATE,
} from './field-names.ts'

/** The numbers stored per line: name start, name end, value start, value end, kind. */
const PER_LINE = 5
const NAME_START = 0
const NAME_END = 1
const VALUE_START = 2
const VALUE_END = 3
const KIND = 4

/** The maximum number of names in one Connection field. Each is compared with every line, and an honest sender has few. */
const MAX_NOMINATED = 32

const EMPTY = new Uint8Array(0)

/** The lines of a head, complete or not. The object is reused for the next head. */
export class Fields {
  bytes: Uint8Array = EMPTY
  count = 0
  refusal: ErrorCode = 'BAD_REQUEST'

  // The indexes of the lines that framing needs; -1 if there is none. Two lines of such a name make a head ambiguous.
  hostLine = -1
  lengthLine = -1
  encodingLine = -1
  upgradeLine = -1
  expectLine = -1
  hasConnection = false

  /** The schemes of the credentials or challenges, as returned by `schemesIn`. */
  #schemes = 0

  // Whether the Connection lines contain these names.
  closes = false
  keepsAlive = false
  upgrades = false
  nominatesTe = false
  nominatedCount = 0

  /** Whether the last parse needed more bytes. */
  isPartial = false
  /** The start of the first line that was not parsed yet. */
  nextLine = 0

  #table = new Int32Array(PER_LINE * 16)
  #nominated = new Int32Array(2 * MAX_NOMINATED)
  /** The start of an incomplete head in `bytes`. */
  start = 0
  #seen = 0

  begin(bytes: Uint8Array, start: number): void {
    this.bytes = bytes
    this.count = 0
    this.refusal = 'BAD_REQUEST'
    this.hostLine = this.lengthLine = this.encodingLine = this.upgradeLine = this.expectLine = -1
    this.hasConnection = this.closes = this.keepsAlive = this.upgrades = this.nominatesTe = false
    this.nominatedCount = 0
    this.#schemes = 0
    this.start = this.nextLine = start
  }

  /** Remembers the parsed lines until there are bytes after `end`. */
  suspend(end: number): 0 {
    this.isPartial = true
    this.#seen = end
    return 0
  }

  /**
   * Continues an incomplete head in an array that begins with the same bytes. Returns whether the new bytes can end a
   * line or break the head. If not, nothing is parsed twice, so a head that arrives byte by byte costs at most twice
   * as much as one that arrives whole.
   */
  resume(bytes: Uint8Array, start: number, end: number): boolean {
    const moved = start - this.start
    this.bytes = bytes
    if (moved !== 0) this.#move(moved)
    this.isPartial = false
    // The byte after a CR decides what the CR means.
    if (bytes[this.#seen - 1] === CR) return true
    for (let at = this.#seen; at < end; at++) {
      const byte = bytes[at]!
      if (byte < SP ? byte !== TAB : byte === DEL) return true
    }
    return false
  }

  /** Parses lines from `at` on. Returns the index after the blank line; 0 if more bytes are needed; -1 if refused. */
  scan(bytes: Uint8Array, from: number, end: number, maxCount: number): number {
    let at = from
    let table = this.#table
    let count = this.count
    for (;;) {
      const nameStart = at
      while (at < end && TOKEN[bytes[at]!] === 1) at++
      if (at === end) break
      const nameEnd = at
      if (bytes[at] !== COLON || nameEnd === nameStart) {
        if (bytes[at] !== CR || nameEnd !== nameStart) return this.refuse('BAD_REQUEST')
        if (at + 1 === end) break
        if (bytes[at + 1] !== LF) return this.refuse('BAD_REQUEST')
        this.count = count
        return at + 2
      }
      if (count === maxCount) return this.refuse('HEAD_TOO_LARGE')
      at++
      while (at < end && (bytes[at] === SP || bytes[at] === TAB)) at++
      const valueStart = at
      while (at < end) {
        const byte = bytes[at]!
        if (byte < SP ? byte !== TAB : byte === DEL) break
        at++
      }
      if (at === end) {
        at = nameStart
        break
      }
      let valueEnd = at
      if (bytes[at] !== CR) return this.refuse('BAD_REQUEST')
      if (at + 1 === end) {
        at = nameStart
        break
      }
      if (bytes[at + 1] !== LF) return this.refuse('BAD_REQUEST')
      at += 2
      while (valueEnd > valueStart && (bytes[valueEnd - 1] === SP || bytes[valueEnd - 1] === TAB)) valueEnd--

      const kind = kindOf(bytes, nameStart, nameEnd - nameStart)
      const row = count * PER_LINE
      if (row === table.length) table = this.#grow()
      table[row + NAME_START] = nameStart
      table[row + NAME_END] = nameEnd
      table[row + VALUE_START] = valueStart
      table[row + VALUE_END] = valueEnd
      table[row + KIND] = kind
      if (kind !== OTHER && !this.#note(kind, count)) return this.refuse('BAD_REQUEST')
      count++
      this.nextLine = at
    }
    this.count = count
    return 0
  }

  refuse(code: ErrorCode): -1 {
    this.refusal = code
    return -1
  }

  kind(line: number): number {
    return this.#table[line * PER_LINE + KIND]!
  }

  lineStart(line: number): number {
    return this.#table[line * PER_LINE + NAME_START]!
  }

  nameEnd(line: number): number {
    return this.#table[line * PER_LINE + NAME_END]!
  }

  valueStart(line: number): number {
    return this.#table[line * PER_LINE + VALUE_START]!
  }

  valueEnd(line: number): number {
    return this.#table[line * PER_LINE + VALUE_END]!
  }

  /** Returns the index after the CRLF of a line. Only optional white space can be between its value and the CRLF. */
  lineEnd(line: number): number {
    let at = this.valueEnd(line)
    while (this.bytes[at] !== LF) at++
    return at + 1
  }

  name(line: number): string {
    const row = line * PER_LINE
    return latin1(this.bytes, this.#table[row + NAME_START]!, this.#table[row + NAME_END]!)
  }

  value(line: number): string {
    return latin1(this.bytes, this.valueStart(line), this.valueEnd(line))
  }

  isValue(line: number, text: string): boolean {
    return isSpelled(this.bytes, this.valueStart(line), this.valueEnd(line), text)
  }

  /** Returns the index of the first line with this lower-case name, or -1. */
  find(name: string): number {
    for (let line = 0; line < this.count; line++) if (this.isNamed(line, name)) return line
    return -1
  }

  /** Whether the line has this lower-case name. */
  isNamed(line: number, name: string): boolean {
    const row = line * PER_LINE
    return isSpelled(this.bytes, this.#table[row + NAME_START]!, this.#table[row + NAME_END]!, name)
  }

  list(): [name: string, value: string][] {
    const list: [string, string][] = []
    for (let line = 0; line < this.count; line++) list.push([this.name(line), this.value(line)])
    return list
  }

  /** Returns the Content-Length; -1 if it is not plain digits up to 2^53 - 1. */
  readLength(line: number): number {
    const end = this.valueEnd(line)
    const start = this.valueStart(line)
    if (start === end || end - start > 16) return -1
    if (this.#hasTab(line)) return -1
    let length = 0
    for (let at = start; at < end; at++) {
      const digit = this.bytes[at]! - 0x30
      if (digit < 0 || digit > 9) return -1
      length = length * 10 + digit
    }
    return length <= Number.MAX_SAFE_INTEGER ? length : -1
  }

  /** Whether Transfer-Encoding is just `chunked`. With anything else, another parser would decide the framing. */
  isChunked(): boolean {
    return this.isValue(this.encodingLine, 'chunked') && !this.#hasTab(this.encodingLine)
  }

  /** Whether tabs surround the value. They are legal, but llhttp refuses some of them in framing headers, and so do we. */
  #hasTab(line: number): boolean {
    let at = this.#table[line * PER_LINE + NAME_END]!
    while (this.bytes[at] !== LF && this.bytes[at] !== TAB) at++
    return this.bytes[at] === TAB
  }

  /** Returns the Upgrade lines as one lower-case list, without allocating for `websocket`. */
  readUpgrade(): string {
    if (this.upgradeLine < 0) return ''
    let list = ''
    for (let line = this.upgradeLine; line < this.count; line++) {
      if (this.kind(line) !== UPGRADE) continue
      const value = this.isValue(line, 'websocket') ? 'websocket' : this.value(line).toLowerCase()
      list = list === '' ? value : `${list}, ${value}`
    }
    return list
  }

  /**
   * Reads the Connection lines. Returns `false` if they nominate a header of framing or routing, or too many names, or
   * (unless `isLenient`) text that is not a token.
   */
  readConnection(isLenient: boolean): boolean {
    for (let line = 0; line < this.count; line++)
      if (
        this.kind(line) === CONNECTION &&
        !this.#readOptions(this.valueStart(line), this.valueEnd(line), isLenient)
      )
        return false
    return true
  }

  /** Whether the head has credentials, or asks for credentials, that concern the connection. */
  get logsConnectionIn(): boolean {
    return (this.#schemes & LOGS_CONNECTION_IN) !== 0
  }

  /** Whether the head has such credentials, and no others. */
  get onlyLogsConnectionIn(): boolean {
    return this.logsConnectionIn && (this.#schemes & OTHER_SCHEME) === 0
  }

  /** Whether a Connection line contains the name of this line. */
  isNominated(line: number): boolean {
    const row = line * PER_LINE
    const start = this.#table[row + NAME_START]!
    const length = this.#table[row + NAME_END]! - start
    for (let index = 0; index < this.nominatedCount; index++) {
      const from = this.#nominated[2 * index]!
      if (this.#nominated[2 * index + 1]! - from !== length) continue
      if (isSameText(this.bytes, from, this.bytes, start, length)) return true
    }
    return false
  }

  /** Makes this a copy of `other` over `bytes`, in which every position is higher by `moved`. */
  copyFrom(other: Fields, bytes: Uint8Array, moved: number): void {
    this.#table = other.#table.slice()
    this.#nominated = other.#nominated.slice()
    this.bytes = bytes
    this.count = other.count
    this.hostLine = other.hostLine
    this.lengthLine = other.lengthLine
    this.encodingLine = other.encodingLine
    this.upgradeLine = other.upgradeLine
    this.expectLine = other.expectLine
    this.hasConnection = other.hasConnection
    this.closes = other.closes
    this.keepsAlive = other.keepsAlive
    this.upgrades = other.upgrades
    this.nominatesTe = other.nominatesTe
    this.nominatedCount = other.nominatedCount
    this.#schemes = other.#schemes
    this.#move(moved)
  }

  /** Notes a line of a known kind. Returns `false` if the line is not allowed, or not a second time. */
  #note(kind: number, line: number): boolean {
    switch (kind) {
      case HOST:
        if (this.hostLine >= 0) return false
        this.hostLine = line
        return true
      case CONTENT_LENGTH:
        if (this.lengthLine >= 0) return false
        this.lengthLine = line
        return true
      case TRANSFER_ENCODING:
        if (this.encodingLine >= 0) return false
        this.encodingLine = line
        return true
      case CONNECTION:
        this.hasConnection = true
        return true
      case UPGRADE:
        if (this.upgradeLine < 0) this.upgradeLine = line
        return true
      case EXPECT:
        this.expectLine = line
        return true
      case AUTHORIZATION:
      case WWW_AUTHENTICATE:
        this.#schemes |= schemesIn(this.bytes, this.valueStart(line), this.valueEnd(line))
        return true
      case LOOKALIKE:
        return false
      default:
        return true
    }
  }

  #readOptions(start: number, end: number, isLenient: boolean): boolean {
    const bytes = this.bytes
    let at = start
    while (at < end) {
      while (at < end && (bytes[at] === SP || bytes[at] === TAB || bytes[at] === COMMA)) at++
      const from = at
      while (at < end && TOKEN[bytes[at]!] === 1) at++
      const to = at
      while (at < end && (bytes[at] === SP || bytes[at] === TAB)) at++
      if (at < end && bytes[at] !== COMMA) {
        if (!isLenient) return false
        while (at < end && bytes[at] !== COMMA) at++
        continue
      }
      if (to > from && !this.#noteOption(from, to)) return false
    }
    return true
  }

  #noteOption(from: number, to: number): boolean {
    const bytes = this.bytes
    if (isSpelled(bytes, from, to, 'keep-alive')) this.keepsAlive = true
    else if (isSpelled(bytes, from, to, 'close')) this.closes = true
    else if (isSpelled(bytes, from, to, 'upgrade')) this.upgrades = true
    else if (isSpelled(bytes, from, to, 'te')) this.nominatesTe = true
    else {
      const kind = kindOf(bytes, from, to - from)
      if (kind === HOST || kind === CONTENT_LENGTH || kind === TRANSFER_ENCODING || kind === LOOKALIKE)
        return false
      if (this.nominatedCount === MAX_NOMINATED) return false
      this.#nominated[2 * this.nominatedCount] = from
      this.#nominated[2 * this.nominatedCount + 1] = to
      this.nominatedCount++
    }
    return true
  }

  #grow(): Int32Array<ArrayBuffer> {
    const larger = new Int32Array(this.#table.length * 2)
    larger.set(this.#table)
    this.#table = larger
    return larger
  }

  #move(by: number): void {
    const used = this.count * PER_LINE
    for (let index = 0; index < used; index++) if (index % PER_LINE !== KIND) this.#table[index]! += by
    for (let index = 0; index < 2 * this.nominatedCount; index++) this.#nominated[index]! += by
    this.nextLine += by
    this.start += by
    this.#seen += by
  }
}
