// The head of an app's answer that breaks the grammar of HTTP/1.1 without doubt about its meaning, rewritten into what it means.
//
//   HTTP/1.2 200 OK \n          HTTP/1.1 200 OK          RFC 9110 section 2.5: another minor version is read as 1.1
//   Server : ESP32 \n           Server: ESP32            RFC 9112 section 5.1: blanks in front of the colon are removed
//   X-Long: a \n   b \n         X-Long: a b              section 5.2: a folded line becomes one line
//   Content-Length: 5, 5 \n     Content-Length: 5        RFC 9110 section 8.6: the same length twice is one
//   \n                          (CRLF)                   RFC 9112 section 2.2: LF alone ends a line
//
// It only rewrites lines. Whether the result may be forwarded is for the strict parser to say.

import { ascii, CR, isForbiddenInValue, LF, latin1 } from './characters.ts'
import { kindOf, LOOKALIKE } from './field-names.ts'
import { isLikeStatusLine } from './request-line.ts'

const STATUS_LINE = /^HTTP\/1\.(\d) ([1-9]\d\d(?: .*)?)$/
const FIELD_LINE = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+)[ \t]*:(.*)$/
/** The parser reads one of each at most. */
const SINGLE = ['Transfer-Encoding', 'Host']
/** Of a name in a sentence. */
const MAX_NAME_CHARS = 40

export class LooseHead {
  /** Without line ends, as far as they are complete. */
  lines: string[] = []
  /** Why it is refused, after -1. */
  fault = ''
  /** A length was there beside the coding. */
  hasTwoFramings = false
  /** Lines as they came: a folded one counts for each of its parts. */
  #count = 0
  #takenBytes = 0
  /** No line ends in these, beyond those that were taken. */
  #seenBytes = 0

  /**
   * Takes the lines that are complete in bytes[start, end), which begin with what it got before. Answers the bytes of the head, 0 when
   * it is not complete, -1 when it is refused.
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
      if (line === '' && this.lines.length > 0) return this.#settleLength() ? this.#takenBytes : -1
      if (!this.#add(line)) return -1
    }
  }

  /** The strict text. */
  text(): Uint8Array {
    const text = `${this.lines.join('\r\n')}\r\n\r\n`
    const bytes = new Uint8Array(text.length)
    for (let index = 0; index < text.length; index++) bytes[index] = text.charCodeAt(index)
    return bytes
  }

  /** Whether the line that begins at `from` may still become one. */
  #mayGoOn(bytes: Uint8Array, from: number, end: number, start: number): boolean {
    if (this.#count === 0 && !isLikeStatusLine(bytes, from, Math.min(end, from + 12)))
      return this.#isNoStatusLine()
    const unseen = latin1(bytes, start + Math.max(this.#seenBytes, this.#takenBytes), end)
    this.#seenBytes = end - start
    return this.#isFree(unseen, this.#count + 1, true)
  }

  #add(line: string): boolean {
    if (!this.#isFree(line, this.#count, false)) return false
    if (this.#count === 1) {
      const [, minor, rest] = STATUS_LINE.exec(line) ?? []
      if (minor === undefined) return this.#isNoStatusLine()
      this.lines.push(`HTTP/1.${minor === '0' ? 0 : 1} ${rest}`)
      return true
    }
    if (isBlank(line[0])) {
      if (this.lines.length === 1)
        return this.#refuse('the first line behind its status line begins with a blank')
      this.lines.push(`${this.lines.pop()} ${trimmed(line)}`)
      return true
    }
    const [, name, value = ''] = FIELD_LINE.exec(line) ?? []
    if (name !== undefined) {
      this.lines.push(`${name}: ${trimmed(value)}`)
      return true
    }
    const colon = line.indexOf(':')
    if (colon > 0)
      return this.#refuse(`the name in line ${this.#count} of its head has a character that no name has`)
    return this.#refuse(`line ${this.#count} of its head has no ${colon === 0 ? 'name' : 'colon'}`)
  }

  /** RFC 9112 section 6.3: a coding wins over a length, which must not be forwarded then; lengths that differ are refused. */
  #settleLength(): boolean {
    const lengths = this.lines.filter(line => isNamed(line, 'content-length'))
    if (lengths.length === 0) return true
    this.hasTwoFramings = this.lines.some(line => isNamed(line, 'transfer-encoding'))
    const values = lengths.flatMap(line => line.slice(line.indexOf(':') + 1).split(',')).map(trimmed)
    const [first = '', ...others] = values
    const other = others.find(value => value !== first)
    if (other !== undefined && !this.hasTwoFramings)
      return this.#refuse(`it has two lengths: ${cut(first)} and ${cut(other)}`)
    this.lines = this.lines.filter(line => !isNamed(line, 'content-length'))
    if (!this.hasTwoFramings) this.lines.push(`Content-Length: ${first}`)
    return true
  }

  /** Whether a line has no control characters. `mayEnd`: it goes on, so that LF may be behind a CR. */
  #isFree(text: string, line: number, mayEnd: boolean): boolean {
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at)
      if (!isForbiddenInValue(code) || (mayEnd && code === CR)) continue
      if (code === CR) return this.#refuse(`line ${line} of its head has a CR without LF`)
      const shown = code.toString(16).padStart(2, '0')
      return this.#refuse(`line ${line} of its head has the control character 0x${shown}`)
    }
    return true
  }

  #isNoStatusLine(): false {
    return this.#refuse('its first line is not HTTP/1.1 and a status of three digits')
  }

  #refuse(fault: string): false {
    this.fault = fault
    return false
  }
}

/** Why the strict parser refuses lines whose framing it did not come to judge: one of them may not be there, or not twice. */
export function whyUnwanted(lines: readonly string[]): string {
  const names = lines.slice(1).map(line => line.slice(0, line.indexOf(':')))
  const lookalike = names.find(name => kindOf(ascii(name), 0, name.length) === LOOKALIKE)
  if (lookalike !== undefined)
    return `its head has "${cut(lookalike)}", which some read as the one with dashes`
  const twice = SINGLE.find(single => names.filter(name => isSame(name, single)).length > 1)
  return twice === undefined ? 'its head cannot be read in one way only' : `it has ${twice} twice`
}

/** As `trim` of OWS alone, as 0xa0 is no blank here. A regular expression would take quadratic time for blanks in the middle. */
function trimmed(text: string): string {
  let [start, end] = [0, text.length]
  while (start < end && isBlank(text[start])) start++
  while (end > start && isBlank(text[end - 1])) end--
  return text.slice(start, end)
}

const isBlank = (character: string | undefined): boolean => character === ' ' || character === '\t'
const isSame = (name: string, other: string): boolean => name.toLowerCase() === other.toLowerCase()
const isNamed = (line: string, name: string): boolean => isSame(line.slice(0, line.indexOf(':')), name)
const cut = (text: string): string =>
  text.length > MAX_NAME_CHARS ? `${text.slice(0, MAX_NAME_CHARS)}…` : text
