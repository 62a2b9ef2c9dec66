// What the tables of the configuration make of documentation and types.

import { camelOf, type Field, type Fields, type Value } from '../../src/config/field.ts'
import { CLIENT_FIELDS, SERVICE_FIELDS } from '../../src/config/schema/client.ts'
import { SERVER_FIELDS } from '../../src/config/schema/server.ts'

/** A table in the documentation for each table of the file. */
export function docTables(): ReadonlyMap<string, readonly string[]> {
  const tables = new Map<string, readonly string[]>()
  const visit = (name: string, fields: Fields) => {
    tables.set(name, docTable(fields))
    for (const [key, { value }] of Object.entries(fields)) {
      const inner = tableIn(value)
      if (inner !== undefined) visit(`${name} ${key}`, inner)
    }
  }
  visit('client', CLIENT_FIELDS)
  visit('server', SERVER_FIELDS)
  return tables
}

function tableIn(value: Value): Fields | undefined {
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

function docTable(fields: Fields): readonly string[] {
  const isByKind = fields === SERVICE_FIELDS
  const rows = Object.entries(fields).map(([key, field]) => {
    const kinds = isByKind ? `${field.kinds?.join(', ') ?? 'all'} | ` : ''
    const otherwise = field.isRequired ? 'must be there' : (field.default ?? '')
    return `| \`${key}\` | ${cell(wordsOf(field.value))} | ${kinds}${cell(field.meaning)} | ${cell(otherwise)} |`
  })
  return [
    isByKind ? '| key | value | kinds | meaning | default |' : '| key | value | meaning | default |',
    isByKind ? '|---|---|---|---|---|' : '|---|---|---|---|',
    ...rows,
  ]
}

const cell = (text: string) => text.replaceAll('|', '\\|').replaceAll('<', '&lt;')

function wordsOf(value: Value): string {
  switch (value.type) {
    case 'text':
      return 'text'
    case 'choice':
      return value.choices.map(choice => `\`${choice}\``).join(', ')
    case 'flag':
      return '`true`, `false`'
    case 'number':
      return value.most === Number.MAX_SAFE_INTEGER
        ? `${value.least} or more`
        : `${value.least} to ${value.most}`
    case 'duration':
      return 'duration'
    case 'size':
      return 'size'
    case 'port-range':
      return '1 to 65535, or a range'
    case 'ports':
      return 'ports'
    case 'path':
    case 'file':
      return 'path'
    case 'target':
      return 'port, address, URL'
    case 'list':
      return `list of: ${wordsOf(value.of)}`
    case 'map':
      return `table of: ${wordsOf(value.of)}`
    case 'table':
      return 'table'
    case 'either':
      return value.of.map(wordsOf).join(', ')
  }
}

/** `src/config/input.ts`: the types of what a TypeScript file may say. */
export function inputTypes(): string {
  const interfaces: string[] = []
  const visit = (name: string, fields: Fields, purpose: string): string => {
    const members = Object.entries(fields).map(([key, field]) => {
      const type = typeOf(field.value, `${name.replace(/File$/, '')}${pascal(key)}`)
      return `  /** ${docstring(field)} */\n  readonly ${camelOf(key)}${field.isRequired ? '' : '?'}: ${type}`
    })
    interfaces.push(`/** ${purpose} */\nexport interface ${name} {\n${members.join('\n')}\n}\n`)
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
        return visit(
          name,
          value.fields,
          `The table \`${name
            .replace(/^(?:Client|Server)/, '')
            .replace(/(.)([A-Z])/g, '$1.$2')
            .toLowerCase()}\`.`,
        )
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
