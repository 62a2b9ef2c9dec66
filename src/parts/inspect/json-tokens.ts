// The tokens of JSON, by their places in the text. Pure.

export interface Token {
  /** A sign stands for itself; `bad`: this is none, or only the begin of one when it reaches to the end of the text. */
  readonly kind: '{' | '}' | '[' | ']' | ',' | ':' | 'string' | 'number' | 'literal' | 'end' | 'bad'
  readonly from: number
  /** Behind its last character. */
  readonly to: number
}

const BLANK = /[ \t\n\r]*/y
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const WORD = /[A-Za-z]+/y
const WORDS: ReadonlySet<string> = new Set(['true', 'false', 'null'])
const SIGNS = '{}[],:'
const ESCAPE = /\\(?:["\\/bfnrt]|u[\dA-Fa-f]{4})/y

export function tokenAt(text: string, at: number): Token {
  const from = endOf(BLANK, text, at)
  const first = text[from]
  if (first === undefined) return { kind: 'end', from, to: from }
  // One of the signs, as the type lists them.
  if (SIGNS.includes(first)) return { kind: first as '{', from, to: from + 1 }
  if (first === '"') return stringAt(text, from)
  const number = endOf(NUMBER, text, from)
  if (number > from) {
    // 1.5e at the end of a text that was cut: a number whose rest is missing.
    const rest = text.slice(number, number + 4)
    const isHalf = /^(?:\.|[eE][+-]?)$/.test(rest) && number + rest.length === text.length
    return isHalf ? { kind: 'bad', from, to: text.length } : { kind: 'number', from, to: number }
  }
  const to = Math.max(from + 1, endOf(WORD, text, from))
  return { kind: WORDS.has(text.slice(from, to)) ? 'literal' : 'bad', from, to }
}

/** No pattern: one with a choice for each character needs a stack as deep as a string is long. */
function stringAt(text: string, from: number): Token {
  for (let at = from + 1; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === 0x22) return { kind: 'string', from, to: at + 1 }
    if (code < 0x20) return { kind: 'bad', from, to: at }
    if (code !== 0x5c) continue
    const end = endOf(ESCAPE, text, at)
    if (end === at) return { kind: 'bad', from, to: text.length - at < 6 ? text.length : at }
    at = end - 1
  }
  return { kind: 'bad', from, to: text.length }
}

/** Where the pattern ends that begins at `at`; `at`: it does not. */
function endOf(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at
  return pattern.test(text) ? pattern.lastIndex : at
}
