// The lists of the documentation are those of the code. LT_WRITE_DOCS=1 writes them anew.

import { expect, test } from 'bun:test'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ERRORS } from '../src/errors.ts'

const entries = Object.entries(ERRORS).sort(([, first], [, second]) => first.wire - second.wire)

/** Headings, because messages of a release lead to them. Long cells are hard to read on a phone: the table has short ones. */
const errorTable = [
  '|Code|HTTP|Whose fault|Retry|Number|\n|---|---|---|---|---|',
  ...entries.map(
    ([code, { status, fault, retryable, wire }]) =>
      `|[\`${code}\`](#${code.toLowerCase()})|${status}|${fault === 'origin' ? 'app' : fault}|${retryable ? 'yes' : 'no'}|${wire}|`,
  ),
  '',
].join('\n')

const errorTexts = entries.map(([code, { status, meaning, action }]) =>
  `### \`${code}\`\nHTTP ${status}. ${meaning} ${action}\n`.replaceAll('<', '&lt;'),
)

for (const [name, path, table] of [['errors', 'docs/errors.md', [errorTable, ...errorTexts]]] as const) {
  test(`${path} lists the ${name} of the code`, async () => {
    const file = Bun.file(new URL(`../${path}`, import.meta.url))
    const text = await file.text()
    const begin = `<!-- ${name}: begin -->\n`
    const end = `<!-- ${name}: end -->`
    const [before, rest] = text.split(begin)
    const [written, after] = rest?.split(end) ?? []
    if (before === undefined || written === undefined || after === undefined)
      throw new Error('the marks are missing')
    const wanted = `\n${table.join('\n')}\n`
    if (process.env.LT_WRITE_DOCS !== undefined) await file.write(`${before}${begin}${wanted}${end}${after}`)
    else expect(written).toBe(wanted)
  })
}

test('wire numbers are unique, not 0, and fit 16 bits', () => {
  const numbers = entries.map(([, { wire }]) => wire)
  expect(new Set(numbers).size).toBe(numbers.length)
  expect(Math.min(...numbers)).toBeGreaterThan(0)
  expect(Math.max(...numbers)).toBeLessThan(65_536)
})

test('each decision has a number of its own, and its line in the index, in order', async () => {
  const folder = join(import.meta.dir, '../docs/decisions')
  const files = (await readdir(folder)).filter(name => name !== 'README.md').toSorted()
  const index = await readFile(join(folder, 'README.md'), 'utf8')
  const rows = [...index.matchAll(/^\| \[(\d{3})\]\((.+?)\)/gm)]
  expect(rows.map(([, , file]) => file)).toEqual(files)
  expect(rows.map(([, number, file]) => file?.startsWith(`${number}-`))).toEqual(files.map(() => true))
  expect(new Set(rows.map(([, number]) => number)).size).toBe(files.length)
})

test('in blocks of commands a comment has a line of its own: behind a command it wraps badly on a phone', async () => {
  const root = join(import.meta.dir, '..')
  const found: string[] = []
  for await (const name of new Bun.Glob('{*.md,docs/*.md,docs/start/*.md,examples/*/README.md}').scan(root)) {
    const text = await readFile(join(root, name), 'utf8')
    for (const [, block = ''] of text.matchAll(/^```sh\n([\s\S]*?)^```$/gm))
      for (const line of block.split('\n')) if (/\S\s+# /.test(line)) found.push(`${name}: ${line}`)
  }
  expect(found).toEqual([])
})
