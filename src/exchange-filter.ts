// The filter of exchanges: one grammar for the page, the commands, the API and programs.
//
//   method:POST path:/hooks/* status:5xx body:"invoice.paid" slower:500ms -is:replay
//
// All terms must hold. `a,b` in a value means either; a minus before a term means not. Case does not matter.

import type { ExchangeRow } from './exchange.ts'

/** The parts of an exchange that a row does not contain. */
export type Part = 'request.head' | 'request.body' | 'response.head' | 'response.body' | 'frames'

/** Returns the stored text of a part, decoded for reading. Empty if there is none. */
export type TextOf = (part: Part) => string

export interface Filter {
  readonly text: string
  /** Whether the filter needs `textOf`, so that it takes longer. */
  readonly needsContent: boolean
  /** The keys of the terms; empty for a word without a key. */
  readonly keys: readonly string[]
  matches(row: ExchangeRow, textOf?: TextOf): boolean
}

/** A fault of a filter's text. */
export interface FilterFault {
  /** The index of the first character of the faulty term. */
  readonly at: number
  /** The fault, and what to write instead. */
  readonly message: string
}

type Test = (row: ExchangeRow, textOf: TextOf) => boolean
/** Makes the test for one value, or returns why the value is invalid. */
type Make = (value: string) => Test | string

const STATES: Readonly<Record<string, Test>> = {
  open: row => row.state === 'open',
  done: row => row.state === 'done',
  failed: row => row.state === 'failed',
  error: row => row.state === 'failed' || row.status >= 500,
  refused: row => row.isRefused,
  probe: row => row.isProbe,
  replay: row => row.replayOf !== undefined,
  pinned: row => row.isPinned,
  noted: row => row.note !== '',
  cut: row => isCut(row.requestBody) || isCut(row.responseBody),
  incomplete: row => row.isIncomplete,
  webhook: row => row.verified !== undefined,
  verified: row => row.verified?.isValid === true,
  unverified: row => row.verified?.isValid === false,
  http: row => row.kind === 'http',
  websocket: row => row.kind === 'websocket',
  sse: row => row.kind === 'sse',
  tcp: row => row.kind === 'tcp',
  tls: row => row.kind === 'tls',
  udp: row => row.kind === 'udp',
}

const KEYS: Readonly<Record<string, Make>> = {
  id: value => row => row.id === value,
  method: value => row => row.method.toLowerCase() === value,
  path: pathTest,
  host: value => glob(value, row => row.host),
  tunnel: value => glob(value, row => row.tunnel),
  service: value => glob(value, row => row.service),
  visitor: value => glob(value, row => row.visitor ?? ''),
  code: value => row => row.code?.toLowerCase() === value,
  status: statusTest,
  event: value => row => (row.event ?? '').toLowerCase().includes(value),
  type: value => row => row.type.toLowerCase().includes(value),
  note: value => row => row.note.toLowerCase().includes(value),
  slower: value => timeTest(value, (ms, limit) => ms >= limit),
  faster: value => timeTest(value, (ms, limit) => ms < limit),
  larger: value => sizeTest(value, (bytes, limit) => bytes >= limit),
  smaller: value => sizeTest(value, (bytes, limit) => bytes < limit),
  is: value => own(STATES, value) ?? `is: takes ${Object.keys(STATES).join(', ')}`,
  body: value => (_, textOf) => has(textOf, 'request.body', value) || has(textOf, 'response.body', value),
  'request.body': value => (_, textOf) => has(textOf, 'request.body', value),
  'response.body': value => (_, textOf) => has(textOf, 'response.body', value),
  header: value => (_, textOf) =>
    hasField(textOf, 'request.head', value) || hasField(textOf, 'response.head', value),
  'request.header': value => (_, textOf) => hasField(textOf, 'request.head', value),
  'response.header': value => (_, textOf) => hasField(textOf, 'response.head', value),
  frame: value => (_, textOf) => has(textOf, 'frames', value),
}

const CONTENT_KEYS: ReadonlySet<string> = new Set([
  'body',
  'request.body',
  'response.body',
  'header',
  'request.header',
  'response.header',
  'frame',
])

/** Every key, for completion and help. */
export const FILTER_KEYS: readonly string[] = Object.keys(KEYS)
/** The values of `is:`, for completion and help. */
export const FILTER_STATES: readonly string[] = Object.keys(STATES)

