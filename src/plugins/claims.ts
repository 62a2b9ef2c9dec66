// Claims of JSON Web Tokens: whether they have the values of a rule, and which names they give.

import type { JWTPayload } from 'jose'
import { asciiLowerCase } from '../http/characters.ts'

const CLAIM = /\{([\w.:/-]{1,128})\}/g

/**
 * Whether the token has all these claims: whole values, with `*` for any characters. If a claim is a list, one value is enough.
 */
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

/** Whether the rest of the pattern after a `*` matches. Takes linear time for each star, because claims come from strangers. */
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
 * Returns why tokens with other claims could get the same names. A claim contains no two dashes in a row, so it ends
 * at two dashes or a dot, and `*` must be on one side of all claims. `undefined` if a name always shows its claims.
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

/**
 * Returns the pattern with claims in place of their names. `undefined` if the token lacks one, or a claim is invalid in a name.
 */
export function withClaims(pattern: string, payload: JWTPayload): string | undefined {
  // The dashes for a slash would not mark the end of the claim if there were more in the pattern.
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
 * Returns a claim as a part of a name: unchanged, except for the case of ASCII letters, and for a slash, which
 * becomes two dashes. Other invalid characters are refused, because several claims would give one name.
 */
function labelOf(value: unknown, mayHaveSlash: boolean): string | undefined {
  if (typeof value !== 'string' && typeof value !== 'number') return undefined
  const label = mayHaveSlash ? String(value).replaceAll('/', '\0') : String(value)
  const isLabel = /^[a-z0-9]+(?:[-\0][a-z0-9]+)*$/i.test(label) && label.length <= 63
  return isLabel ? asciiLowerCase(label).replaceAll('\0', '--') : undefined
}
