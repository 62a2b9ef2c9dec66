// What it takes to know the code: files, the largest of them, classes with many fields, and what one request runs through.
//
//   bun tools/house.ts [DIR]     DIR: another checkout with its packages installed, to compare with (default: this one)
//
// The path of a request is measured: a server, a client and an app run in one process, in which one GET is answered, and then
// the same with two GETs more. A line is on the path when it ran more often. Lines of the accelerator's thread are not seen.

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { $, Glob } from 'bun'

const root = resolve(process.argv[2] ?? join(import.meta.dir, '..'))

interface Source {
  readonly file: string
  readonly lines: number
  /** Name and number of fields of each class. */
  readonly classes: readonly (readonly [name: string, fields: number])[]
}

const CLASS = /^(?:export )?(?:default )?(?:abstract )?class (\w+)[\s\S]*?^\}/gm
/** Of instances. Sources are formatted, so a member of a class begins behind two spaces. */
const FIELD = /^ {2}(?:(?:readonly|declare|override|public|private|protected) )*#?\w+[!?]?(?::|;| =)/gm

async function sourceOf(file: string): Promise<Source> {
  const text = await Bun.file(join(root, file)).text()
  const classes = [...text.matchAll(CLASS)].map(
    ([body, name = '']) => [name, body.match(FIELD)?.length ?? 0] as const,
  )
  return { file, lines: text.split('\n').length - 1, classes }
}

/** How often each line ran while `requests` GETs were answered, by `file:line`. */
async function runs(requests: number, options: string): Promise<Map<string, number>> {
  const folder = mkdtempSync(join(tmpdir(), 'house-'))
  try {
    const program = join(folder, 'request.test.ts')
    await Bun.write(
      program,
      `import { test } from 'bun:test'
       import { createServer } from 'node:http'
       import { TunnelClient, TunnelServer } from ${JSON.stringify(join(root, 'src/index.ts'))}
       test('requests', async () => {
         const app = createServer((_, answer) => answer.end('hello'))
         await new Promise(done => app.listen(0, '127.0.0.1', done))
         const server = new TunnelServer({ port: 0, host: '127.0.0.1', ${options} })
         await server.start()
         const client = new TunnelClient({ port: app.address().port, host: 'localhost', server: 'http://localhost:' + server.port, subdomain: 'house' })
         await client.connect()
         const url = 'http://127.0.0.1:' + server.port + '/'
         for (let i = 0; i < ${requests}; i++) {
           const answer = await fetch(url, { headers: { Host: 'house.localhost' } })
           if ((await answer.text()) !== 'hello') throw new Error('wrong answer ' + answer.status)
         }
         await client.disconnect()
         await server.stop()
         app.close()
       }, 20_000)`,
    )
    await $`bun test ${program} --coverage --coverage-reporter=lcov --coverage-dir=${folder}`
      .cwd(root)
      .env({ ...process.env, LOCALTUNNELS_SPLICE: '0' })
      .quiet()
    const counts = new Map<string, number>()
    let file = ''
    for (const line of (await Bun.file(join(folder, 'lcov.info')).text()).split('\n')) {
      if (line.startsWith('SF:')) file = line.slice(3)
      const [, number, count] = /^DA:(\d+),(\d+)/.exec(line) ?? []
      if (number !== undefined && file.startsWith('src/')) counts.set(`${file}:${number}`, Number(count))
    }
    return counts
  } finally {
    rmSync(folder, { recursive: true })
  }
}

/** Lines of each file that run for every request. */
async function path(): Promise<Map<string, number>> {
  const [once, thrice] = [await runs(1, ''), await runs(3, '')]
  const found = new Map<string, number>()
  for (const [place, count] of thrice) {
    if (count < (once.get(place) ?? 0) + 2) continue
    const file = place.slice(0, place.lastIndexOf(':'))
    found.set(file, (found.get(file) ?? 0) + 1)
  }
  return found
}

const sources = await Promise.all(
  [...new Glob('{src,bin}/**/*.{ts,tsx}').scanSync(root)].toSorted().map(sourceOf),
)
const total = (numbers: Iterable<number>): number => [...numbers].reduce((sum, number) => sum + number, 0)
const classes = sources.flatMap(source =>
  source.classes.map(([name, fields]) => ({ name, fields, file: source.file })),
)
const long = sources.filter(({ lines }) => lines > 400).toSorted((a, b) => b.lines - a.lines)
const full = classes.filter(({ fields }) => fields > 14).toSorted((a, b) => b.fields - a.fields)
const onPath = await path()

console.log(
  `files ${sources.length}, lines ${total(sources.map(({ lines }) => lines))}, classes ${classes.length}`,
)
console.log(`above 400 lines: ${long.length}`)
for (const { file, lines } of long) console.log(`  ${lines} ${file}`)
console.log(`classes with more than 14 fields: ${full.length}`)
for (const { name, fields, file } of full) console.log(`  ${fields} ${name} (${file})`)
console.log(
  `one GET, both ends, without the accelerator: ${onPath.size} files, ${total(onPath.values())} lines that run`,
)
for (const [file, lines] of [...onPath].toSorted(([, a], [, b]) => b - a)) console.log(`  ${lines} ${file}`)
