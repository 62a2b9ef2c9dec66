// The lists of the documentation are those of the code. LT_WRITE_DOCS=1 writes them anew.

import { expect, test } from 'bun:test'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isSecretFlag } from '../src/cli/service-words.ts'
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

const errorTexts = entries.map(([code, { meaning, action, operator }]) =>
  `### \`${code}\`\n${meaning} ${action}${operator === undefined ? '' : ` For operators: ${operator[0]?.toLowerCase()}${operator.slice(1)}`}\n`.replaceAll(
    '<',
    '&lt;',
  ),
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

/** What people copy: documentation, packages and examples, with continued lines as one. */
async function examples(): Promise<readonly (readonly [name: string, line: string])[]> {
  const root = join(import.meta.dir, '..')
  const found: [string, string][] = []
  const globs = ['*.md', 'docs/**/*.md', 'packaging/**', 'examples/**'].map(one => new Bun.Glob(one))
  const names = await Promise.all(globs.map(glob => Array.fromAsync(glob.scan(root))))
  for (const name of names.flat()) {
    // A decision tells what was, and so does the list of changes.
    if (/decisions|CHANGELOG|node_modules|vitepress/.test(name)) continue
    const text = (await readFile(join(root, name), 'utf8')).replaceAll('\\\n', ' ')
    found.push(...text.split('\n').map((line): [string, string] => [name, line]))
  }
  return found
}

test('no example gives a secret as a word of a command: every user of the machine sees those', async () => {
  const found: string[] = []
  for (const [name, line] of await examples()) {
    for (const [, flag = '', value = ''] of line.matchAll(/(--[a-z][a-z-]*)[ =]([^\s`]+)/g)) {
      // `--token <token>` of a list of flags names no value; an address is a secret when it has a password.
      const isValue = !/^(?:<|--|\|)/.test(value)
      const isSecret = /^--(?:proxy|cluster|url)$/.test(flag) ? value.includes('@') : isSecretFlag(flag)
      if (isSecret && isValue) found.push(`${name}: ${line.trim()}`)
    }
  }
  expect(found).toEqual([])
})

test('no example runs or installs a package by a name that the registry may give to anyone', async () => {
  const runs =
    /\b(?:npx|bunx|pnpm dlx|yarn dlx)(?: -\S+)* localtunnels\b|\b(?:npm|bun|pnpm|yarn) (?:install|add|i|exec)\b[^|&;`]* localtunnels(?![-.\w/])/
  const found = (await examples())
    // `bunx` behind `bun add` of the file, measured; and what each way of a start reads.
    .filter(([name, line]) => runs.test(line) && name !== 'docs/security.md')
    .map(([name, line]) => `${name}: ${line.trim()}`)
  expect(found).toEqual([])
})

for (const [name, page] of [
  ['README.md', 'README.md'],
  ['docs/start/server.md', 'docs/webhooks.md'],
] as const)
  test(`the server of ${name} has what the file in ${page} asks for`, async () => {
    const of = async (path: string) => readFile(join(import.meta.dir, '..', path), 'utf8')
    expect(await of(page)).toContain('\ninbox = ')
    const server = (await of(name)).replaceAll('\\\n', ' ')
    expect(/^localtunnels server .*$/m.exec(server)?.[0]).toContain('--inbox ')
  })
