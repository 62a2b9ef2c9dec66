// The words of JSON Schema in which the documents of the HTTP APIs are written.

export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json }
type Properties = Readonly<Record<string, Json>>

export const text: Json = { type: 'string' }
export const time: Json = { type: 'string', format: 'date-time' }
export const count: Json = { type: 'integer', minimum: 0 }
export const flag: Json = { type: 'boolean' }
export const ref = (name: string): Json => ({ $ref: `#/components/schemas/${name}` })
export const list = (items: Json): { readonly [key: string]: Json } => ({ type: 'array', items })
export const oneOf = (...values: string[]): Json => ({ type: 'string', enum: values })

/** Properties of the same schema: their names, with a space between. */
export const each = (schema: Json, names: string): Properties =>
  Object.fromEntries(names.split(' ').map(name => [name, schema]))

/** An object. A property whose name ends in `?` may be left out. */
export function record(properties: Properties): Json {
  const all = Object.entries(properties)
  return {
    type: 'object',
    properties: Object.fromEntries(all.map(([name, schema]) => [name.replace('?', ''), schema])),
    required: all.flatMap(([name]) => (name.endsWith('?') ? [] : [name])),
  }
}

/** The content of a request or a response. */
export const content = (schema: Json): Json => ({ 'application/json': { schema } })
