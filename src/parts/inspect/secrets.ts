// Which fields are secrets; masks their values in heads.

import { type Field, MASK } from '../../exchange.ts'
import { latin1 } from '../../http/characters.ts'
import { maskedQueries } from './form-secrets.ts'

/** Which secrets are masked, and whether any are. */
export interface Showing {
  /** The names in lower case. */
  readonly secrets: ReadonlySet<string>
  readonly reveals: boolean
}

/** Returns the fields after the first line, in order. */
export function fieldsOf(head: Uint8Array, showing: Showing): Field[] {
  return linesOf(head)
    .slice(1)
    .flatMap(line => fieldOf(line, showing) ?? [])
}

/** Returns the lines of trailers, which have no first line. */
export function trailersOf(lines: Uint8Array, showing: Showing): Field[] {
  return linesOf(lines).flatMap(line => fieldOf(line, showing) ?? [])
}

/** Returns the head as text, with one character per byte. */
export function headText(head: Uint8Array, { secrets, reveals }: Showing): string {
  const text = latin1(head, 0, head.length)
  if (reveals) return text
  return text
    .split('\r\n')
    .map((line, index) => {
      const colon = line.indexOf(':')
      if (index === 0 || colon < 0 || !secrets.has(line.slice(0, colon).toLowerCase()))
        return maskedQueries(line, secrets)
      const blank = /^[ \t]*/.exec(line.slice(colon + 1))?.[0] ?? ''
      return `${line.slice(0, colon + 1)}${blank}${MASK}`
    })
    .join('\r\n')
}

function linesOf(bytes: Uint8Array): string[] {
  return latin1(bytes, 0, bytes.length)
    .split('\r\n')
    .filter(line => line !== '')
}

function fieldOf(line: string, { secrets, reveals }: Showing): Field | undefined {
  const colon = line.indexOf(':')
  if (colon < 0) return undefined
  const name = line.slice(0, colon)
  const value = line.slice(colon + 1).replace(/^[ \t]+|[ \t]+$/g, '')
  const masked = secrets.has(name.toLowerCase()) ? MASK : maskedQueries(value, secrets)
  return masked === value ? { name, value } : { name, value: reveals ? value : masked, isSecret: true }
}

/** Shows everything. */
export const REVEALING: Showing = { secrets: new Set(), reveals: true }

/** Returns the target of a request, with the secrets of its query masked. */
export function targetOf(target: string, { secrets, reveals }: Showing): string {
  return reveals ? target : maskedQueries(target, secrets)
}

/** Returns the first value of a field of a head. Empty without one. `name` is lower-case. */
export function headerOf(head: Uint8Array, name: string, showing: Showing = REVEALING): string {
  if (head.length === 0) return ''
  return fieldsOf(head, showing).find(field => field.name.toLowerCase() === name)?.value ?? ''
}
