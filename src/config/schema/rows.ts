// A row for each key of a file: its value, its meaning, its default. Checks, types (`inferred.ts`), documentation and the schema for
// editors come from the rows.

import { camelOf, type Field, type Fields, type Value } from '../field.ts'
import { isForm } from '../forms.ts'

/**
 * The value is a form of `forms.ts`, or one of `flag`, `1-65535`, `1+`, `duration 0+`, `size 1+`, `bytes 1+`, `ports`, `port-range`,
 * `path`, `file`, `target`, `'a' | 'b'`, `table NAME`, `list of …`, `set of …`, `map FORM of …`, or several with ` | ` in between.
 * `secret` in front: it is never shown. The third text is the default in words, or `required`.
 */
export type Row = readonly [
  value: string,
  meaning: string,
  otherwise?: string,
  more?: { readonly kinds?: string; readonly option?: string },
]

/** Tables by name, each with rows by key. `...` includes the rows of another table; a later row of the same key wins. */
export type Tables = Readonly<Record<string, Readonly<Record<string, Row | string>>>>

export class FieldTables {
  readonly #tables: Tables
  readonly #made = new Map<string, Fields>()

  constructor(tables: Tables) {
    this.#tables = tables
  }

  of(name: string): Fields {
    const made = this.#made.get(name)
    if (made !== undefined) return made
    const rows = this.#tables[name]
    if (rows === undefined) throw new Error(`no table is called ${name}`)
    const fields: Record<string, Field> = {}
    for (const [key, row] of Object.entries(rows))
      if (typeof row === 'string') Object.assign(fields, this.of(row))
      else fields[key] = this.#field(key, row)
    this.#made.set(name, fields)
    return fields
  }

  #field(key: string, [text, meaning, otherwise, more]: Row): Field {
    const unit = text.startsWith('duration') ? 'Ms' : text.startsWith('bytes') ? 'Bytes' : ''
    return {
      value: this.#value(text),
      meaning,
      option: more?.option ?? camelOf(key) + unit,
      ...(otherwise === 'required' ? { isRequired: true } : otherwise && { default: otherwise }),
      ...(more?.kinds !== undefined && { kinds: more.kinds.split(' ') }),
    }
  }

  #value(text: string): Value {
    const [, list, items = ''] = /^(list|set) of \(?(.+?)\)?$/.exec(text) ?? []
    if (list !== undefined)
      return { type: 'list', of: this.#value(items), ...(list === 'set' && { isUnique: true }) }
    const parts = text.split(' | ')
    if (text.startsWith("'")) return { type: 'choice', choices: parts.map(part => part.slice(1, -1)) }
    if (parts.length > 1) return { type: 'either', of: parts.map(part => this.#value(part)) }
    const [, keys, each = keys, values = ''] = /^map (\w+)(?:\/(\w+))? of (.+)$/.exec(text) ?? []
    if (keys !== undefined && each !== undefined && isForm(keys))
      return { type: 'map', keys, each, of: this.#value(values) }
    const [, least, most = Number.MAX_SAFE_INTEGER] = /^(\d+)(?:-(\d+)|\+)$/.exec(text) ?? []
    if (least !== undefined) return { type: 'number', least: Number(least), most: Number(most) }
    const [first = '', second = ''] = text.split(' ')
    switch (first) {
      case 'table':
        return { type: 'table', fields: this.of(second) }
      case 'duration':
        return { type: 'duration', least: Number.parseInt(second || '1', 10) }
      case 'size':
      case 'bytes':
        return { type: 'size', least: Number.parseInt(second, 10) }
      case 'flag':
      case 'ports':
      case 'port-range':
      case 'path':
      case 'file':
      case 'target':
        return { type: first }
    }
    const form = first === 'secret' ? second : first
    if (!isForm(form)) throw new Error(`no value is called ${text}`)
    return { type: 'text', form, ...(first === 'secret' && { isSecret: true }) }
  }
}
