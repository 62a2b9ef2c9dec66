// Masks secret fields of forms, JSON and queries wherever they are shown, and restores their values for a replay.

import { MASK } from '../../exchange.ts'
import { latin1 } from '../../http/characters.ts'

/** A field of a form or of JSON: its text, and the position of its value there. */
interface Piece {
  readonly text: string
  readonly name: string
  readonly from: number
  readonly to: number
  /** A number, whose mask is a text. */
  readonly isNumber?: true
}

/** The mask in a form: the bytes of UTF-8, one character each. */
export const MASK_BYTES: string = Buffer.from(MASK).toString('latin1')

/** Returns the bytes with secret fields masked. The same array if nothing is hidden. */
export function maskedForm(bytes: Uint8Array, type: string, secrets: ReadonlySet<string>): Uint8Array {
  return changed(bytes, type, ({ name, text, from, to, isNumber }) => {
    const mask = isNumber ? `"${MASK_BYTES}"` : MASK_BYTES
    return secrets.has(name) ? `${text.slice(0, from)}${mask}${text.slice(to)}` : text
  })
}

/** Replaces each masked value by the captured value: the n-th value of a name by the n-th captured value of that name. */
export function unmaskedForm(edited: Uint8Array, captured: Uint8Array, type: string): Uint8Array {
  const form = piecesOf(captured, type)
  if (form === undefined) return edited
  const taken = new Map<string, number>()
  return changed(edited, type, ({ name, text, from, to }) => {
    const index = taken.get(name) ?? 0
    taken.set(name, index + 1)
    const before = form.pieces.filter(piece => piece.name === name)[index]
    if (text.slice(from, to) !== MASK_BYTES || before === undefined) return text
    const quotes = before.isNumber ? 1 : 0
    const value = before.text.slice(before.from, before.to)
    return `${text.slice(0, from - quotes)}${value}${text.slice(to + quotes)}`
  })
}

/** Masks the secrets of queries and fragments in a target, or in a header value such as Location or Referer. */
export function maskedQueries(text: string, secrets: ReadonlySet<string>): string {
  return changedQueries(text, (name, value) => (secrets.has(name) ? MASK : value))
}

/** Replaces the n-th mask of a name by the n-th captured value of that name. */
export function unmaskedQueries(edited: string, captured: string): string {
  const values: (readonly [name: string, value: string])[] = []
  changedQueries(captured, (name, value) => {
    values.push([name, value])
    return value
  })
  const taken = new Map<string, number>()
  return changedQueries(edited, (name, value) => {
    const index = taken.get(name) ?? 0
    taken.set(name, index + 1)
    return value === MASK ? (values.filter(([one]) => one === name)[index]?.[1] ?? value) : value
  })
}

/**
 * Calls `change` for each field, also within values of others, such as `/login?to=/a?token=1`. A value ends at `&`,
 * `#` or a blank.
 */
function changedQueries(text: string, change: (name: string, value: string) => string): string {
  let changed = ''
  let from = 0
  for (const { 0: start, 1: name = '', index } of text.matchAll(/[?&#]([^?&#=\s]*)=/g)) {
    if (index < from) continue
    const at = index + start.length
    VALUE.lastIndex = at
    const value = VALUE.exec(text)![0]
    const next = change(nameIn(name), value)
    if (next === value) continue
    changed += `${text.slice(from, at)}${next}`
    from = at + value.length
  }
  return changed + text.slice(from)
}

const VALUE = /[^&#\s]*/y

/** Returns the name of an encoded field, in lower case. */
function nameIn(encoded: string): string {
  return [...new URLSearchParams(encoded).keys()][0]?.toLowerCase() ?? ''
}

function changed(bytes: Uint8Array, type: string, change: (piece: Piece) => string): Uint8Array {
  const form = piecesOf(bytes, type)
  if (form === undefined) return bytes
  const texts = form.pieces.map(change)
  if (texts.every((text, index) => text === form.pieces[index]!.text)) return bytes
  return Buffer.from(texts.join(form.between), 'latin1')
}

/** Whether fields are looked for in bodies of this type. */
export function isForm(type: string): boolean {
  return piecesOf(new Uint8Array(0), type) !== undefined
}

function piecesOf(
  bytes: Uint8Array,
  type: string,
): { readonly pieces: readonly Piece[]; readonly between: string } | undefined {
  const mime = type.split(';')[0]!.trim().toLowerCase()
  if (mime === 'application/x-www-form-urlencoded')
    return { pieces: latin1(bytes, 0, bytes.length).split('&').map(pairOf), between: '&' }
  if (/json/.test(mime)) return { pieces: membersOf(latin1(bytes, 0, bytes.length)), between: '' }
  if (mime !== 'multipart/form-data') return undefined
  const [, quoted, plain] = /boundary=(?:"([^"]+)"|([^;\s]+))/i.exec(type) ?? []
  const boundary = quoted ?? plain
  if (boundary === undefined) return undefined
  const between = `--${boundary}`
  return { pieces: latin1(bytes, 0, bytes.length).split(between).map(partOf), between }
}

function pairOf(text: string): Piece {
  const equals = text.indexOf('=')
  return {
    text,
    name: nameIn(equals < 0 ? text : text.slice(0, equals)),
    from: equals < 0 ? text.length : equals + 1,
    to: text.length,
  }
}

/** A pattern for a JSON string, which may be truncated, and the colon after it if it is a name. */
const JSON_STRING = /"([^"\\]*(?:\\.[^"\\]*)*)("|$)(\s*:\s*)?/gs

const NUMBER = /-?\d[\d.eE+-]*/y

/** Returns the name of a member, whose bytes may be escaped, in lower case. */
function memberName(bytes: string): string {
  const text = Buffer.from(bytes, 'latin1').toString()
  try {
    return (text.includes('\\') ? (JSON.parse(`"${text}"`) as string) : text).toLowerCase()
  } catch {
    return text.toLowerCase()
  }
}

/** Each ends with a text or a number that has a name; the last one is the rest. Not parsed as a whole: a body may be cut. */
function membersOf(json: string): Piece[] {
  const pieces: Piece[] = []
  let start = 0
  let last: { readonly name: string; readonly end: number } | undefined
  for (const { 0: whole, 1: content = '', 2: quote = '', 3: colon, index } of json.matchAll(JSON_STRING)) {
    const end = index + whole.length
    if (colon === undefined && last?.end === index) {
      const text = json.slice(start, end)
      pieces.push({ text, name: last.name, from: index + 1 - start, to: text.length - quote.length })
      start = end
    }
    last = colon === undefined ? undefined : { name: memberName(content), end }
    NUMBER.lastIndex = end
    const [number] = (last && NUMBER.exec(json)) ?? []
    if (last === undefined || number === undefined) continue
    const text = json.slice(start, end + number.length)
    pieces.push({ text, name: last.name, from: end - start, to: text.length, isNumber: true })
    start = end + number.length
  }
  return [...pieces, { text: json.slice(start), name: '', from: 0, to: 0 }]
}

function partOf(text: string): Piece {
  const head = text.indexOf('\r\n\r\n')
  const [, quoted, plain = ''] =
    head < 0 ? [] : (/[; ]name=(?:"([^"]*)"|([^;\s]*))/i.exec(text.slice(0, head)) ?? [])
  const name = Buffer.from(quoted ?? plain, 'latin1').toString()
  const from = head < 0 ? text.length : head + 4
  return { text, name: name.toLowerCase(), from, to: Math.max(from, text.length - 2) }
}
