// Requests made from the OpenAPI document, and broken in all the ways that it allows: none of them gets a 5xx.

import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { OPEN_API } from '../../../src/server/admin/open-api.ts'
import { addToken } from '../../../src/server/kept-tokens.ts'
import { SqliteOperations } from '../../../src/stores/sqlite-operations.ts'
import { SqliteTokens } from '../../../src/stores/sqlite-tokens.ts'
import { ADMIN_TOKEN, adminOptions } from '../../support/admin.ts'
import { folder } from '../../support/programs.ts'
import { Random } from '../../support/random.ts'
import { startTunnel } from '../../support/tunnel.ts'

const ROUNDS = 1_500

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

const { paths, components } = OPEN_API as unknown as {
  readonly paths: Record<string, Record<string, Described>>
  readonly components: { readonly schemas: Record<string, Schema> }
}
const operations = Object.entries(paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, described]) => ({ path, method: method.toUpperCase(), described })),
)

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
  '2026-01-01',
  '1',
  '2',
]

test('no request that the schema describes, or nearly describes, gets a 5xx', async () => {
  const numbers = new Random(20_261_123)
  const random = () => numbers.bits() / 0x1_0000_0000
  const pick = <Value>(values: readonly Value[]): Value => values[Math.floor(random() * values.length)]!
  const exampleOf = (schema: Schema, depth = 0): unknown => {
    if (random() < 0.25) return pick<unknown>([...ODD, 0, -1, 1.5, 1e300, true, null, [], {}, [[]], { a: 1 }])
    if (schema.$ref !== undefined)
      return exampleOf(components.schemas[schema.$ref.split('/').pop() ?? ''] ?? {}, depth)
    if (schema.enum !== undefined) return pick(schema.enum)
    switch (schema.type) {
      case 'integer':
        return Math.floor(
          (schema.minimum ?? 0) + random() * Math.min((schema.maximum ?? 10) - (schema.minimum ?? 0), 1_000),
        )
      case 'array':
        return Array.from({ length: pick([0, 1, 2]) }, () => exampleOf(schema.items ?? {}, depth + 1))
      case 'object':
        return Object.fromEntries(
          Object.entries(schema.properties ?? {})
            .filter(() => random() < 0.8)
            .map(([name, inner]) => [name, exampleOf(inner, depth + 1)]),
        )
      default:
        return pick(['app', 'x', '192.0.2.1', '192.0.2.0/24', 'fe80::1', '2026-01-31T12:00:00Z', ...ODD])
    }
  }
  const store = new SqliteOperations(':memory:')
  await using dir = await folder('tokens')
  const tokens = new SqliteTokens(join(dir.path, 'tokens.db'))
  for (const name of ['app', 'x', '0', '1', '2', '127.0.0.1', '2026-01-01', 'NaN'])
    addToken(tokens, { name, forMs: undefined, scope: {} })
  const upgrade = { isSuccessor: false, run: () => Promise.resolve(1) }
  const admin = adminOptions({ store, audit: store, tokens, upgrade })
  await using tunnel = await startTunnel({ fetch: () => new Response('hello') }, { server: { admin } })
  const faults: string[] = []
  tunnel.server.on('error', error => faults.push(error.message))
  const seen = new Map<string, Set<number>>()
  for (let round = 0; round < ROUNDS; round++) {
    const { path, method, described } = pick(operations)
    const query = new URLSearchParams()
    let target = path
    for (const { name, in: place, schema } of described.parameters ?? []) {
      const value = String(exampleOf(schema))
      if (place === 'path')
        target = target.replace(
          `{${name}}`,
          random() < 0.7 ? encodeURIComponent(value) : value.replace(/[^!-~]|[?#]/g, ''),
        )
      else if (random() < 0.8) query.append(name, value)
    }
    const schema = described.requestBody?.content['application/json']?.schema
    const isJson = random() < 0.9
    const body = schema === undefined ? undefined : isJson ? JSON.stringify(exampleOf(schema)) : pick(ODD)
    const sent = random() < 0.95 ? method : pick(['GET', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'])
    const answer = await fetch(`${tunnel.server.adminUrl}/api/v1${target}?${query.toString()}`, {
      method: sent,
      headers: {
        authorization: `Bearer ${ADMIN_TOKEN}`,
        'content-type': random() < 0.9 ? 'application/json' : 'text/plain',
      },
      ...(body !== undefined && sent !== 'GET' && { body }),
    })
    const text = await answer.text()
    if (answer.status >= 500)
      throw new Error(`${sent} ${target}?${query.toString()} ${body ?? ''}: ${answer.status} ${text}`)
    if (answer.headers.get('content-type') === 'application/json') JSON.parse(text)
    const statuses = seen.get(`${method} ${path}`) ?? new Set()
    seen.set(`${method} ${path}`, statuses.add(answer.status))
  }
  expect(faults).toEqual([])
  // The fuzz reached every operation, and most of them in good order, too.
  expect(seen.size).toBe(operations.length)
  const good = [...seen.values()].filter(statuses => statuses.has(200) || statuses.has(201))
  expect(good.length).toBeGreaterThan(operations.length - 4)
}, 30_000)
