// Reads the parts of YAML 1.2 that TOML and JSON also have: tables, lists, texts, numbers, true and false.

import { type Document, isAlias, isMap, isScalar, isSeq, type ParsedNode, parseDocument } from 'yaml'
import { type Fault, Lines, type Place } from '../fault.ts'
import { type Node, type Read, TableBuilder } from '../node.ts'

/**
 * The maximum number of values of one file. An alias is read again at each place, so ten lines of aliases could mean
 * a billion values.
 */
const MAX_VALUES = 20_000

/** The merge key of YAML version 1.1, with which people share keys by anchors. In quotes it is an ordinary key. */
const MERGE = '<<'

export function readYaml(text: string): Read {
  // TableBuilder reports repeated keys, each with its place.
  const document = parseDocument(text, { prettyErrors: false, uniqueKeys: false })
  const lines = new Lines(text)
  const [error] = document.errors
  if (error !== undefined) {
    return { faults: [{ at: lines.at(error.pos[0]), message: `is not YAML: ${explain(error.message)}` }] }
  }
  return new Reader(document, lines).read()
}

class Reader {
  readonly #document: Document.Parsed
  readonly #lines: Lines
  readonly #faults: Fault[] = []
  #values = 0

  constructor(document: Document.Parsed, lines: Lines) {
    this.#document = document
    this.#lines = lines
  }

  read(): Read {
    const { contents } = this.#document
    // Only comments.
    const isEmpty = contents === null || (isScalar(contents) && contents.value === null)
    const root: Node = isEmpty ? new TableBuilder(undefined, []) : this.#node(contents)
    if (root.kind !== 'table') {
      this.#faults.push({ at: root.at, message: 'is not a table: write keys, each with ": " and its value' })
    }
    return this.#faults.length > 0 || root.kind !== 'table' ? { faults: this.#faults } : { root }
  }

  #node(node: ParsedNode | null | undefined): Node {
    const at = this.#placeOf(node)
    this.#values++
    if (this.#values === MAX_VALUES + 1) {
      this.#faults.push({ at, message: `has more than ${MAX_VALUES} values: use fewer aliases` })
    }
    if (this.#values > MAX_VALUES) return { kind: 'other', at, what: 'too much' }
    if (isMap(node)) {
      const table = new TableBuilder(at, this.#faults)
      const merged: (ParsedNode | null)[] = []
      for (const { key, value } of node.items) {
        const keyAt = this.#placeOf(key)
        // A key is used as written: `1e9` is a name, not a number.
        const written = isScalar(key) ? key.source : undefined
        const name: unknown = isScalar(key) && typeof key.value === 'string' ? key.value : written
        if (name === MERGE && isPlain(key)) merged.push(value)
        else if (typeof name === 'string' && name !== '') {
          table.add(name, keyAt, this.#node(value))
        } else this.#faults.push({ at: keyAt, message: 'a key must be text' })
      }
      for (const value of merged) this.#merge(table, value)
      return table
    }
    if (isSeq(node)) return { kind: 'list', at, items: node.items.map(item => this.#node(item)) }
    if (isAlias(node)) return this.#aliased(node.resolve(this.#document), at)
    const value: unknown = isScalar(node) ? node.value : null
    if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') {
      return { kind: 'value', at, value }
    }
    return { kind: 'other', at, what: value === null ? 'nothing' : 'a value of a type that YAML alone has' }
  }

  /** Adds the keys of `<<: *anchor`, or of a list of them, that the table does not have. */
  #merge(table: TableBuilder, value: ParsedNode | null): void {
    const merged = this.#node(value)
    for (const one of merged.kind === 'list' ? merged.items : [merged]) {
      if (one.kind !== 'table') {
        this.#faults.push({
          at: one.at ?? this.#placeOf(value),
          message: '"<<" takes a table, or a list of them',
        })
        continue
      }
      for (const [key, entry] of one.entries) if (!table.entries.has(key)) table.entries.set(key, entry)
    }
  }

  #aliased(node: unknown, at: Place | undefined): Node {
    // The anchor of a parsed document is a parsed node. A node that contains its own alias ends at MAX_VALUES.
    if (node !== undefined) return this.#node(node as ParsedNode)
    this.#faults.push({ at, message: 'is an alias for an anchor that does not stand above it' })
    return { kind: 'other', at, what: 'nothing' }
  }

  #placeOf(node: ParsedNode | null | undefined): Place | undefined {
    return node?.range ? this.#lines.at(node.range[0]) : undefined
  }
}

function isPlain(key: ParsedNode | null): boolean {
  return isScalar(key) && key.type === 'PLAIN'
}

/** Returns the parser's message, without references to its own functions. */
function explain(message: string): string {
  if (message.startsWith('Source contains multiple documents'))
    return 'one file is one document, without a second "---"'
  if (message.startsWith('Nested mappings are not allowed')) return 'text with ": " in it needs quotes'
  return `${message[0]?.toLowerCase() ?? ''}${message.slice(1)}`.replaceAll(/\s*\n\s*/g, ' ')
}
