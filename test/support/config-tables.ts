// What the tables of the configuration make of documentation.

import type { Fields, Value } from '../../src/config/field.ts'
import { CLIENT_FIELDS, SERVER_FIELDS } from '../../src/config/schema/fields.ts'
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
