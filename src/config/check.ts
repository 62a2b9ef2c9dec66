// Checks a tree against a table of fields, and turns it into the options of the library. Finds every fault, not only the first.

import { nearest } from '../option-names.ts'
import type { Fault, Place } from './fault.ts'
import { camelOf, type Fields, optionOf, spellingsOf, type Value } from './field.ts'
import { FORMS } from './forms.ts'
import type { FoundFile } from './found.ts'
import { kindOf, lineOf, type Node, type TableNode } from './node.ts'
import { readValue, showResult, showValue, Unreadable, wantedOf } from './value.ts'
import { type Environment, expand } from './variables.ts'

export interface CheckOptions {
  /** The folder of the file, to which its paths are relative. */
  readonly folder: string
  /** The variables for `${NAME}` in texts. `undefined`: texts stay unchanged, as in TypeScript. */
  readonly environment: Environment | undefined
  /** The rules of a file that the user has not named. */
  readonly found?: FoundFile | undefined
}

/** The names of a table, for keys that are unknown in another table. */
export interface Elsewhere {
  readonly fields: Fields
  /** The text after "belongs". */
  readonly where: string
}

export interface Checked<Config> {
  /** The configuration. `undefined` if there are faults. */
  readonly config: Config | undefined
  readonly faults: readonly Fault[]
  /** The meaning of each key in words, by its path, without secrets. */
  readonly shown: ReadonlyMap<string, string>
  /** The place of each key, by its path. */
  readonly places: ReadonlyMap<string, Place | undefined>
}

/** The values by option name. An unusable value is left out, and a fault says why. */
export type Values = Readonly<Record<string, unknown>>

export class Check {
  readonly faults: Fault[] = []
  readonly #options: CheckOptions
  readonly #places = new Map<string, Place | undefined>()
  /** The shown values by path, for `explain`. */
  readonly #shown = new Map<string, string>()

  constructor(options: CheckOptions) {
    this.#options = options
  }

