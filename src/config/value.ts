// Reads one value for its key, and says in words what the key expects.

import { resolve } from 'node:path'
import { MAX_TIMER_MS, type Value } from './field.ts'
import { readSmallFile } from './file.ts'
import { FORMS } from './forms.ts'
import { MAX_RANGE_PORTS, portsOf } from './port-range.ts'
import { formatDuration, formatSize, parseDuration, parseSize } from './quantity.ts'
import { parsePorts, parseRouteTarget } from './target.ts'

/** Returns the value for the library. `undefined` if it does not fit the field. */
export function readValue(found: string | number | boolean, value: Value, folder: string): unknown {
  const text = String(found)
  switch (value.type) {
    case 'text':
      return typeof found === 'string' && FORMS[value.form].fits(found) ? found : undefined
    case 'choice':
      return value.choices.find(choice => choice === found)
    case 'flag':
      // Also a text, because a variable is one.
      return typeof found === 'boolean' ? found : { true: true, false: false }[text]
    case 'number': {
      const number = typeof found === 'string' && !/^\d{1,16}$/.test(found) ? Number.NaN : Number(found)
      return typeof found !== 'boolean' &&
        Number.isInteger(number) &&
        number >= value.least &&
        number <= value.most
        ? number
        : undefined
    }
    case 'duration':
      return bounded(typeof found === 'string' ? parseDuration(found) : found, value.least, MAX_TIMER_MS)
    case 'size':
      return bounded(
        typeof found === 'string' ? parseSize(found) : found,
        value.least,
        Number.MAX_SAFE_INTEGER,
      )
    case 'port-range':
      return typeof found === 'boolean' ? undefined : portOrRange(text)
    case 'ports':
      return typeof found === 'boolean' ? undefined : parsePorts(text)
    case 'target':
      return typeof found === 'boolean' ? undefined : parseRouteTarget(text, folder)
    case 'path':
      return isPath(found) ? resolve(folder, found) : undefined
    case 'file':
      return isPath(found) ? readFileOf(resolve(folder, found)) : undefined
    default:
      throw new Error(`A ${value.type} is not one value.`)
  }
}

function portOrRange(text: string): number | string | undefined {
  const ports = portsOf(text)
  return ports?.length === 1 ? ports[0] : ports && text.trim()
}

/** A file that a key names and that cannot be read. */
export class Unreadable {
  readonly message: string

  constructor(message: string) {
    this.message = message
  }
}

function readFileOf(path: string): string | Unreadable {
  const read = readSmallFile(path)
  return typeof read === 'string' ? new Unreadable(`${path} ${read}`) : new TextDecoder().decode(read)
}

function isPath(found: string | number | boolean): found is string {
  return typeof found === 'string' && found !== '' && !found.includes('\0')
}

function bounded(amount: number | boolean | undefined, least: number, most: number): number | undefined {
  if (typeof amount !== 'number' || !Number.isInteger(amount)) return undefined
  return amount >= least && amount <= most ? amount : undefined
}

/** Returns the text after "must be". */
export function wantedOf(value: Value): string {
  switch (value.type) {
    case 'text':
      return FORMS[value.form].what
    case 'choice':
      return `one of ${value.choices.map(choice => `"${choice}"`).join(', ')}`
    case 'flag':
      return 'true or false'
    case 'number':
      return value.most === Number.MAX_SAFE_INTEGER
        ? `a whole number from ${value.least} on`
        : `a whole number from ${value.least} to ${value.most}`
    case 'duration':
      return `milliseconds or a text such as "30s", from ${value.least}ms to 24d`
    case 'size':
      return `bytes or a text such as "64MiB", from ${value.least} on`
    case 'port-range':
      return `a port from 1 to 65535, or a range of at most ${MAX_RANGE_PORTS} such as "27015-27030"`
    case 'ports':
      return 'ports from 1 to 65535, such as "20000-29999"'
    case 'target':
      return 'a port, "host:port", a URL or "unix:/path"'
    case 'path':
    case 'file':
      return 'the path of a file or folder'
    default:
      return `a ${value.type}`
  }
}

export function showValue(value: string | number | boolean): string {
  const text = JSON.stringify(value)
  return text.length <= 80 ? text : `${text.slice(0, 77)}…"`
}

export function showResult(result: unknown, value: Value, text: string): string {
  if (value.type === 'duration') return formatDuration(Number(result))
  if (value.type === 'size') return formatSize(Number(result))
  return text
}
