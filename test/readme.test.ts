// What the documentation shows is true: its programs compile and run, its links lead somewhere.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, relative, resolve } from 'node:path'
import { Glob } from 'bun'
import { readRun } from '../benchmarks/measure/result.ts'
import { WITH_FIGURES, withFigures } from '../benchmarks/report/readme.ts'
import type { TunnelServer } from '../src/index.ts'
import { startServer } from './support/tunnel.ts'

const root = resolve(import.meta.dir, '..')
const pages = [
  ...[...new Glob('*.md').scanSync(root)].sort(),
  ...[...new Glob('docs/**/*.md').scanSync(root)].sort(),
]
const textOf = async (page: string) => Bun.file(join(root, page)).text()
const texts = new Map(await Promise.all(pages.map(async page => [page, await textOf(page)] as const)))

interface Program {
  /** Page and number, for the test's name. */
  readonly name: string
  readonly code: string
  /** Lines that it prints, as its comments say. */
  readonly prints: readonly string[]
  /** Marked `ts no-run`: it is only compiled, because it would change the machine or never end. */
  readonly isRun: boolean
}

const programs: Program[] = [...texts].flatMap(([page, text]) =>
  [...text.matchAll(/^```ts( no-run)?\n([\s\S]*?)^```$/gm)].map(([, mark, code = ''], index) => ({
    name: `${page}, program ${index + 1}`,
    code,
    prints: [...code.matchAll(/(?:^| )\/\/ (.*)$/gm)].map(([, line = '']) => line),
    isRun: mark === undefined,
  })),
)

let folder = ''
/** One for each program: a name that one of them held is not free at once. */
let servers: TunnelServer[]
let app: Bun.Server<undefined>

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'localtunnels-docs-'))
  servers = await Promise.all(programs.map(() => startServer()))
  app = Bun.serve({ port: 0, fetch: () => new Response('an app') })
  // Bun resolves by these paths as well, so that a program imports the package by its name.
  const compilerOptions = {
    paths: {
      localtunnels: [join(root, 'src/index.ts')],
      'localtunnels/client': [join(root, 'src/client.ts')],
      'localtunnels/tls': [join(root, 'src/tls.ts')],
      'localtunnels/test': [join(root, 'src/integrations/test.ts')],
      'localtunnels/bun': [join(root, 'src/integrations/bun.ts')],
    },
    typeRoots: [join(root, 'node_modules/@types')],
    // The rules of the library are not those of its users.
    isolatedDeclarations: false,
    declaration: false,
  }
  await Bun.write(
    join(folder, 'tsconfig.json'),
    JSON.stringify({ extends: join(root, 'tsconfig.json'), compilerOptions, include: ['*.ts'] }),
  )
  await Bun.write(join(folder, 'package.json'), '{"type":"module"}')
  for (const [index, { code }] of programs.entries()) {
    const local = code
      .replaceAll('https://tunnel.example', `http://127.0.0.1:${servers[index]?.port}`)
      .replaceAll('port: 3000', `port: ${app.port}`)
    // `export {}`: a program without imports is a module too, so that two of them may use the same names.
    await Bun.write(join(folder, `${index}.ts`), `${local}\nexport {}\n`)
  }
})

afterAll(async () => {
  await app.stop(true)
  await Promise.all(servers.map(server => server.stop()))
  await rm(folder, { recursive: true })
})

test('every program compiles', async () => {
  expect(programs.length).toBeGreaterThan(0)
  const tsc = Bun.spawn([join(root, 'node_modules/.bin/tsc'), '-p', folder, '--noEmit'], { stdout: 'pipe' })
  expect(await new Response(tsc.stdout).text()).toBe('')
  expect(await tsc.exited).toBe(0)
}, 60_000)

test('no program asks this machine for what it shares on tunnel.example: it could not work as printed', () => {
  const wrong = programs.filter(
    ({ code }) => code.includes('fetch(`http://127.0.0.1') && code.includes('tunnel.example'),
  )
  expect(wrong.map(({ name }) => name)).toEqual([])
})

test('the first program of the README keeps running, and its URL answers', async () => {
  const program = Bun.spawn(['bun', join(folder, '0.ts')], { stdout: 'pipe' })
  try {
    const [url = ''] = await lines(program.stdout, 1)
    const { port, host } = new URL(url)
    // Time for a program that ends to end.
    const ended = await Promise.race([program.exited, Bun.sleep(500)])
    expect(ended).toBeUndefined()
    const answer = await fetch(`http://127.0.0.1:${port}/`, { headers: { host } })
    expect(await answer.text()).toBe('an app')
  } finally {
    program.kill()
    await program.exited
  }
})

