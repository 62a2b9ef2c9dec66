// Rewrites a response head or trailers of an app that break the grammar of HTTP/1.1 but have a clear meaning. Real
// proxies pass all of these.
//
//   HTTP/2.0  200 OK \n         HTTP/1.1 200 OK          RFC 9110 section 2.5: another version is read as 1.1
//   Server : ESP32 \n           Server: ESP32            RFC 9112 section 5.1: blanks in front of the colon are removed
//   X-Long: a \n   b \n         X-Long: a b              section 5.2: a folded line becomes one line
//   Content-Length: 5, 5 \n     Content-Length: 5        RFC 9110 section 8.6: the same length twice is one
//   Connection: Content-Length  Connection:              section 7.6.1: what frames a message is not for one connection
//   Content_Length: 7 \n                                 no framing by any RFC, but some read it as one
//   Host: a \n Host: b \n       Host: a                  means nothing in a response
//   X: a(0x01)b \n              X: a b                   RFC 9110 section 5.5: a control character becomes a blank; CR and NUL are refused
//   Transfer-Encoding: chunked, Transfer-Encoding: chunked   section 5.6.1.2: empty elements of a list are nothing
//   \n                          (CRLF)                   RFC 9112 section 2.2: LF alone ends a line
//
// The strict parser then decides whether the result may be forwarded.

import { ascii, CR, LF, latin1 } from './characters.ts'
import { CONTENT_LENGTH, HOST, kindOf, LOOKALIKE, TRANSFER_ENCODING } from './field-names.ts'

const STATUS_LINE = /^HTTP\/([1-9]\.\d) +([1-9]\d\d(?: .*)?)$/
const BEGINNING =
  /^(?:(?:H|HT|HTT|HTTP|HTTP\/(?:[1-9](?:\.(?:\d(?: +(?:[1-9]\d?)?)?)?)?)?)$|HTTP\/[1-9]\.\d +[1-9]\d\d(?:[ \r]|$))/
const BEGINNING_BYTES = 40
const FIELD_LINE = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*:(.*)$/
/** The maximum length of a value in a message. */
const MAX_SHOWN_CHARS = 40

export class LooseHead {
  /** The complete lines, without line ends. */
  lines: string[] = []
  /** The fault in words, after -1. */
  fault = ''
  /** Whether the body has two lengths, or a coding that its HTTP version does not have. */
  hasDoubtfulLength = false
  readonly #where: 'head' | 'trailers'
  /** Whether the last line was dropped, and those folded behind it are. */
  #isDropped = false
  /** The number of lines as sent: a folded line counts each part. */
  #count = 0
  #takenBytes = 0
  /** The number of bytes, after the complete lines, that are known to contain no line end. */
  #seenBytes = 0

  constructor(where: 'head' | 'trailers' = 'head') {
    this.#where = where
  }

