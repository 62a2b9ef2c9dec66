// docs/configuration.md and the editors' schema are those of the tables. LT_WRITE_DOCS=1 writes them anew.

import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { DEFAULT_CLIENT_LIMITS } from '../../src/client/limits.ts'
import { jsonSchema } from '../../src/config/json-schema.ts'
import { parseDuration, parseSize } from '../../src/config/quantity.ts'
import { CLIENT_FIELDS, SERVER_FIELDS } from '../../src/config/schema/fields.ts'
import { DEFAULT_LIMITS } from '../../src/server/settings/options.ts'
import { docTables, tableIn } from '../support/config-tables.ts'
import { limitMeanings } from '../support/limit-meanings.ts'

const root = join(import.meta.dir, '../..')
const isWriting = process.env.LT_WRITE_DOCS !== undefined

test.each([
  ['client', CLIENT_FIELDS, DEFAULT_CLIENT_LIMITS],
  ['server', SERVER_FIELDS, DEFAULT_LIMITS],
] as const)(
  'the limits of a %s have the beginnings of their docstrings, and their defaults',
  async (end, fields, defaults) => {
    const limits = Object.values((fields.limits && tableIn(fields.limits.value)) ?? {})
    const meanings = Object.fromEntries(limits.map(({ option = '', meaning }) => [option, meaning]))
    expect(meanings).toEqual((await limitMeanings())[end])
    const shown = limits.map(one => [one.option ?? '', String(one.default).replaceAll('`', '')] as const)
    const amount = ([option, text]: readonly [string, string]) =>
      option.endsWith('Ms') ? parseDuration(text) : option.endsWith('Bytes') ? parseSize(text) : Number(text)
    expect(Object.fromEntries(shown.map(one => [one[0], amount(one)]))).toEqual({ ...defaults })
  },
)

test('every key says what it means', () => {
  const silent = [...docTables().values()].flat().filter(row => row.endsWith(': '))
  expect(silent).toEqual([])
})

for (const [name, table] of docTables()) {
  test(`docs/configuration.md lists the keys of ${name}`, async () => {
    const page = Bun.file(join(root, 'docs/configuration.md'))
    const text = await page.text()
    const begin = `<!-- ${name}: begin -->\n`
    const end = `<!-- ${name}: end -->`
    const [before, rest] = text.split(begin)
    const [written, after] = rest?.split(end) ?? []
    if (before === undefined || written === undefined || after === undefined)
      throw new Error(`${name}: no marks`)
    const wanted = `${table.join('\n')}\n`
    if (isWriting) await page.write(`${before}${begin}${wanted}${end}${after}`)
    else expect(written).toBe(wanted)
  })
}

test('docs/localtunnels.schema.json is that of the tables', async () => {
  const file = Bun.file(join(root, 'docs/localtunnels.schema.json'))
  const wanted = `${JSON.stringify(jsonSchema(), null, 2)}\n`
  if (isWriting) await file.write(wanted)
  else expect(await file.text()).toBe(wanted)
})