for (const [index, { name, prints, isRun }] of programs.entries()) {
  if (!isRun) continue
  test(`${name} runs and prints what it says`, async () => {
    const program = Bun.spawn(['bun', join(folder, `${index}.ts`)], {
      // What they write is not for the project.
      cwd: folder,
      stdout: 'pipe',
      stderr: 'pipe',
      env: { ...process.env, TUNNEL_SERVER: `http://127.0.0.1:${servers[index]?.port}` },
    })
    try {
      const printed = await lines(program.stdout, prints.length)
      expect(printed.map(shapeOf)).toEqual(prints.map(shapeOf))
    } finally {
      program.kill()
      await program.exited
    }
    expect(await new Response(program.stderr).text()).toBe('')
  })
}

/** The first `count` lines, or all that there are. */
async function lines(stream: ReadableStream<Uint8Array>, count: number): Promise<string[]> {
  const decoder = new TextDecoder()
  let text = ''
  if (count === 0) await new Response(stream).text()
  else
    for await (const piece of stream) {
      text += decoder.decode(piece, { stream: true })
      if (text.split('\n').filter(line => line !== '').length >= count && text.endsWith('\n')) break
    }
  return text.split('\n').filter(line => line !== '')
}

/** A line without what differs from run to run: the server's address, generated names, times. */
function shapeOf(line: string): string {
  return line
    .replace(/https?:\/\/([a-z0-9-]+)\.[a-z.]+(:\d+)?/g, (_, name: string) =>
      /^[a-z]+-[a-z]+$/.test(name) ? '<url of a generated name>' : `<url of ${name}>`,
    )
    .replace(/\b\d+(\.\d+)? ?ms\b/g, '<time>')
}

// ── Links ──────────────────────────────────────────────────────────────────────────────────────────────────────

/** The anchor that GitHub gives a heading. */
function anchorOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replace(/\s/g, '-')
}

const withoutCode = (text: string) => text.replace(/^```[\s\S]*?^```$/gm, '')

function anchorsOf(text: string): string[] {
  return [...withoutCode(text).matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => anchorOf(heading))
}

test.each(pages)('every link in %s leads to a file and a heading', async page => {
  const broken: string[] = []
  for (const [, target = ''] of withoutCode(texts.get(page) ?? '').matchAll(/\]\(([^)\s]+)\)/g)) {
    if (/^[a-z]+:/.test(target)) continue
    const [path = '', anchor] = target.split('#')
    const linked = path === '' ? page : relative(root, resolve(root, dirname(page), path))
    const text = texts.get(linked)
    if (text === undefined) {
      const isFolder = [...new Glob(`${linked}/*`).scanSync({ cwd: root, onlyFiles: false })].length > 0
      if (!isFolder && !(await Bun.file(join(root, linked)).exists())) broken.push(target)
    } else if (anchor !== undefined && !anchorsOf(text).includes(anchor)) broken.push(target)
  }
  expect(broken).toEqual([])
})

test.each(pages)('%s has no marks of a merge', page => {
  expect(texts.get(page)).not.toMatch(/^(?:<{7}|={7}|>{7})( |$)/m)
})

/** Files and folders of the project named in running text, such as `src/server/visitor.ts`. */
test.each(pages)('every file named in %s exists', async page => {
  const missing: string[] = []
  for (const [, path = ''] of withoutCode(texts.get(page) ?? '').matchAll(
    /`((?:src|test|docs|benchmarks|bin)\/[\w./-]+)`/g,
  )) {
    const isThere =
      (await Bun.file(join(root, path)).exists()) ||
      [...new Glob(`${path.replace(/\/$/, '')}/*`).scanSync({ cwd: root, onlyFiles: false })].length > 0
    if (!isThere) missing.push(path)
  }
  expect(missing).toEqual([])
})

// ── Architecture ───────────────────────────────────────────────────────────────────────────────────────────────

test('ARCHITECTURE.md has every room of src/ on its floors', () => {
  const floors = (texts.get('ARCHITECTURE.md') ?? '').split('\n## Floors\n')[1]?.split('\n## ')[0] ?? ''
  const rooms = [...new Glob('*').scanSync({ cwd: join(root, 'src'), onlyFiles: false })]
  const wanted = rooms.map(room => (room.endsWith('.ts') ? `\`${room.slice(0, -3)}\`` : `\`${room}/\``))
  expect(wanted.filter(room => !floors.includes(room))).toEqual([])
})

