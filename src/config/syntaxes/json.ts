// Reads JSON, with comments and trailing commas, as editors do for configuration files.

import {
  type Node as JsonNode,
  type ParseError,
  parseTree,
  printParseErrorCode,
  stripComments,
} from 'jsonc-parser'
import { type Fault, Lines } from '../fault.ts'
import { type Node, type Read, TableBuilder } from '../node.ts'

export function readJson(text: string): Read {
  const errors: ParseError[] = []
  const lines = new Lines(text)
  const tree = parseTree(text, errors, { allowTrailingComma: true })
  const [error] = errors
  if (tree === undefined && stripComments(text).trim() === '')
    return { root: new TableBuilder(undefined, []) }
  // Later faults are usually consequences of the first.
  if (error !== undefined || tree === undefined) {
    const why = error && WORDS[printParseErrorCode(error.error)]
    const message = `is not JSON: ${why ?? 'a value is missing here'}`
    return { faults: [{ at: lines.at(error?.offset ?? 0), message }] }
  }
  const faults: Fault[] = []
  const root = nodeOf(tree, lines, faults)
  if (root.kind !== 'table')
    faults.push({ at: root.at, message: 'is not a table: begin with { and end with }' })
  return faults.length > 0 || root.kind !== 'table' ? { faults } : { root }
}

function nodeOf(node: JsonNode, lines: Lines, faults: Fault[]): Node {
  const at = lines.at(node.offset)
  if (node.type === 'object') {
    const table = new TableBuilder(at, faults)
    for (const { children: [key, value] = [] } of node.children ?? []) {
      if (key !== undefined && value !== undefined) {
        table.add(String(key.value), lines.at(key.offset), nodeOf(value, lines, faults))
      }
    }
    return table
  }
  if (node.type === 'array') {
    return { kind: 'list', at, items: (node.children ?? []).map(child => nodeOf(child, lines, faults)) }
  }
  // `any` in the parser's types.
  const value: unknown = node.value
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') {
    return { kind: 'value', at, value }
  }
  return { kind: 'other', at, what: 'null' }
}

/** The messages for the parser's error codes. */
const WORDS: Readonly<Record<string, string>> = {
  InvalidSymbol: 'this is not a value; texts and keys need double quotes',
  InvalidNumberFormat: 'this is not a number',
  PropertyNameExpected: 'a key in double quotes is missing here',
  ValueExpected: 'a value is missing here',
  ColonExpected: 'a colon must stand between key and value',
  CommaExpected: 'a comma is missing here',
  CloseBraceExpected: 'a } is missing',
  CloseBracketExpected: 'a ] is missing',
  EndOfFileExpected: 'the file must end here',
  UnexpectedEndOfComment: 'a comment is not closed with */',
  UnexpectedEndOfString: 'a text is not closed with a double quote',
  UnexpectedEndOfNumber: 'a number is not complete',
  InvalidUnicode: '\\u needs four hexadecimal digits',
  InvalidEscapeCharacter: 'there is no such escape; write \\\\ for a backslash',
  InvalidCharacter: 'control characters must be escaped',
}
