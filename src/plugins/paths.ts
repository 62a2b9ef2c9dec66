// Which rule a request's path falls under, whatever spelling of the path the app takes for the same.

import { TunnelError } from '../errors.ts'
import { hasOneReading, isPlain, readingsOf, unescapeLetters } from '../http/path-readings.ts'
import type { Way } from './way.ts'

/** What it takes to visit a path. */
export interface Rule {
  /** One of them is enough; with none, everybody may visit. */
  readonly ways: readonly Way[]
}

const MAX_OPEN = 100
const MAX_PATHS = 32

export class Paths {
  readonly #standard: Rule
  /** The longest first. */
  readonly #rules: readonly { readonly path: string; readonly rule: Rule }[]
  readonly #open: readonly string[]

  /** Throws `GUARD_INVALID`. */
  constructor(standard: Rule, rules: Readonly<Record<string, Rule>>, open: readonly string[]) {
    this.#standard = standard
    this.#open = open
    const paths = Object.entries(rules)
    if (paths.length > MAX_PATHS || open.length > MAX_OPEN)
      throw invalid(`has more than ${MAX_PATHS} paths or ${MAX_OPEN} open ones`)
    for (const [path] of paths) if (!isPlain(path)) throw invalid(`paths: "${path.slice(0, 64)}" is no path`)
    for (const path of open)
      if (!isPlain(path.endsWith('*') ? path.slice(0, -1) : path))
        throw invalid(`open: "${path.slice(0, 64)}" is no path`)
    this.#rules = paths
      .map(([path, rule]) => ({ path: path.toLowerCase().replace(/(?<=.)\/+$/, ''), rule }))
      .sort((one, other) => other.path.length - one.path.length)
  }

  /** Of all rules, that of the whole tunnel first. */
  get allWays(): readonly Way[] {
    return [this.#standard, ...this.#rules.map(({ rule }) => rule)].flatMap(({ ways }) => ways)
  }

  /**
   * The rule for a request target. `undefined`: the path can be read in two ways that fall under different rules, and is
   * refused, because the app may read it in the other way; or it has escapes or dot segments and is too long to look at.
   */
  ruleOf(target: string): Rule | undefined {
    if (this.#rules.length === 0 && this.#open.length === 0) return this.#standard
    const path = pathOf(target)
    const rule = this.#ruleOf(path)
    if (hasOneReading(path)) return rule
    return readingsOf(path)?.every(reading => this.#ruleOf(reading) === rule) ? rule : undefined
  }

  /** Each character of the path is a byte. */
  #ruleOf(bytes: string): Rule {
    const path = HIGH.test(bytes) ? Buffer.from(bytes, 'latin1').toString() : bytes
    if (this.#isOpen(path)) return OPEN
    // An app that ignores case must not be reached around the rule of a path.
    const lower = path.toLowerCase()
    for (const { path: prefix, rule } of this.#rules) if (isBelow(lower, prefix)) return rule
    return this.#standard
  }

  #isOpen(path: string): boolean {
    return this.#open.some(one => (one.endsWith('*') ? path.startsWith(one.slice(0, -1)) : path === one))
  }
}

const OPEN: Rule = { ways: [] }

const HIGH = /[\x80-\xff]/

/** Each character is a byte. */
function pathOf(target: string): string {
  const end = target.search(/[?#]/)
  return unescapeLetters(end < 0 ? target : target.slice(0, end))
}

/** `/api` has `/api` and `/api/x` below it, not `/apix`. */
export function isBelow(path: string, prefix: string): boolean {
  if (prefix === '/') return true
  return path.startsWith(prefix) && (path.length === prefix.length || path[prefix.length] === '/')
}

/** Whether the path is `prefix` or below it however the app reads it. The prefix may have escapes of its own. */
export function isSurelyBelow(target: string, prefix: string): boolean {
  const path = pathOf(target)
  const above = unescapeLetters(prefix)
  // Spelled as it was meant, however strangely.
  if (path === above) return true
  if (hasOneReading(path)) return isBelow(path, above)
  const prefixes = readingsOf(above)
  return readingsOf(path)?.every(reading => prefixes?.some(one => isBelow(reading, one))) ?? false
}

function invalid(what: string): TunnelError {
  return new TunnelError('GUARD_INVALID', `guard ${what}.`)
}
