// Reads TOML 1.0. The parser returns a syntax tree with positions; the tables are built here.

import { type AST, ParseError, parseTOML } from 'toml-eslint-parser'
import type { Fault, Place } from '../fault.ts'
import { type Node, type Read, TableBuilder } from '../node.ts'

export function readToml(text: string): Read {
  let program: AST.TOMLProgram
  try {
    program = parseTOML(text, { tomlVersion: '1.0' })
  } catch (error) {
    if (!(error instanceof ParseError)) throw error
    const at = { line: error.lineNumber, column: error.column + 1 }
    return { faults: [{ at, message: `is not TOML: ${lowerFirst(error.message)}` }] }
  }
  const faults: Fault[] = []
  const [top] = program.body
  const root = new TableBuilder({ line: 1, column: 1 }, faults)
  for (const part of top.body) {
    if (part.type === 'TOMLKeyValue') addKeyValue(root, part, faults)
    else {
      const table = tableAt(root, part, faults)
      for (const keyValue of part.body) addKeyValue(table, keyValue, faults)
    }
  }
  return faults.length === 0 ? { root } : { faults }
}

/** Tables and lists being built. The parser only accepts consistent data, so every step finds its kind. */
interface ListBuilder {
  readonly kind: 'list'
  readonly at: Place | undefined
  readonly items: Node[]
}

/** Returns the table that `[a.b]` or `[[a.b]]` opens. Numbers in the resolved key are positions in lists of tables. */
function tableAt(root: TableBuilder, table: AST.TOMLTable, faults: Fault[]): TableBuilder {
  const keys = table.key.keys.values()
  let here: TableBuilder | ListBuilder = root
  let at = placeOf(table.key)
  const { resolvedKey } = table
  for (const [index, step] of resolvedKey.entries()) {
    if (typeof step === 'string') at = placeOf(keys.next().value ?? table.key)
    const isList = typeof resolvedKey[index + 1] === 'number'
    here = stepInto(here, step, at, isList, faults)
  }
  // A resolved key ends in a table.
  return here as TableBuilder
}

function stepInto(
  here: TableBuilder | ListBuilder,
  step: string | number,
  at: Place,
  isList: boolean,
  faults: Fault[],
): TableBuilder | ListBuilder {
  const found = here.kind === 'list' ? here.items[Number(step)] : here.entries.get(String(step))?.node
  // All tables and lists of this tree were made below.
  if (found !== undefined) return found as TableBuilder | ListBuilder
  const made: TableBuilder | ListBuilder = isList
    ? { kind: 'list', at, items: [] }
    : new TableBuilder(at, faults)
  if (here.kind === 'list') here.items.push(made)
  else here.add(String(step), at, made)
  return made
}

function addKeyValue(table: TableBuilder, { key, value }: AST.TOMLKeyValue, faults: Fault[]): void {
  let here = table
  const last = key.keys.length - 1
  for (const [index, part] of key.keys.entries()) {
    const name = part.type === 'TOMLBare' ? part.name : part.value
    if (index === last) here.add(name, placeOf(part), nodeOf(value, faults))
    // `a.b = 1` and `a.c = 2` share a table, which only such keys make.
    else here = stepInto(here, name, placeOf(part), false, faults) as TableBuilder
  }
}

function nodeOf(content: AST.TOMLContentNode, faults: Fault[]): Node {
  const at = placeOf(content)
  switch (content.type) {
    case 'TOMLArray':
      return { kind: 'list', at, items: content.elements.map(element => nodeOf(element, faults)) }
    case 'TOMLInlineTable': {
      const table = new TableBuilder(at, faults)
      for (const keyValue of content.body) addKeyValue(table, keyValue, faults)
      return table
    }
    case 'TOMLValue':
      return content.value instanceof Date
        ? { kind: 'other', at, what: 'a date' }
        : { kind: 'value', at, value: content.value }
  }
}

function placeOf({ loc }: { readonly loc: { readonly start: Place } }): Place {
  return { line: loc.start.line, column: loc.start.column + 1 }
}

function lowerFirst(text: string): string {
  return `${text[0]?.toLowerCase() ?? ''}${text.slice(1)}`
}
