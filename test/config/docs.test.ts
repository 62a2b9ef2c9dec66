// docs/configuration.md and the editors' schema are those of the tables. LT_WRITE_DOCS=1 writes them anew.

import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { limitMeanings } from '../support/limit-meanings.ts'

const root = join(import.meta.dir, '../..')
const isWriting = process.env.LT_WRITE_DOCS !== undefined
const meanings = Bun.file(join(root, 'src/config/schema/limit-meanings.ts'))
// Before the tables that have them are loaded.
if (isWriting) await meanings.write(await limitMeanings())
const { jsonSchema } = await import('../../src/config/json-schema.ts')
const { docTables } = await import('../support/config-tables.ts')

test('the meanings of limits are the beginnings of their docstrings', async () => {
  expect(await meanings.text()).toBe(await limitMeanings())
})

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
