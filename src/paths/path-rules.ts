// Finds the rule for a request's path, in whatever spelling the app accepts. Server and client use the same rules.

import { optionInvalid, type TunnelError } from '../errors.ts'
import { asciiLowerCase } from '../http/characters.ts'
import { hasOneReading, isPlain, readingsOf, unescapeLetters } from './path-readings.ts'

const MAX_OPEN = 100
const MAX_PATHS = 32

export class PathRules<Rule> {
  readonly #standard: Rule
  readonly #opened: Rule
  /** The rules, the longest path first. */
  readonly #rules: readonly { readonly folds: readonly string[]; readonly rule: Rule }[]
  readonly #open: readonly string[]

  /**
   * Makes the rules. `standard` is the rule of all other paths. `opened` is that of the `open` paths, by default the
   * same. Throws `OPTION_INVALID`.
   */
  constructor(
    standard: Rule,
    rules: Readonly<Record<string, Rule>>,
    open: readonly string[] = [],
    opened: Rule = standard,
  ) {
    this.#standard = standard
    this.#opened = opened
    const paths = Object.entries(rules)
    if (paths.length > MAX_PATHS || open.length > MAX_OPEN)
      throw invalid(`has more than ${MAX_PATHS} paths or ${MAX_OPEN} open ones`)
    for (const [path] of paths) if (!isPlain(path)) throw invalid(`paths: "${path.slice(0, 64)}" is no path`)
    for (const path of open)
      if (!isPlain(path.endsWith('*') ? path.slice(0, -1) : path))
        throw invalid(`open: "${path.slice(0, 64)}" is no path`)
    this.#open = open.map(bytesOf)
    this.#rules = paths
      .map(([path, rule]) => ({ folds: foldsOf(bytesOf(path).replace(/(?<=.)\/+$/, '')), rule }))
      .sort((one, other) => other.folds[0]!.length - one.folds[0]!.length)
  }

  /** All rules, beginning with that of the whole tunnel. */
  get all(): readonly Rule[] {
    return [this.#standard, ...this.#rules.map(({ rule }) => rule)]
  }

  /**
   * Returns the rule for a request target. `undefined` if readings of the path fall under different rules, or it has escapes or
   * dot segments and is too long to check. Such a request is refused, because the app may read another path.
   */
  ruleOf(target: string): Rule | undefined {
    if (this.#rules.length === 0 && this.#open.length === 0) return this.#standard
    const path = pathOf(target)
    const rule = this.#ruleOf(path)
    if (hasOneReading(path)) return rule
    return rule !== undefined && readingsOf(path)?.every(reading => this.#ruleOf(reading) === rule)
      ? rule
      : undefined
  }

  /** Finds the rule of a path whose characters are bytes. `undefined` if the rule depends on how the app compares letters. */
  #ruleOf(path: string): Rule | undefined {
    if (this.#open.some(one => (one.endsWith('*') ? path.startsWith(one.slice(0, -1)) : path === one)))
      return this.#opened
    const [first, ...others] = foldsOf(path).map((fold, index) => this.#belowOf(fold, index))
    return others.every(other => other === first) ? first : undefined
  }

  #belowOf(fold: string, index: number): Rule {
    const found = this.#rules.find(({ folds }) => isBelow(fold, folds[index] ?? folds[0]!))
    return found === undefined ? this.#standard : found.rule
  }
}

/**
 * Returns the path as apps that ignore case compare it: in ASCII letters and, if it has others, in those as well. Some
 * of them read the KELVIN SIGN as `k`. Each character is a byte.
 */
function foldsOf(path: string): readonly string[] {
  const lower = asciiLowerCase(path)
  if (!HIGH.test(path)) return [lower]
  return [lower, bytesOf(Buffer.from(path, 'latin1').toString().toUpperCase().toLowerCase())]
}

const HIGH = /[\x80-\xff]/

/** Returns UTF-8, with one character per byte. */
function bytesOf(text: string): string {
  return Buffer.from(text).toString('latin1')
}

/** Returns the path of a request target, with one character per byte. */
function pathOf(target: string): string {
  const end = target.search(/[?#]/)
  return unescapeLetters(end < 0 ? target : target.slice(0, end))
}

/** Whether a path is below a prefix: `/api` and `/api/x` are below `/api`, `/apix` is not. */
function isBelow(path: string, prefix: string): boolean {
  if (prefix === '/') return true
  return path.startsWith(prefix) && (path.length === prefix.length || path[prefix.length] === '/')
}

/** Whether the path is `prefix` or below it, however the app reads it. The prefix may contain escapes. */
export function isSurelyBelow(target: string, prefix: string): boolean {
  const path = pathOf(target)
  const above = unescapeLetters(prefix)
  // The path has an unusual spelling that the rule itself uses.
  if (path === above) return true
  if (hasOneReading(path)) return isBelow(path, above)
  const prefixes = readingsOf(above)
  return readingsOf(path)?.every(reading => prefixes?.some(one => isBelow(reading, one))) ?? false
}

/**
 * Returns a function that checks whether a reading of a target is one of these paths. `*` at the end matches
 * anything; a slash there makes no difference. The function returns `undefined` if there are too many readings.
 */
export function pathMatcher(paths: readonly string[]): (target: string) => boolean | undefined {
  const patterns = paths.flatMap(path => {
    const isPrefix = path.endsWith('*')
    const stem = bytesOf(isPrefix ? path.slice(0, -1) : path)
    return (foldedReadingsOf(stem) ?? foldsOf(stem)).map(fold => ({ fold, isPrefix }))
  })
  return target =>
    foldedReadingsOf(pathOf(target))?.some(reading =>
      patterns.some(({ fold, isPrefix }) =>
        isPrefix ? withSlash(reading).startsWith(fold) : withSlash(reading) === withSlash(fold),
      ),
    )
}

function foldedReadingsOf(path: string): readonly string[] | undefined {
  const readings = hasOneReading(path) ? [path] : readingsOf(path)
  return readings?.flatMap(foldsOf)
}

function withSlash(path: string): string {
  return path.endsWith('/') ? path : `${path}/`
}

function invalid(what: string): TunnelError {
  return optionInvalid(`guard ${what}.`)
}
