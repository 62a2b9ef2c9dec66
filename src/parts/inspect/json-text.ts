// JSON in its original text: numbers with every digit, names in order and with repeats. JSON.parse keeps none of this.

/** A value. `raw`: its text; empty for an array or an object. */
export interface JsonNode {
  readonly kind: 'object' | 'array' | 'string' | 'number' | 'literal'
  readonly raw: string
  readonly entries: readonly JsonEntry[]
  /** Whether the text ended before the value did. */
  readonly isCut: boolean
}

export interface JsonEntry {
  /** The name with its quotes. `undefined` in an array. */
  readonly name?: string
  readonly value: JsonNode
}

export interface JsonFault {
  readonly at: number
  /** The expected text there: a comma, a value, … */
  readonly expected: string
}

interface Open {
  readonly node: { -readonly [Key in keyof JsonNode]: JsonNode[Key] } & { readonly entries: JsonEntry[] }
  name: string | undefined
  /** The tokens that may come next. */
  wants: 'value' | 'value or end' | 'name' | 'name or end' | 'colon' | 'comma or end'
}

/** Parses JSON without recursion, so deep nesting is harmless. `mayBeCut`: a truncated text also gives a tree. */
export function parseJson(text: string, mayBeCut = false): JsonNode | JsonFault {
  const open: Open[] = []
  let root: JsonNode | undefined
  const put = (value: JsonNode): void => {
    const parent = open.at(-1)
    if (parent === undefined) root = value
    else {
      parent.node.entries.push(parent.name === undefined ? { value } : { name: parent.name, value })
      parent.name = undefined
      parent.wants = 'comma or end'
    }
  }
  for (let at = 0; ; ) {
    const parent = open.at(-1)
    const { kind, from, to } = tokenAt(text, at)
    const fault: JsonFault = { at: from, expected: root === undefined ? wanted(parent) : 'the end' }
    at = to
    if (kind === 'end') {
      if (root !== undefined) return root
      return mayBeCut && parent !== undefined ? cutRoot(open) : fault
    }
    if (root !== undefined) return fault
    const raw = text.slice(from, to)
    if (kind === 'bad') {
      if (!mayBeCut || to < text.length || parent === undefined) return fault
      if (parent.wants.startsWith('value') && raw.startsWith('"'))
        put({ kind: 'string', raw, entries: [], isCut: true })
      return cutRoot(open)
    }
    if (kind === '}' || kind === ']') {
      const fits = parent?.node.kind === (kind === '}' ? 'object' : 'array')
      if (parent === undefined || !fits || !parent.wants.endsWith('end')) return fault
      open.pop()
      put(parent.node)
    } else if (kind === ',') {
      if (parent?.wants !== 'comma or end') return fault
      parent.wants = parent.node.kind === 'object' ? 'name' : 'value'
    } else if (kind === ':') {
      if (parent?.wants !== 'colon') return fault
      parent.wants = 'value'
    } else if (parent?.wants.startsWith('name')) {
      if (kind !== 'string') return fault
      parent.name = raw
      parent.wants = 'colon'
    } else if (parent !== undefined && !parent.wants.startsWith('value')) return fault
    else if (kind === '{' || kind === '[') {
      const isObject = kind === '{'
      open.push({
        node: { kind: isObject ? 'object' : 'array', raw: '', entries: [], isCut: false },
        name: undefined,
        wants: isObject ? 'name or end' : 'value or end',
      })
    } else {
      const isCut = kind === 'number' && to === text.length && mayBeCut && parent !== undefined
      put({ kind, raw, entries: [], isCut })
    }
  }
}

function cutRoot(open: readonly Open[]): JsonNode {
  for (const [index, { node }] of open.entries()) {
    node.isCut = true
    const parent = open[index - 1]
    if (parent !== undefined)
      parent.node.entries.push({ ...(parent.name !== undefined && { name: parent.name }), value: node })
  }
  return open[0]!.node
}

function wanted(parent: Open | undefined): string {
  if (parent === undefined) return 'a value'
  const end = parent.node.kind === 'object' ? '}' : ']'
  if (parent.wants === 'colon') return 'a colon'
  if (parent.wants === 'comma or end') return `a comma or ${end}`
  if (parent.wants === 'name or end') return `a name in double quotes or ${end}`
  return parent.wants === 'name' ? 'a name in double quotes' : 'a value'
}

export function isJsonFault(one: JsonNode | JsonFault): one is JsonFault {
  return 'expected' in one
}

/** Returns the text with a line for each value, and every token unchanged. `undefined` if it is not JSON. */
export function formatJson(text: string): string | undefined {
  const root = parseJson(text)
  if (isJsonFault(root)) return undefined
  const lines: string[] = []
  /** The open arrays and objects, and the next entry of each. */
  const open: { readonly node: JsonNode; next: number; readonly after: string }[] = []
  const begin = (node: JsonNode, before: string, after: string): void => {
    const pad = '  '.repeat(open.length)
    const [first, last] = node.kind === 'array' ? '[]' : '{}'
    if (node.kind !== 'array' && node.kind !== 'object') lines.push(`${pad}${before}${node.raw}${after}`)
    else if (node.entries.length === 0) lines.push(`${pad}${before}${first}${last}${after}`)
    else {
      lines.push(`${pad}${before}${first}`)
      open.push({ node, next: 0, after })
    }
  }
  begin(root, '', '')
  for (let top = open.at(-1); top !== undefined; top = open.at(-1)) {
    const entry = top.node.entries[top.next++]
    if (entry === undefined) {
      open.pop()
      lines.push(`${'  '.repeat(open.length)}${top.node.kind === 'array' ? ']' : '}'}${top.after}`)
    } else {
      const after = top.next < top.node.entries.length ? ',' : ''
      begin(entry.value, entry.name === undefined ? '' : `${entry.name}: `, after)
    }
  }
  return lines.join('\n')
}

export interface Token {
  /**
   * The kind: a sign, a literal, or `bad` for an invalid token, which may be the beginning of a valid one at the end of the text.
   */
  readonly kind: '{' | '}' | '[' | ']' | ',' | ':' | 'string' | 'number' | 'literal' | 'end' | 'bad'
  readonly from: number
  /** The index after its last character. */
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
  // The sign is one of the type's list.
  if (SIGNS.includes(first)) return { kind: first as '{', from, to: from + 1 }
  if (first === '"') return stringAt(text, from)
  const number = endOf(NUMBER, text, from)
  if (number > from) {
    // 1.5e at the end of a truncated text: a number whose rest is missing.
    const rest = text.slice(number, number + 4)
    const isHalf = /^(?:\.|[eE][+-]?)$/.test(rest) && number + rest.length === text.length
    return isHalf ? { kind: 'bad', from, to: text.length } : { kind: 'number', from, to: number }
  }
  const to = Math.max(from + 1, endOf(WORD, text, from))
  return { kind: WORDS.has(text.slice(from, to)) ? 'literal' : 'bad', from, to }
}

/** Reads a string without a pattern: one with a choice for each character needs a stack as deep as the string is long. */
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

/** Returns where the match that begins at `at` ends; `at` if the pattern does not match. */
function endOf(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at
  return pattern.test(text) ? pattern.lastIndex : at
}
