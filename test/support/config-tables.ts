// What the tables of the configuration make of documentation and types.

import { camelOf, type Field, type Fields, type Value } from '../../src/config/field.ts'
import { CLIENT_FIELDS } from '../../src/config/schema/client.ts'
import { SERVER_FIELDS } from '../../src/config/schema/server.ts'
import { limitTexts } from './limit-meanings.ts'

const LIMITS = await limitTexts()

/**
 * A list in the documentation for each table of the file. Tables with the same keys have one list, the first; keys that another
 * table explains in the same words are only named.
 */
export function docTables(): ReadonlyMap<string, readonly string[]> {
  const tables = new Map<string, readonly string[]>()
  const seen = new Set<string>()
  /** The table that has a row first. */
  const explained = new Map<string, string>()
  const visit = (name: string, fields: Fields) => {
    const rows = docList(fields, name === 'client limits' ? LIMITS.client : LIMITS.server)
    if (seen.has(rows.join('\n'))) return
    seen.add(rows.join('\n'))
    tables.set(name, withoutRepeats(rows, explained))
    for (const row of rows) if (!explained.has(row)) explained.set(row, name)
    for (const [key, { value }] of Object.entries(fields)) {
      const inner = tableIn(value)
      if (inner !== undefined) visit(`${name} ${key}`, inner)
    }
  }
  visit('client', CLIENT_FIELDS)
  visit('server', SERVER_FIELDS)
  return tables
}

/** Below this many repeated rows, naming them would not be shorter. */
const FEW = 3

function withoutRepeats(rows: readonly string[], explained: ReadonlyMap<string, string>): readonly string[] {
  const tableOf = (row: string) => explained.get(row) ?? ''
  const repeated = [...Map.groupBy(rows, tableOf)].filter(([name, same]) => name !== '' && same.length >= FEW)
  const gone = new Set(repeated.flatMap(([, same]) => same))
  const keysOf = (same: readonly string[]) => same.map(row => /`[^`]+`/.exec(row)?.[0]).join(', ')
  return [
    ...rows.filter(row => !gone.has(row)),
    ...repeated.map(([name, same]) => `- ${keysOf(same)}: as in \`${name.split(' ').at(-1)}\``),
  ]
}

/** The table that a value holds, if it does. */
export function tableIn(value: Value): Fields | undefined {
  switch (value.type) {
    case 'table':
      return value.fields
    case 'map':
    case 'list':
      return tableIn(value.of)
    case 'either':
      return value.of.map(tableIn).find(fields => fields !== undefined)
    default:
      return undefined
  }
}

/** Of a limit the list says what happens above it, too. */
function docList(fields: Fields, limits: ReadonlyMap<string, string>): readonly string[] {
  const isLimits = Object.values(fields).every(({ option }) => limits.has(option ?? ''))
  return Object.entries(fields).map(([key, field]) => {
    const kinds = field.kinds === undefined ? '' : `; ${field.kinds.join('/')}`
    const otherwise = field.isRequired ? '**required**' : (field.default ?? '')
    const notes = `${wordsOf(field.value)}${kinds}${otherwise === '' ? '' : `; ${otherwise}`}`
    return `- \`${key}\` (${notes}): ${isLimits ? (limits.get(field.option ?? '') ?? '') : field.meaning}`.replaceAll(
      '<',
      '&lt;',
    )
  })
}

function wordsOf(value: Value): string {
  switch (value.type) {
    case 'text':
      return 'text'
    case 'choice':
      return value.choices.map(choice => `\`${choice}\``).join('/')
    case 'flag':
      return 'flag'
    case 'number':
      return value.most === Number.MAX_SAFE_INTEGER ? `${value.least}+` : `${value.least}-${value.most}`
    case 'duration':
      return 'duration'
    case 'size':
      return 'size'
    case 'port-range':
      return '1-65535 or range'
    case 'ports':
      return 'ports'
    case 'path':
    case 'file':
      return 'path'
    case 'target':
      return 'port/address/URL'
    case 'list':
      return `${wordsOf(value.of)} list`
    case 'map':
      return `${wordsOf(value.of)} by name`
    case 'table':
      return 'table'
    case 'either':
      return value.of.map(wordsOf).join('/')
  }
}

/** `src/config/input.ts`: the types of what a TypeScript file may say. */
export function inputTypes(): string {
  const interfaces: string[] = []
  /** What is a table of several others has one type, named after the first. */
  const names = new Map<Fields, string>()
  const visit = (name: string, fields: Fields, purpose?: string): string => {
    const known = names.get(fields)
    if (known !== undefined) return known
    names.set(fields, name)
    const members = Object.entries(fields).map(([key, field]) => {
      const type = typeOf(field.value, `${name.replace(/File$/, '')}${pascal(key)}`)
      return `  /** ${docstring(field)} */\n  readonly ${camelOf(key)}${field.isRequired ? '' : '?'}: ${type}`
    })
    // Of a table of the file the name says which.
    const comment = purpose === undefined ? '' : `/** ${purpose} */\n`
    interfaces.push(`${comment}export interface ${name} {\n${members.join('\n')}\n}\n`)
    return name
  }
  const typeOf = (value: Value, name: string): string => {
    switch (value.type) {
      case 'text':
      case 'path':
      case 'file':
        return 'string'
      case 'choice':
        return value.choices.map(choice => `'${choice}'`).join(' | ')
      case 'flag':
        return 'boolean'
      case 'number':
        return 'number'
      case 'duration':
      case 'size':
      case 'port-range':
      case 'ports':
      case 'target':
        return 'number | string'
      case 'list': {
        const of = typeOf(value.of, name.replace(/s$/, ''))
        return `readonly ${of.includes(' ') ? `(${of})` : of}[]`
      }
      case 'map':
        return `Readonly<Record<string, ${typeOf(value.of, name.replace(/s$/, ''))}>>`
      case 'table':
        return visit(name, value.fields)
      case 'either':
        return value.of.map(one => typeOf(one, name)).join(' | ')
    }
  }
  visit('ClientFile', CLIENT_FIELDS, 'What the file of a client may say.')
  visit('ServerFile', SERVER_FIELDS, 'What the file of a server may say.')
  const purpose =
    '// Types of configuration files. Written from the tables of schema/ by test/config/docs.test.ts; do not edit.\n'
  return `${purpose}\n${interfaces.join('\n')}`
}

const pascal = (key: string) => camelOf(`-${key}`)

function docstring({ meaning, default: otherwise }: Field): string {
  const text = `${meaning}.${otherwise === undefined ? '' : ` Default: ${otherwise}.`}`
  return text.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').replaceAll('*/', '*\\/')
}