/** The maximum length of a filter in characters. Longer ones are faults, because filters come from URLs. */
const MAX_FILTER_CHARS = 2_000

/** Parses a filter. The empty one matches everything except the server's probes, which need `is:probe`. */
export function parseFilter(text: string): Filter | FilterFault {
  if (text.length > MAX_FILTER_CHARS)
    return { at: MAX_FILTER_CHARS, message: `a filter has at most ${MAX_FILTER_CHARS} characters` }
  const tests: Test[] = []
  const keys: string[] = []
  let hidesProbes = true
  // -key:"value, with spaces",other   or   word   or   "two words"
  const term = /\s*(-?)(?:([a-z]+(?:\.[a-z]+)?):)?((?:"(?:[^"\\]|\\.)*"|[^\s"])*)/giy
  while (term.lastIndex < text.trimEnd().length) {
    const from = term.lastIndex
    const found = term.exec(text)
    const at = from + (/\S/.exec(text.slice(from))?.index ?? 0)
    const [whole, minus = '', key = '', raw = ''] = found ?? []
    if (
      whole === undefined ||
      whole.trim() === '' ||
      /^\s|^$/.test(text.slice(term.lastIndex, term.lastIndex + 1)) === false
    )
      return { at, message: 'a quote is not closed' }
    if (raw === '') return { at, message: key === '' ? 'a term is missing behind -' : `${key}: has no value` }
    const test = termTest(key.toLowerCase(), raw)
    if (typeof test === 'string') return { at, message: test }
    keys.push(key.toLowerCase())
    if (key.toLowerCase() === 'is' && valuesOf(raw).includes('probe')) hidesProbes = false
    tests.push(minus === '' ? test : (row, textOf) => !test(row, textOf))
  }
  return {
    text,
    needsContent: keys.some(key => CONTENT_KEYS.has(key)),
    keys,
    matches: (row, textOf = () => '') =>
      !(hidesProbes && row.isProbe) && tests.every(test => test(row, textOf)),
  }
}

export function isFilterFault(one: Filter | FilterFault): one is FilterFault {
  return 'message' in one
}

function termTest(key: string, raw: string): Test | string {
  if (key === '') return wordTest(raw)
  const make = own(KEYS, key)
  if (make === undefined) return `"${key}:" is unknown; keys are ${FILTER_KEYS.join(', ')}`
  const tests: Test[] = []
  for (const value of valuesOf(raw)) {
    const test = make(value)
    if (typeof test === 'string') return test
    tests.push(test)
  }
  return (row, textOf) => tests.some(test => test(row, textOf))
}

/** Returns a property of the record itself, not `constructor` or another one that every object has. */
function own<Value>(record: Readonly<Record<string, Value>>, name: string): Value | undefined {
  return Object.hasOwn(record, name) ? record[name] : undefined
}

/** Makes the test for a word without a key: a method in capitals, a path, or a part of the row's text. */
function wordTest(raw: string): Test | string {
  if (/^(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS|TRACE)$/.test(raw)) return row => row.method === raw
  if (raw.startsWith('/')) return pathTest(raw.toLowerCase())
  const word = unquoted(raw).toLowerCase()
  return row =>
    `${row.method} ${row.host}${row.path} ${row.status || ''} ${row.code ?? ''} ${row.tunnel} ${row.event ?? ''} ${row.note}`
      .toLowerCase()
      .includes(word)
}

/** Splits a value at commas outside of quotes. */
function valuesOf(raw: string): string[] {
  const values = raw.match(/(?:"(?:[^"\\]|\\.)*"|[^,"])+/g) ?? []
  return values.map(value => unquoted(value).toLowerCase())
}

function unquoted(value: string): string {
  return value.replace(/"((?:[^"\\]|\\.)*)"/g, (_, inside: string) => inside.replace(/\\(.)/g, '$1'))
}

/**
 * Makes the test for a path, which matches as in routes: `/api` means `/api`, `/api?…` and everything below `/api/`.
 * With a `*`, the whole path must match; `?` begins the query.
 */
function pathTest(value: string): Test {
  if (value.includes('*')) {
    const withQuery = value.includes('?')
    return glob(value, row => (withQuery ? row.path : pathOnly(row.path)))
  }
  if (value.includes('?')) return row => row.path.toLowerCase() === value
  const below = value.endsWith('/') ? value : `${value}/`
  return row => {
    const path = pathOnly(row.path).toLowerCase()
    return path === value || path.startsWith(below)
  }
}

