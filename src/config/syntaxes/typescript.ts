// Reads a TypeScript file, whose default export is the configuration. It may run, because the user named it.

import { messageOf } from '../../errors.ts'
import { type Fault, Lines, type Place } from '../fault.ts'
import { type Node, type Read, TableBuilder } from '../node.ts'

/** The maximum depth, at which a value that contains itself ends. */
const MAX_DEPTH = 32

let imports = 0

export async function readTypeScript(path: string, text: string): Promise<Read> {
  if (typeof Bun === 'undefined') {
    const message =
      'is a program in TypeScript, which needs Bun (https://bun.sh): write it as TOML, YAML or JSON'
    return { faults: [{ at: undefined, message }] }
  }
  let value: unknown
  try {
    // The number makes each import a new one, because the file may have changed. Bun only uses it in paths, not in file: URLs.
    const module: unknown = await import(`${path}?read=${++imports}`)
    value = await defaultOf(module)
  } catch (error) {
    const text = firstLine(error)
    // With a global installation: a program only finds packages next to itself.
    const message = /['"]localtunnels(?:\/\w+)?['"]/.test(text)
      ? 'cannot be run: it imports localtunnels, which its folder does not have: install it there, or import types alone'
      : `cannot be run: ${text}`
    return { faults: [{ at: undefined, message }] }
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    const message = 'has no configuration: write `export default defineConfig({ … })`'
    return { faults: [{ at: undefined, message }] }
  }
  const faults: Fault[] = []
  try {
    const root = nodeOf(value, '', placesOf(text), faults, 0)
    if (faults.length === 0 && root.kind === 'table') return { root }
  } catch (error) {
    // Getters and proxies may throw anything.
    faults.push({ at: undefined, message: `cannot be read: ${firstLine(error)}` })
  }
  return { faults }
}

async function defaultOf(module: unknown): Promise<unknown> {
  return typeof module === 'object' && module !== null && 'default' in module
    ? await module.default
    : undefined
}

function nodeOf(value: unknown, path: string, places: Places, faults: Fault[], depth: number): Node {
  const at = places.get(path)
  if (depth > MAX_DEPTH) {
    if (depth === MAX_DEPTH + 1) faults.push({ at, message: 'is nested too deeply' })
    return { kind: 'other', at, what: 'too much' }
  }
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') {
    return { kind: 'value', at, value }
  }
  if (Array.isArray(value)) {
    // isArray turns unknown into any.
    const items = (value as readonly unknown[]).map((item, index) =>
      nodeOf(item, `${path}/${index}`, places, faults, depth + 1),
    )
    return { kind: 'list', at, items }
  }
  if (typeof value === 'object' && value !== null && isPlain(value)) {
    const table = new TableBuilder(at, faults)
    for (const [key, child] of Object.entries(value)) {
      // As if the key were missing: `token: process.env.TOKEN`.
      if (child === undefined) continue
      const here = `${path}/${key}`
      table.add(key, places.get(here), nodeOf(child, here, places, faults, depth + 1))
    }
    return table
  }
  return {
    kind: 'other',
    at,
    what: value === null ? 'null' : `a ${value instanceof Date ? 'date' : typeof value}`,
  }
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  return prototype === Object.prototype || prototype === null
}

function firstLine(error: unknown): string {
  const text = messageOf(error)
  return text.trim().split('\n')[0] ?? ''
}

/** The places by path, as in `/services/web/port`. Items of lists have numbers. */
export type Places = ReadonlyMap<string, Place>

// Comments, the three kinds of text, names and numbers, and single characters. A template is read up to the next
// backtick; a nested one misleads only this reader.
const TOKEN =
  /\/\/[^\n]*|\/\*[\s\S]*?\*\/|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|`(?:[^`\\]|\\[\s\S])*`|[\w$]+|\S/g

interface Level {
  readonly isList: boolean
  readonly path: string
  /** The key or number of the current item. `undefined` until its colon. */
  step: string | undefined
}

export function placesOf(text: string): Places {
  const lines = new Lines(text)
  const places = new Map<string, Place>()
  const begin = /export\s+default\b/.exec(text)
  const levels: Level[] = []
  /** The depth of round brackets, whose content is ignored, except for `defineConfig(`. */
  let depth = 0
  let candidate: { readonly key: string; readonly offset: number } | undefined
  for (const { 0: token, index } of text
    .slice(begin === null ? text.length : begin.index + begin[0].length)
    .matchAll(TOKEN)) {
    const offset = begin!.index + begin![0].length + index
    if (token.startsWith('//') || token.startsWith('/*')) continue
    const level = levels.at(-1)
    if (token === '{' || token === '[') {
      const path = level === undefined ? '' : `${level.path}/${level.step ?? '?'}`
      if (level?.isList) places.set(path, lines.at(offset))
      levels.push({ isList: token === '[', path, step: token === '[' ? '0' : undefined })
      candidate = undefined
    } else if (token === '}' || token === ']') {
      levels.pop()
      // The literal is complete.
      if (levels.length === 0) break
      candidate = undefined
    } else if (level === undefined) continue
    else if (token === '(') depth++
    else if (token === ')') depth--
    else if (depth > 0) continue
    else if (token === ',') {
      level.step = level.isList ? String(Number(level.step) + 1) : undefined
      candidate = undefined
    } else if (level.isList) {
      const path = `${level.path}/${level.step}`
      if (!places.has(path)) places.set(path, lines.at(offset))
    } else if (level.step === undefined) {
      if (token === ':' && candidate !== undefined) {
        level.step = candidate.key
        places.set(`${level.path}/${candidate.key}`, lines.at(candidate.offset))
      } else candidate = { key: token.replace(/^(['"`])([\s\S]*)\1$/, '$2'), offset }
    }
  }
  return places
}