  fault(path: string, message: string): void {
    this.faults.push({ at: this.#places.get(path), message })
  }

  /** Checks the host of an app, because a file that was found must not name every host. */
  appHost(path: string, host: string): void {
    const refusal = this.#options.found?.hostRefusal(host)
    if (refusal !== undefined) this.fault(path, `${path}: ${refusal}`)
  }

  lineOf(path: string): string {
    return lineOf(this.#places.get(path))
  }

  isGiven(path: string): boolean {
    return this.#places.has(path)
  }

  /** Whether a key is given and its value is unusable. */
  isFaulty(path: string): boolean {
    const place = this.#places.get(path)
    return place !== undefined && this.faults.some(({ at }) => at === place)
  }

  checked<Config>(config: Config): Checked<Config> {
    const { faults } = this
    return {
      config: faults.length === 0 ? config : undefined,
      faults,
      shown: this.#shown,
      places: this.#places,
    }
  }

  table(node: TableNode, fields: Fields, path = '', elsewhere: readonly Elsewhere[] = []): Values {
    const values: Record<string, unknown> = {}
    const known = new Map<string, string>()
    for (const [key, field] of Object.entries(fields)) {
      for (const spelling of spellingsOf(key, field)) known.set(spelling, key)
    }
    const given = new Map<string, string>()
    for (const [spelling, entry] of node.entries) {
      const key = known.get(spelling)
      const field = key === undefined ? undefined : fields[key]
      if (key === undefined || field === undefined) {
        this.faults.push({ at: entry.at, message: unknownKey(spelling, path, fields, elsewhere) })
        continue
      }
      const here = pathOf(path, key)
      const earlier = given.get(key)
      if (earlier !== undefined) {
        this.faults.push({
          at: entry.at,
          message: `"${spelling}" says the same as "${earlier}": keep one of them`,
        })
        continue
      }
      given.set(key, spelling)
      this.#places.set(here, entry.at)
      const value = this.#value(entry.node, field.value, here)
      if (value !== undefined) values[optionOf(key, field)] = value
    }
    for (const [key, field] of Object.entries(fields)) {
      if (field.isRequired && !given.has(key)) {
        this.faults.push({ at: this.#places.get(path) ?? node.at, message: `${label(path)} needs "${key}"` })
      }
    }
    return values
  }

  /** Returns a value. `undefined` if it is unusable, and a fault says why. */
  #value(node: Node, value: Value, path: string): unknown {
    switch (value.type) {
      case 'table':
        return node.kind === 'table'
          ? this.table(node, value.fields, path)
          : this.#wrong(node, path, 'a table')
      case 'map':
        return this.#map(node, value, path)
      case 'list':
        return this.#list(node, value, path)
      case 'either': {
        const fitting = fittingOf(node, value.of)
        return fitting === undefined
          ? this.#wrong(node, path, 'another value')
          : this.#value(node, fitting, path)
      }
      default:
        return this.#scalar(node, value, path)
    }
  }

  #map(
    node: Node,
    { of, keys, each }: Value & { type: 'map' },
    path: string,
  ): ReadonlyMap<string, unknown> | undefined {
    if (node.kind !== 'table') return this.#wrong(node, path, `a table with a key for each ${each}`)
    const map = new Map<string, unknown>()
    for (const [key, entry] of node.entries) {
      const here = pathOf(path, key)
      this.#places.set(here, entry.at)
      if (!FORMS[keys].fits(key))
        this.fault(here, `${JSON.stringify(key)} in ${path} is not ${FORMS[keys].what}`)
      const value = this.#value(entry.node, of, here)
      if (value !== undefined) map.set(key, value)
    }
    return map
  }

  #list(
    node: Node,
    { of, isUnique }: Value & { type: 'list' },
    path: string,
  ): readonly unknown[] | undefined {
    // A single value needs no brackets.
    const items = node.kind === 'list' ? node.items : [node]
    if (node.kind === 'list' && items.length === 0)
      return this.#wrong(node, path, 'a list of at least one, or left out', 'an empty list')
    const values: unknown[] = []
    for (const [index, item] of items.entries()) {
      const here = node.kind === 'list' ? `${path}[${index}]` : path
      if (here !== path) this.#places.set(here, item.at)
      const value = this.#value(item, of, here)
      if (value === undefined) continue
      if (isUnique && values.includes(value)) this.fault(here, `${here} is in ${path} twice`)
      values.push(value)
    }
    return values
  }

  #scalar(node: Node, value: Value, path: string): unknown {
    const isSecret = value.type === 'text' && value.isSecret === true
    if (node.kind !== 'value') return this.#wrong(node, path, wantedOf(value))
    let found = node.value
    let shown = isSecret ? undefined : showValue(found)
    if (typeof found === 'string' && this.#options.environment !== undefined) {
      const { environment } = this.#options
      const refusal = this.#options.found?.refusal(found, value, environment)
      if (refusal !== undefined) return this.#fault(node, path, refusal)
      const expanded = expand(found, environment)
      if ('message' in expanded) return this.#fault(node, path, expanded.message)
      // A variable may contain a secret, in the wrong place by mistake.
      if (expanded.text !== found && shown !== undefined) shown = `what ${shown} stands for`
      found = expanded.text
    }
    // Checked before the file is read.
    const outside = typeof found === 'string' ? this.#options.found?.pathRefusal(found, value) : undefined
    if (outside !== undefined) return this.#fault(node, path, outside)
    const result = readValue(found, value, this.#options.folder)
    if (result === undefined) {
      const isAsWritten = shown === showValue(found)
      const hint = value.type === 'text' && isAsWritten ? FORMS[value.form].hint?.(String(found)) : undefined
      return this.#wrong(node, path, wantedOf(value), `${shown ?? 'this value'}${hint ?? ''}`)
    }
    if (result instanceof Unreadable) {
      this.fault(path, `${path}: ${result.message}`)
      return undefined
    }
    this.#shown.set(path, isSecret ? '(set)' : showResult(result, value, String(found)))
    return result
  }

  #fault(node: Node, path: string, message: string): undefined {
    this.faults.push({ at: node.at ?? this.#places.get(path), message: `${path}: ${message}` })
  }

  #wrong(node: Node, path: string, wanted: string, found: string = kindOf(node)): undefined {
    this.faults.push({
      at: this.#places.get(path) ?? node.at,
      message: `${path} must be ${wanted}, not ${found}`,
    })
  }
}

function unknownKey(key: string, path: string, fields: Fields, elsewhere: readonly Elsewhere[]): string {
  const unknown = `unknown key ${JSON.stringify(key)}${path === '' ? '' : ` in ${path}`}`
  for (const { fields: others, where } of elsewhere) {
    const found = Object.entries(others).some(([name, field]) => spellingsOf(name, field).includes(key))
    if (found) return `${unknown}: it belongs ${where}`
  }
  // The spelling is that of the file's other keys.
  const isCamel = /[a-z][A-Z]/.test(key)
  const spell = (one: string) => (isCamel ? camelOf(one) : one)
  const here = nearest(key, Object.keys(fields).map(spell))
  if (here !== undefined) return `${unknown}: did you mean "${here}"?`
  const names = Object.keys(fields)
  return names.length <= 8 ? `${unknown}: the keys here are ${names.join(', ')}` : unknown
}

function label(path: string): string {
  return path === '' ? 'the file' : path
}

export function pathOf(path: string, key: string): string {
  const part = /^[\w-]+$/.test(key) ? key : JSON.stringify(key)
  return path === '' ? part : `${path}.${part}`
}

/** Returns the type of value that a node fits: by its form, otherwise the first that is not a table. */
function fittingOf(node: Node, of: readonly Value[]): Value | undefined {
  if (node.kind === 'table') return of.find(({ type }) => type === 'table')
  const type = node.kind === 'list' ? 'list' : node.kind === 'value' ? typeof node.value : ''
  return of.find(one => one.type === type) ?? of.find(one => one.type !== 'table')
}
