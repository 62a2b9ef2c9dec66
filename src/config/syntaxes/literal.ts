// Finds the positions of the keys of an exported object literal in TypeScript source. Only for messages: a key that
// is not found has no line.

import { Lines, type Place } from '../fault.ts'

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
