// Turns the tables of schema/ into a JSON Schema, for editors that complete and check.

import { camelOf, type Field, type Fields, spellingsOf, type Value } from './field.ts'
import { CLIENT_FIELDS, SERVER_FIELDS } from './schema/fields.ts'

export type Json = string | number | boolean | readonly Json[] | { readonly [key: string]: Json }

/** Returns the schema in draft 7, which all editors know. */
export function jsonSchema(): Json {
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'localtunnels configuration',
    description: 'The configuration file of `localtunnels up` and `localtunnels server --config`.',
    type: 'object',
    anyOf: [{ $ref: '#/definitions/client' }, { $ref: '#/definitions/server' }],
    definitions: {
      client: tableSchema(CLIENT_FIELDS, EXTENSIONS),
      server: tableSchema(SERVER_FIELDS, EXTENSIONS),
      // The value of a variable is only known when the file is read.
      variable: { type: 'string', pattern: '\\$\\{' },
    },
  }
}

/** The top-level keys that nothing reads. */
const EXTENSIONS: readonly (readonly [string, Json])[] = [['^x-', {}]]

function tableSchema(fields: Fields, more: readonly (readonly [string, Json])[] = []): Json {
  const entries = Object.entries(fields)
  const required = entries.filter(([, field]) => field.isRequired).map(([key]) => key)
  const spellings = entries.flatMap(([key, field]) =>
    spellingsOf(key, field)
      .filter(spelling => spelling !== key)
      .map(spelling => [`^${spelling}$`, fieldSchema(field)] as const),
  )
  const others = [...spellings, ...more]
  return {
    type: 'object',
    additionalProperties: false,
    properties: Object.fromEntries(entries.map(([key, field]) => [key, fieldSchema(field)])),
    // Accepted, but not suggested.
    ...(others.length > 0 && { patternProperties: Object.fromEntries(others) }),
    ...(required.length > 0 && required.every(key => key === camelOf(key)) && { required }),
  }
}

function fieldSchema({ value, meaning, default: otherwise }: Field): Json {
  const text = `${meaning}.${otherwise === undefined ? '' : ` Default: ${otherwise}.`}`
  return { description: text.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1'), ...valueSchema(value) }
}

type JsonObject = { readonly [key: string]: Json }

const orVariable = (schema: JsonObject): JsonObject => ({
  anyOf: [schema, { $ref: '#/definitions/variable' }],
})

function valueSchema(value: Value): JsonObject {
  switch (value.type) {
    case 'text':
    case 'path':
    case 'file':
      return { type: 'string' }
    case 'choice':
      return orVariable({ enum: value.choices })
    case 'flag':
      return orVariable({ type: 'boolean' })
    case 'number':
      return orVariable({ type: 'integer', minimum: value.least, maximum: value.most })
    case 'duration':
      return { anyOf: [{ type: 'integer', minimum: value.least }, { type: 'string' }] }
    case 'size':
      return { anyOf: [{ type: 'integer', minimum: value.least }, { type: 'string' }] }
    case 'port-range':
    case 'ports':
    case 'target':
      return { anyOf: [{ type: 'integer', minimum: 1, maximum: 65_535 }, { type: 'string' }] }
    case 'list': {
      const items = valueSchema(value.of)
      return { anyOf: [{ type: 'array', minItems: 1, items }, items] }
    }
    case 'map':
      return { type: 'object', additionalProperties: valueSchema(value.of) }
    case 'table':
      // Always an object, as tableSchema returns it.
      return tableSchema(value.fields) as JsonObject
    case 'either':
      return { anyOf: value.of.map(valueSchema) }
  }
}