  /**
   * Takes the complete lines of bytes[start, end), which begin with the bytes of the last call. Returns the size of
   * the head; 0 if it is incomplete; -1 if it is refused.
   */
  take(bytes: Uint8Array, start: number, end: number): number {
    for (;;) {
      const from = start + this.#takenBytes
      let at = start + Math.max(this.#seenBytes, this.#takenBytes)
      while (at < end && bytes[at] !== LF) at++
      if (at >= end) return this.#mayGoOn(bytes, from, end, start) ? 0 : -1
      const line = latin1(bytes, from, at > from && bytes[at - 1] === CR ? at - 1 : at)
      this.#takenBytes = at + 1 - start
      this.#count++
      if (line === '' && !this.#isAtStatusLine) return this.#settle() ? this.#takenBytes : -1
      if (!this.#add(line)) return -1
    }
  }

  text(): Uint8Array {
    const text = `${this.lines.map(line => `${line}\r\n`).join('')}\r\n`
    const bytes = new Uint8Array(text.length)
    for (let index = 0; index < text.length; index++) bytes[index] = text.charCodeAt(index)
    return bytes
  }

  get #isAtStatusLine(): boolean {
    return this.#where === 'head' && this.lines.length === 0
  }

  /** Whether the incomplete line at `from` can still become a valid one. */
  #mayGoOn(bytes: Uint8Array, from: number, end: number, start: number): boolean {
    if (this.#isAtStatusLine && end > from) {
      const beginning = latin1(bytes, from, Math.min(end, from + BEGINNING_BYTES))
      if (!BEGINNING.test(beginning)) return this.#isNoStatusLine(beginning)
    }
    const unseen = latin1(bytes, start + Math.max(this.#seenBytes, this.#takenBytes), end)
    this.#seenBytes = end - start
    return this.#isFree(unseen, this.#count + 1, true)
  }

  #add(line: string): boolean {
    if (!this.#isFree(line, this.#count, false)) return false
    if (this.#isAtStatusLine) {
      const [, version, rest] = STATUS_LINE.exec(line) ?? []
      if (version === undefined) return this.#isNoStatusLine(line)
      this.lines.push(`HTTP/${version === '1.0' ? version : '1.1'} ${withoutControls(rest!)}`)
      return true
    }
    if (isBlank(line[0])) {
      if (this.#isDropped) return true
      if (this.lines.length === 0) return this.#refuse('its trailers begin with a blank')
      if (this.lines.length === 1 && this.#where === 'head')
        return this.#refuse('the first line behind its status line begins with a blank')
      this.lines.push(`${this.lines.pop()} ${trimmed(withoutControls(line))}`)
      return true
    }
    const [, name, value = ''] = FIELD_LINE.exec(line) ?? []
    // Most readers skip a trailer whose name is none.
    this.#isDropped = this.#where === 'trailers' && name === undefined && line.indexOf(':') > 0
    if (this.#isDropped) return true
    if (name !== undefined) {
      this.lines.push(`${name}: ${trimmed(withoutControls(value))}`)
      return true
    }
    const colon = line.indexOf(':')
    if (colon > 0)
      return this.#refuse(`the name in line ${this.#count} of its head has a character that no name has`)
    return this.#refuse(`line ${this.#count} of its ${this.#where} has no ${colon === 0 ? 'name' : 'colon'}`)
  }

  /** Resolves the lines that frame the body. Returns `false` if they contradict each other. */
  #settle(): boolean {
    if (this.#where === 'trailers') return true
    const [first = '', ...others] = this.lines
    const lengths: string[] = []
    let [hasHost, hasCoding] = [false, false]
    this.lines = [first]
    for (const line of others) {
      const name = nameOf(line)
      const kind = kindOfName(name)
      if (kind === CONTENT_LENGTH) lengths.push(...valuesOf(line))
      else if (kind === LOOKALIKE || (kind === HOST && hasHost)) continue
      else if (kind === TRANSFER_ENCODING)
        this.lines.push(`${name}: ${valuesOf(line).filter(Boolean).join(', ')}`)
      else if (isSame(name, 'connection'))
        this.lines.push(`${name}: ${valuesOf(line).filter(isOption).join(', ')}`)
      else this.lines.push(line)
      hasHost ||= kind === HOST
      hasCoding ||= kind === TRANSFER_ENCODING
    }
    return hasCoding ? this.#settleCoding(lengths.length > 0) : this.#settleLength(lengths)
  }

  /**
   * Resolves coding and length. RFC 9112 section 6.3: a coding wins, and the length must not be forwarded; section
   * 6.1: HTTP/1.0 has no codings.
   */
  #settleCoding(hasLength: boolean): true {
    const [first = '', ...others] = this.lines
    const isOld = first.startsWith('HTTP/1.0')
    if (isOld) this.lines = [first.replace('1.0', '1.1'), ...others]
    this.hasDoubtfulLength = hasLength || isOld
    return true
  }

  #settleLength([first, ...others]: readonly string[]): boolean {
    if (first === undefined) return true
    const other = others.find(value => value !== first)
    if (other !== undefined) return this.#refuse(`it has two lengths: ${cut(first)} and ${cut(other)}`)
    this.lines.push(`Content-Length: ${first}`)
    return true
  }

  /** Whether a line has no NUL and no CR. `mayEnd`: the line is incomplete, so a CR at its end may belong to CRLF. */
  #isFree(text: string, line: number, mayEnd: boolean): boolean {
    if (text.includes('\0'))
      return this.#refuse(`line ${line} of its ${this.#where} has the control character 0x00`)
    if (!mayEnd && text.includes('\r'))
      return this.#refuse(`line ${line} of its ${this.#where} has a CR without LF`)
    return true
  }

  /** Refuses a text that is not a status line. An HTTP/2 server begins with a frame, whose length has three bytes. */
  #isNoStatusLine(text: string): false {
    return this.#refuse(
      text.startsWith('\0\0')
        ? 'it begins with a frame of HTTP/2 (for such an app: --protocol h2c)'
        : 'its first line is not HTTP/1.1 and a status of three digits',
    )
  }

  #refuse(fault: string): false {
    this.fault = fault
    return false
  }
}

/**
 * Removes optional white space at both ends. 0xa0 is not a blank here, and a regular expression would take quadratic
 * time for blanks in the middle.
 */
function trimmed(text: string): string {
  let [start, end] = [0, text.length]
  while (start < end && isBlank(text[start])) start++
  while (end > start && isBlank(text[end - 1])) end--
  return text.slice(start, end)
}

const withoutControls = (text: string): string => text.replace(/[\x01-\x08\x0b-\x1f\x7f]/g, ' ')
const isBlank = (character: string | undefined): boolean => character === ' ' || character === '\t'
const isSame = (name: string, other: string): boolean => name.toLowerCase() === other.toLowerCase()
export const nameOf = (line: string): string => line.slice(0, line.indexOf(':'))
const valuesOf = (line: string): string[] =>
  line
    .slice(line.indexOf(':') + 1)
    .split(',')
    .map(trimmed)
const kindOfName = (name: string): number => kindOf(ascii(name), 0, name.length)
/** Whether a Connection option may name this header. */
const isOption = (option: string): boolean =>
  ![HOST, CONTENT_LENGTH, TRANSFER_ENCODING, LOOKALIKE].includes(kindOfName(option))
const cut = (text: string): string =>
  text.length > MAX_SHOWN_CHARS ? `${text.slice(0, MAX_SHOWN_CHARS)}…` : text
