// Which rule a request's path falls under, whatever spelling of the path the app takes for the same.

import { TunnelError } from '../errors.ts'
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
   * refused, because the app may read it in the other way.
   */
  ruleOf(target: string): Rule | undefined {
    const end = target.search(/[?#]/)
    const path = end < 0 ? target : target.slice(0, end)
    const rule = this.#ruleOf(path)
    if (isPlain(path)) return rule
    return readingsOf(path).every(reading => this.#ruleOf(reading) === rule) ? rule : undefined
  }

  #ruleOf(path: string): Rule {
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

/** `/api` has `/api` and `/api/x` below it, not `/apix`. */
export function isBelow(path: string, prefix: string): boolean {
  if (prefix === '/') return true
  return path.startsWith(prefix) && (path.length === prefix.length || path[prefix.length] === '/')
}

/** There is one way to read it: no escapes, backslashes, empty or dot segments, parameters. */
function isPlain(path: string): boolean {
  return /^\/[^%\\;\s?#]*$/.test(path) && !/\/\/|\/\.{1,2}(?:\/|$)/.test(path)
}

/** Whether the path is `prefix` or below it however the app reads it. The prefix may have escapes of its own. */
export function isSurelyBelow(target: string, prefix: string): boolean {
  const end = target.search(/[?#]/)
  const path = end < 0 ? target : target.slice(0, end)
  if (isPlain(path)) return isBelow(path, prefix)
  const prefixes = readingsOf(prefix)
  return readingsOf(path).every(reading => prefixes.some(one => isBelow(reading, one)))
}

/**
 * As apps and frameworks may read it: escapes decoded once or twice, dot segments resolved, slashes made one, and what begins with
 * two slashes as a reference to another host, which `new URL(request.url, base)` makes of it.
 */
function readingsOf(path: string): readonly string[] {
  const readings = new Set<string>()
  let current = path
  for (let round = 0; round < 3; round++) {
    for (const one of [current, current.replaceAll('\\', '/')]) {
      readings.add(one)
      readings.add(resolved(one, false))
      readings.add(resolved(one, true))
      readings.add(resolved(one.replace(/;[^/]*/g, ''), true))
      if (one.startsWith('//')) readings.add(resolved(one.replace(/^\/+[^/]*/, ''), false))
    }
    const next = decoded(current)
    if (next === current) break
    current = next
  }
  return [...readings]
}

function decoded(path: string): string {
  return path.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
}

/** Dot segments taken out (RFC 3986 section 5.2.4), with empty ones or without. */
function resolved(path: string, dropsEmpty: boolean): string {
  const out: string[] = []
  const segments = path.split('/').slice(1)
  for (const [index, segment] of segments.entries()) {
    const isLast = index === segments.length - 1
    if (segment === '..') out.pop()
    else if (segment !== '.' && (segment !== '' || !dropsEmpty || isLast)) out.push(segment)
    if (isLast && (segment === '.' || segment === '..')) out.push('')
  }
  return `/${out.join('/')}`
}

function invalid(what: string): TunnelError {
  return new TunnelError('GUARD_INVALID', `guard ${what}.`)
}
