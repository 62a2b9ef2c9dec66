// Requests made from an OpenAPI document, and broken in all the ways that it allows.

import type { Random } from './random.ts'

type Schema = {
  readonly type?: string
  readonly enum?: readonly string[]
  readonly properties?: Record<string, Schema>
  readonly items?: Schema
  readonly $ref?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly format?: string
}
type Parameter = { readonly name: string; readonly in: string; readonly schema: Schema }
interface Described {
  readonly parameters?: readonly Parameter[]
  readonly requestBody?: { readonly content: Record<string, { readonly schema: Schema }> }
}

export interface OddRequest {
  /** The operation that it was made for, as `GET /exchanges/{id}`. */
  readonly operation: string
  /** Path and query. */
  readonly target: string
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | undefined
}

const ODD = [
  '',
  '0',
  '-1',
  '1e9',
  'NaN',
  '999999999999999999999',
  '%00',
  '%ff',
  '..',
  '../..',
  'app',
  '127.0.0.1',
  '::1/0',
  '0.0.0.0/0x',
  '"',
  '\u0000',
  'é',
  'x'.repeat(5_000),
  '{}',
  'null',
  'constructor',
  '__proto__',
  '2026-01-01',
  '1',
  '2',
]

export class OddRequests {
  readonly #random: Random
  readonly #words: readonly string[]
  readonly #schemas: Readonly<Record<string, Schema>>
  readonly #operations: readonly { path: string; method: string; described: Described }[]

  /** `words`: what fits where a text is wanted. */
  constructor(document: object, random: Random, words: readonly string[]) {
    // An OpenAPI document of ours.
    const { paths, components } = document as {
      readonly paths: Record<string, Record<string, Described>>
      readonly components: { readonly schemas: Record<string, Schema> }
    }
    this.#random = random
    this.#words = [...words, ...ODD]
    this.#schemas = components.schemas
    this.#operations = Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, described]) => ({
        path,
        method: method.toUpperCase(),
        described,
      })),
    )
  }

  /** How many operations there are. */
  get count(): number {
    return this.#operations.length
  }

  next(): OddRequest {
    const random = this.#random
    const { path, method, described } = random.pick(this.#operations)
    const query = new URLSearchParams()
    let target = path
    for (const { name, in: place, schema } of described.parameters ?? []) {
      const value = String(this.#exampleOf(schema))
      if (place === 'path')
        target = target.replace(`{${name}}`, () =>
          random.chance(0.7) ? encodeURIComponent(value) : value.replace(/[^!-~]|[?#]/g, ''),
        )
      else if (random.chance(0.8)) query.append(name, value)
    }
    const schema = described.requestBody?.content['application/json']?.schema
    const body =
      schema === undefined
        ? undefined
        : random.chance(0.9)
          ? JSON.stringify(this.#exampleOf(schema))
          : random.pick(ODD)
    const sent = random.chance(0.95)
      ? method
      : random.pick(['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'])
    return {
      operation: `${method} ${path}`,
      target: `${target}?${query.toString()}`,
      method: sent,
      headers: { 'content-type': random.chance(0.9) ? 'application/json' : 'text/plain' },
      body: sent === 'GET' ? undefined : body,
    }
  }

  #exampleOf(schema: Schema): unknown {
    const random = this.#random
    if (random.chance(0.25))
      return random.pick<unknown>([...ODD, 0, -1, 1.5, 1e300, true, null, [], {}, [[]], { a: 1 }])
    if (schema.$ref !== undefined)
      return this.#exampleOf(this.#schemas[schema.$ref.split('/').pop() ?? ''] ?? {})
    if (schema.enum !== undefined) return random.pick(schema.enum)
    switch (schema.type) {
      case 'integer': {
        const least = schema.minimum ?? 0
        return least + random.below(Math.min((schema.maximum ?? 10) - least, 1_000))
      }
      case 'boolean':
        return random.chance(0.5)
      case 'array':
        return Array.from({ length: random.below(3) }, () => this.#exampleOf(schema.items ?? {}))
      case 'object':
        return Object.fromEntries(
          Object.entries(schema.properties ?? {})
            .filter(() => random.chance(0.8))
            .map(([name, inner]) => [name, this.#exampleOf(inner)]),
        )
      default:
        return random.pick(this.#words)
    }
  }
}