function pathOnly(path: string): string {
  const end = path.indexOf('?')
  return end < 0 ? path : path.slice(0, end)
}

/**
 * Makes the test for a pattern that the whole text must match; `*` stands for any characters. It takes linear time,
 * so no pattern can make it slow.
 */
function glob(pattern: string, textOf: (row: ExchangeRow) => string): Test {
  const pieces = pattern.split('*')
  const first = pieces[0] ?? ''
  const last = pieces.at(-1) ?? ''
  return row => {
    const text = textOf(row).toLowerCase()
    if (pieces.length === 1) return text === pattern
    if (text.length < first.length + last.length || !text.startsWith(first) || !text.endsWith(last))
      return false
    let at = first.length
    for (const piece of pieces.slice(1, -1)) {
      const found = text.indexOf(piece, at)
      if (found < 0) return false
      at = found + piece.length
    }
    return at <= text.length - last.length
  }
}

/** Makes a test for a status: `404`, `5xx`, `>=400`, `<300`, `200-299`, `none`. */
function statusTest(value: string): Test | string {
  if (value === 'none') return row => row.status === 0
  const inClass = /^([1-9])xx$/.exec(value)
  if (inClass !== null) return row => Math.floor(row.status / 100) === Number(inClass[1])
  const bound = /^(>=|<=|>|<)?(\d{3})$/.exec(value)
  if (bound !== null) {
    const [, sign = '=', digits] = bound
    const limit = Number(digits)
    return ({ status }) =>
      status > 0 &&
      ((sign.includes('=') && status === limit) ||
        (sign.startsWith('>') && status > limit) ||
        (sign.startsWith('<') && status < limit))
  }
  const range = /^(\d{3})-(\d{3})$/.exec(value)
  if (range !== null) return row => row.status >= Number(range[1]) && row.status <= Number(range[2])
  return `"${value}" is no status: 404, 5xx, >=400, 200-299 and none are`
}

/**
 * Makes the test for a duration: `500ms`, `2s`, `1m`; a number alone means milliseconds. An open exchange has no duration yet.
 */
function timeTest(value: string, isSo: (ms: number, limit: number) => boolean): Test | string {
  const found = /^(\d+(?:\.\d+)?)(ms|s|m)?$/.exec(value)
  if (found === null) return `"${value}" is no time: 500ms, 2s and 1m are`
  const limit = Number(found[1]) * (found[2] === 'm' ? 60_000 : found[2] === 's' ? 1_000 : 1)
  return ({ times }) => times.totalMs !== undefined && isSo(times.totalMs, limit)
}

/**
 * Makes the test for a size, `512`, `10kb`, `2MiB`: that of the larger body, or of a connection's bytes. Units are
 * powers of 1,024.
 */
function sizeTest(value: string, isSo: (bytes: number, limit: number) => boolean): Test | string {
  const found = /^(\d+(?:\.\d+)?)(b|ki?b?|mi?b?|gi?b?)?$/.exec(value)
  if (found === null) return `"${value}" is no size: 512, 10kb and 2mb are`
  const power = 'bkmg'.indexOf(found[2]?.[0] ?? 'b')
  const limit = Number(found[1]) * 1_024 ** power
  return row =>
    isSo(Math.max(row.requestBody.totalBytes, row.responseBody.totalBytes, row.bytesIn, row.bytesOut), limit)
}

function isCut({
  totalBytes,
  keptBytes,
}: {
  readonly totalBytes: number
  readonly keptBytes: number
}): boolean {
  return keptBytes < totalBytes
}

function has(textOf: TextOf, part: Part, value: string): boolean {
  return textOf(part).toLowerCase().includes(value)
}

/** Whether a head has a field: `name`, or `name: part of the value`. */
function hasField(textOf: TextOf, part: Part, wanted: string): boolean {
  const colon = wanted.indexOf(':')
  const name = (colon < 0 ? wanted : wanted.slice(0, colon)).trim()
  const value = colon < 0 ? '' : wanted.slice(colon + 1).trim()
  const lines = textOf(part).toLowerCase().split('\r\n').slice(1)
  return lines.some(line => line.startsWith(`${name}:`) && line.slice(name.length + 1).includes(value))
}