// ── The figures ────────────────────────────────────────────────────────────────────────────────────────────────

test('figures in documents are those of the command line in the result file. LT_WRITE_DOCS=1 writes them', async () => {
  const { version } = JSON.parse(await textOf('package.json')) as { version: string }
  const saved = await readRun(join(root, `benchmarks/results/${version}.json`))
  for (const [page, figures] of Object.entries(WITH_FIGURES)) {
    const text = await textOf(page)
    expect(text).toContain('<!-- figures: begin -->\n')
    const wanted = withFigures(text, saved, figures)
    if (process.env.LT_WRITE_DOCS !== undefined) await Bun.write(join(root, page), wanted)
    else expect(text).toBe(wanted)
  }
})

test('no figure of speed is in the prose of the pages that a visitor reads first: they stand in generated tables', async () => {
  for (const page of ['README.md', 'docs/comparison.md']) {
    const text = await textOf(page)
    const prose = text.replace(/<!-- figures: begin -->[\s\S]*<!-- figures: end -->/, '').split('\n')
    const figures = prose.filter(line =>
      /\d (?:\/s|MB\/s|Gbit\/s|µs)(?!\w)|\d times (?:as|the|faster|slower)/.test(line),
    )
    expect(figures).toEqual([])
  }
})

test('the README is at most 130 lines', () => {
  expect((texts.get('README.md') ?? '').trimEnd().split('\n').length).toBeLessThanOrEqual(130)
})

// ── The two command lines ──────────────────────────────────────────────────────────────────────────────────────

test('the two test commands of the README are what CI runs', async () => {
  const readme = texts.get('README.md') ?? ''
  expect(readme).toMatch(/^npm install --global bun && bun install && bun run check$/m)
  expect(readme).toContain('`bun run check:all`')
  const { scripts } = JSON.parse(await textOf('package.json')) as { scripts: Record<string, string> }
  expect(scripts['check:all']).toStartWith('bun run check && ')
  expect(await textOf('.ci/run')).toContain('\nexec bun run check:all\n')
})

// ── The tour ───────────────────────────────────────────────────────────────────────────────────────────────────

/** File and functions of each item of the tour's lists. */
const steps = [
  ...(texts.get('docs/tour.md') ?? '').matchAll(/^- `(src\/[^`]+)`: ((?:`[^`]+`(?:, )?)+)\./gm),
].map(([, file = '', cell = '']) => ({
  file,
  names: [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name),
}))

/** Lines of a function, method or event handler of that name; undefined when there is none. */
function lengthOf(name: string, source: readonly string[]): number | undefined {
  const begins = new RegExp(
    `^( *)(?:export )?(?:async )?(?:function )?(?:get )?${name}(?:\\(|: \\w+ =>|: \\()`,
  )
  const first = source.findIndex(line => begins.test(line) && !line.endsWith(')'))
  if (first === -1) return undefined
  const [, indent = ''] = begins.exec(source[first] ?? '') ?? []
  const isOneLine = !/[{([]$/.test(source[first] ?? '') && !source[first]?.endsWith('=>')
  if (isOneLine) return 1
  const length = source.slice(first).findIndex(line => line === `${indent}}` || line === `${indent}},`)
  return length === -1 ? 1 : length + 1
}

test('the functions of the tour are there, and short enough to read in one sitting', async () => {
  const missing: string[] = []
  const seen = new Map<string, number>()
  for (const { file, names } of steps) {
    const source = (await textOf(file)).split('\n')
    for (const name of names) {
      const length = lengthOf(name, source)
      if (length === undefined) missing.push(`${file}: ${name}`)
      else seen.set(`${file} ${name}`, length)
    }
  }
  expect(missing).toEqual([])
  expect(seen.size).toBeGreaterThan(30)
  expect([...seen.values()].reduce((sum, length) => sum + length, 0)).toBeLessThan(900)
  if (process.env.LT_VERBOSE) console.log([...seen])
})

// ── Length ─────────────────────────────────────────────────────────────────────────────────────────────────────

test('the documentation stays short enough to read: marks of lists and tables, and bare numbers, are no words', () => {
  const counted = pages.filter(
    page => page === 'README.md' || /^docs\/(?!decisions\/|benchmarks\/)/.test(page),
  )
  const words = counted.flatMap(page =>
    (texts.get(page) ?? '').split(/\s+/).filter(word => /[a-z]/i.test(word)),
  )
  expect(words.length).toBeLessThan(50_300)
})
