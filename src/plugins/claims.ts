// Claims of JSON Web Tokens: whether they have the values that a rule asks for, and what names they stand for.

import type { JWTPayload } from 'jose'
import { asciiLowerCase } from '../http/characters.ts'

const CLAIM = /\{([\w.:/-]{1,128})\}/g

/** Whether the token has all these claims: whole values, with `*` for any characters. Of a claim that is a list, one of them is enough. */
export function hasClaims(payload: JWTPayload, wanted: Readonly<Record<string, string>> = {}): boolean {
  return Object.entries(wanted).every(([name, pattern]) =>
    valuesOf(claimOf(payload, name)).some(value => fitsPattern(pattern, value)),
  )
}

export function valuesOf(value: unknown): readonly string[] {
  const all: readonly unknown[] = Array.isArray(value) ? value : [value]
  return all.flatMap(one => (['string', 'number', 'boolean'].includes(typeof one) ? [String(one)] : []))
}

function claimOf(payload: JWTPayload, name: string): unknown {
  return Object.hasOwn(payload, name) ? payload[name] : undefined
}

/** Whether `*` of the pattern matches the text there. Takes linear time for each star, because claims come from strangers. */
function fitsPattern(pattern: string, text: string): boolean {
  const [first = '', ...rest] = pattern.split('*')
  const last = rest.pop()
  if (last === undefined) return pattern === text
  if (text.length < first.length + last.length || !text.startsWith(first) || !text.endsWith(last))
    return false
  const end = text.length - last.length
  let at = first.length
  for (const piece of rest) {
    const found = text.indexOf(piece, at)
    if (found < 0 || found + piece.length > end) return false
    at = found + piece.length
  }
  return true
}

/**
 * Returns why tokens with other claims could have the same names: no label has two dashes of a claim's own, so a claim ends at
 * two dashes or a dot, and `*` stands for text on one side of all claims. `undefined`: a name of the pattern says what its
 * claims are.
 */
export function ambiguityOf(pattern: string): string | undefined {
  const segments = pattern.split(/--|\./)
  const holders = segments.map(segment => segment.match(CLAIM)?.length ?? 0)
  const stars = segments.flatMap((segment, index) => (segment.includes('*') ? [index] : []))
  if (
    segments.some((segment, index) => holders[index]! > 1 || (holders[index]! > 0 && segment.includes('*')))
  )
    return 'a claim stands alone between two dashes (--), as in "{repository_owner}--*"'
  const isBetween = holders.some(
    (count, index) => count > 0 && index > (stars[0] ?? index) && index < (stars.at(-1) ?? index),
  )
  return isBetween ? 'a claim does not stand between two *' : undefined
}

/** The pattern with claims in place of their names; `undefined`: the token lacks one, or it is not a part of a name. */
export function withClaims(pattern: string, payload: JWTPayload): string | undefined {
  // If the pattern had more, the dashes of a slash would not mark the end of the claim.
  const isAlone = pattern.match(CLAIM)?.length === 1 && !pattern.includes('*')
  let isWhole = true
  const name = pattern.replace(CLAIM, (_, claim: string) => {
    const label = labelOf(claimOf(payload, claim), isAlone)
    if (label === undefined) isWhole = false
    return label ?? ''
  })
  return isWhole ? name : undefined
}

/** Replaces each claim by a label, to check the text around them. */
export function withoutClaims(pattern: string): string {
  return pattern.replace(CLAIM, 'x')
}

/**
 * A claim as a part of a name: unchanged, but for the case of ASCII, and a slash as two dashes. Anything else that a name cannot have would
 * make one name of several claims.
 */
function labelOf(value: unknown, mayHaveSlash: boolean): string | undefined {
  if (typeof value !== 'string' && typeof value !== 'number') return undefined
  const label = mayHaveSlash ? String(value).replaceAll('/', '\0') : String(value)
  const isLabel = /^[a-z0-9]+(?:[-\0][a-z0-9]+)*$/i.test(label) && label.length <= 63
  return isLabel ? asciiLowerCase(label).replaceAll('\0', '--') : undefined
}
