// The types of configuration files for the package. Each key has its meaning as a comment, which editors show; the types that are
// inferred from the rows have no comments.

import { camelOf, type Field, type Fields, type Value } from '../src/config/field.ts'
import { CLIENT_FIELDS, SERVER_FIELDS } from '../src/config/schema/fields.ts'

/** The declaration of `src/config/input.ts`. */
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
  return interfaces.join('\n')
}

const pascal = (key: string) => camelOf(`-${key}`)

function docstring({ meaning, default: otherwise }: Field): string {
  const text = `${meaning}.${otherwise === undefined ? '' : ` Default: ${otherwise}.`}`
  return text.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1').replaceAll('*/', '*\\/')
}
