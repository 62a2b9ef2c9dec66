// The package as its users get it: packed as for a release, installed into empty folders with npm and with bun, run on Bun and on Node.

import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdir, mkdtemp, realpath, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { COMMANDS } from '../src/cli/words.ts'
import { ERRORS } from '../src/errors.ts'
import { VERSION } from '../src/version.ts'
import { buildPage } from '../tools/pages.ts'
import { Running } from './cli/bin.ts'
import { expectThreadsToMove } from './support/downloads.ts'
import { ADDRESS, copySources, PAGES, release } from './support/released.ts'

// Installing asks a registry.
setDefaultTimeout(120_000)

const root = resolve(import.meta.dir, '..')
let folder = ''
let tarball = ''
const installed = { npm: '', bun: '' }

interface Outcome {
  readonly exitCode: number
  readonly output: string
}

async function run(
  cmd: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string>> = {},
): Promise<Outcome> {
  const { PATH = '', HOME = '' } = process.env
  const child = Bun.spawn({
    cmd: [...cmd],
    cwd,
    env: { PATH, HOME, ...env },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()])
  return { exitCode: await child.exited, output: (stdout + stderr).trim() }
}

/** Runs, and shows what was said when it did not go well. */
async function succeed(cmd: readonly string[], cwd: string): Promise<string> {
  const { exitCode, output } = await run(cmd, cwd)
  if (exitCode !== 0) throw new Error(`${cmd.join(' ')}: exit ${exitCode}\n${output}`)
  return output
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'localtunnels-package-'))
  const sources = join(folder, 'sources')
  await release(sources)
  // As it is published. Runs the build first.
  await succeed(['npm', 'pack', '--pack-destination', folder], sources)
  tarball = join(folder, `localtunnels-${VERSION}.tgz`)
  for (const tool of ['npm', 'bun'] as const) {
    installed[tool] = join(folder, tool)
    await Bun.write(
      join(installed[tool], 'package.json'),
      JSON.stringify({ name: 'empty', private: true, type: 'module' }),
    )
  }
  await Promise.all([
    succeed(['npm', 'install', '--no-audit', '--no-fund', '--prefer-offline', tarball], installed.npm),
    succeed(['bun', 'add', tarball], installed.bun),
  ])
}, 120_000)
afterAll(async () => {
  await rm(folder, { recursive: true, force: true })
})

// ── What is in it ────────────────────────────────────────────────────────────────────────────────────────────────

test('it holds what runs and what explains it, and nothing else', async () => {
  const files = (await succeed(['tar', '-tzf', tarball], folder)).split('\n').map(path => path.split('/')[1])
  const top = [...new Set(files)]
  const pages = ['ARCHITECTURE.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'README.md', 'SECURITY.md']
  expect([...pages, 'LICENSE', 'dist', 'docs', 'package.json', 'packaging']).toEqual(
    expect.arrayContaining(top),
  )
  expect(top).toEqual(expect.arrayContaining(['LICENSE', 'dist', 'package.json']))
})

test('it is small: 1.1 MB to fetch, 9.1 MB on the disk with everything it needs', async () => {
  expect(Bun.file(tarball).size).toBeLessThan(1_100_000)
  const [kilobytes = ''] = (await succeed(['du', '-sk', 'node_modules'], installed.npm)).split('\t')
  expect(Number(kilobytes)).toBeLessThan(9_100)
})

test('node --enable-source-maps names the line of the source that throws', async () => {
  const program = join(installed.npm, 'mistake.mjs')
  await Bun.write(program, "import { TunnelClient } from 'localtunnels'\nnew TunnelClient({ prot: 1 })\n")
  const { output } = await run(['node', '--enable-source-maps', program], installed.npm)
  const [, line = ''] = /src\/option-names\.ts:(\d+)/.exec(output) ?? []
  const source = await Bun.file(join(import.meta.dir, '../src/option-names.ts')).text()
  expect(source.split('\n')[Number(line) - 1]).toContain("throw new TunnelError('OPTION_INVALID', [what")
})

/** The files of the package, by their paths in it. */
const packed = async () =>
  new Set(
    (await succeed(['tar', '-tzf', tarball], folder)).split('\n').map(name => name.replace('package/', '')),
  )

test('its code can be read: no line has more than 400 characters, and files say what is in them', async () => {
  const home = join(installed.npm, 'node_modules/localtunnels')
  const code = [...(await packed())].filter(name => name.endsWith('.js'))
  expect(code.length).toBeGreaterThan(100)
  // Data: the pages for browsers, which are compressed, and the style and the mark of the pages for visitors.
  const isData = (line: string) => /^\s*(?:':root\{color-scheme:|icon: 'data:)/.test(line)
  for (const name of code.filter(one => one !== 'dist/src/http-built-page.js')) {
    const lines = (await Bun.file(join(home, name)).text()).split('\n')
    expect([name, lines.filter(line => line.length > 400 && !isData(line))]).toEqual([name, []])
  }
  expect(code).toEqual(expect.arrayContaining(['dist/src/errors.js', 'dist/src/cli-main.js']))
  expect(code.filter(name => /\/[0-9a-z]{1,2}\.js$/.test(name))).toEqual([])
})

test.each([
  [
    "connectTunnel({ server: 'http://localhost:1', port: 3000 })",
    'SERVER_UNREACHABLE',
    /could not be reached|cannot be reached|refused|nothing/i,
  ],
  ['new TunnelClient({ port: 99999 })', 'OPTION_INVALID', /99999/],
])(
  'on Node, %s that nobody catches shows its message within the first lines',
  async (program, code, words) => {
    const file = join(installed.npm, 'uncaught.mjs')
    await Bun.write(file, `import { connectTunnel, TunnelClient } from 'localtunnels'\nawait ${program}\n`)
    const { exitCode, output } = await run(['node', file], installed.npm)
    expect(exitCode).toBe(1)
    const message = output.split('\n').findIndex(line => line.startsWith('TunnelError') && words.test(line))
    expect([output, message >= 0 && message < 8]).toEqual([expect.stringContaining(code), true])
    expect(output.length).toBeLessThan(2_500)
  },
)

test('every path that help or a page of it names is in the package', async () => {
  const files = await packed()
  const isThere = (path: string) =>
    files.has(path) || [...files].some(file => file.startsWith(`${path.replace(/\/$/, '')}/`))
  const bin = join(root, 'bin/localtunnels.ts')
  const commands = [[], ...COMMANDS.filter(one => one !== 'help').map(one => [one])]
  const help = await Promise.all(commands.map(command => succeed([bin, ...command, '--help'], folder)))
  const pages = [...files].filter(name => name.startsWith('docs/') && name.endsWith('.md'))
  const texts = [
    ...help.map(text => ['', text.replace(/\n +/g, ' ').replaceAll(`${root}/`, '')] as const),
    ...(await Promise.all(pages.map(async page => [page, await Bun.file(join(root, page)).text()] as const))),
  ]
  const missing = new Set<string>()
  let named = 0
  for (const [page, text] of texts) {
    for (const [path] of text.matchAll(/(?<![\w./-])(?:docs|packaging)\/[\w./-]*\w/g)) {
      named++
      if (!isThere(path) && !isOfRepository(path)) missing.add(`${page} ${path}`)
    }
    for (const [, link = ''] of text.matchAll(/\]\(([^)#\s:]+)(?:#[^)]*)?\)/g)) {
      named++
      const path = join(dirname(page), link)
      if (!isThere(path) && !isOfRepository(path)) missing.add(`${page} ${link}`)
    }
  }
  expect([...missing]).toEqual([])
  expect(named).toBeGreaterThan(200)
})

/** What only contributors read: how it was decided, measured and tested; and pictures. */
function isOfRepository(path: string): boolean {
  return /^(?:docs\/(?:benchmarks|charts|decisions|images|security)|src|test|tools|benchmarks|examples|ARCHITECTURE\.md|CONTRIBUTING\.md|SECURITY\.md)(?:\/|$)/.test(
    path,
  )
}

test('npm install --global links the manual, and man finds it', async () => {
  const prefix = join(folder, 'global')
  await succeed(
    [
      'npm',
      'install',
      '--global',
      '--prefix',
      prefix,
      '--no-audit',
      '--no-fund',
      '--prefer-offline',
      tarball,
    ],
    folder,
  )
  const page = join(prefix, 'share/man/man1/localtunnels.1')
  const text = await Bun.file(page).text()
  expect(text).toStartWith('.TH LOCALTUNNELS 1')
  expect(text).toContain('.SS "doctor')
  // Where no locale is set man has no other characters, and warns.
  expect(text.match(/[^\0-~]/g) ?? []).toEqual([])
  if (Bun.which('man') === null) return
  const { output } = await run(['man', '-w', 'localtunnels'], folder, { MANPATH: join(prefix, 'share/man') })
  expect(output).toBe(await realpath(page))
  const manual = await run(['man', '-P', 'cat', 'lt'], folder, { MANPATH: join(prefix, 'share/man') })
  expect(manual.output).toStartWith('LOCALTUNNELS(1)')
})

test('it says where its repository is, and its messages lead to the pages of that', async () => {
  const manifest = await Bun.file(join(installed.npm, 'node_modules/localtunnels/package.json')).json()
  expect(manifest).toMatchObject({
    repository: { type: 'git', url: `git+${ADDRESS}.git` },
    homepage: `${ADDRESS}#readme`,
    bugs: { url: `${ADDRESS}/issues` },
  })
  const bin = join(installed.npm, 'node_modules/.bin/localtunnels')
  expect(await succeed([bin, '--help'], installed.npm)).toContain(`\nDocumentation: ${PAGES}`)
  expect(await succeed([bin, 'mcp', '--help'], installed.npm)).toContain(`${PAGES}/agents.md`)
  const { output } = await run([bin, 'config', 'check', '/dev/null/none.toml'], installed.npm)
  expect(output).toContain(`${PAGES}/configuration.md`)
  expect(output).toEndWith(`\n  ${PAGES}/errors.md#config_invalid`)
  // Whatever code a message has: the page has it as a heading.
  const page = await Bun.file(join(root, 'docs/errors.md')).text()
  for (const code of Object.keys(ERRORS)) expect(page).toContain(`\n### \`${code}\`\n`)
})

test('packed without a repository, it names pages that it brings along, and no URL', async () => {
  const sources = join(folder, 'plain')
  await copySources(sources)
  const packed = join(folder, 'plain-packed')
  await mkdir(packed)
  await succeed(['npm', 'pack', '--pack-destination', packed], sources)
  // Below the other one, whose dependencies it finds.
  const to = join(installed.npm, 'plain')
  await mkdir(to)
  await succeed(['tar', '-xzf', join(packed, `localtunnels-${VERSION}.tgz`), '-C', to], folder)
  const bin = join(to, 'package/dist/bin/localtunnels.js')
  const docs = join(to, 'package/docs')
  expect(await succeed(['node', bin, '--help'], folder)).toEndWith(`\nDocumentation: ${docs}`)
  const { output } = await run(['node', bin, 'config', 'check', '/dev/null/none.toml'], folder)
  const [page = ''] = /\S+configuration\.md/.exec(output) ?? []
  expect(page).toBe(join(docs, 'configuration.md'))
  expect(await Bun.file(page).exists()).toBe(true)
  expect(output).not.toContain('errors.md')
})

test('its two pages, packed as one, are those of the sources', async () => {
  const bin = join(installed.npm, 'node_modules/.bin/localtunnels')
  const server = ['server', '--port', '0', '--host', '127.0.0.1', '--token', 'secret']
  for (const [args, address, name] of [
    [['--serve', '.', '--local', '--inspect'], /"inspector":"([^"#]+)/, 'inspector'],
    [
      [...server, '--admin', '127.0.0.1:0', '--admin-token', 'of-the-operator-alone'],
      /admin listener is at (http:[\d.:/]+\d)/,
      'admin',
    ],
  ] as const) {
    const { PATH = '' } = process.env
    await using running = new Running([bin, ...args, '--json'], { PATH, HOME: folder }, false, installed.npm)
    const answer = await fetch(await running.printed(address))
    expect(await answer.text()).toBe((await buildPage(name)).html)
  }
})

test('publint finds nothing', async () => {
  const output = await succeed(['bunx', '--bun', 'publint', 'run', '--strict', tarball], root)
  expect(output).toContain('All good!')
})

test('its types are where every resolution that knows ES modules looks', async () => {
  // Exits with 1 when something is wrong.
  await succeed(['bunx', '--bun', 'attw', tarball, '--profile', 'esm-only'], root)
})

// ── The bins ─────────────────────────────────────────────────────────────────────────────────────────────────────

test.each([
  ['npm', 'localtunnels'],
  ['npm', 'lt'],
  ['bun', 'localtunnels'],
  ['bun', 'lt'],
] as const)('installed with %s, %s runs', async (tool, bin) => {
  const path = join(installed[tool], 'node_modules/.bin', bin)
  expect(await succeed([path, '--version'], installed[tool])).toBe(VERSION)
  const { exitCode, output } = await run([path, '--port', '99999'], installed[tool])
  expect(exitCode).toBeGreaterThan(0)
  expect(output).not.toContain('    at ')
})

test.skipIf(process.platform !== 'linux')('its threads move the bytes of a download', () => {
  const { PATH = '' } = process.env
  const bin = join(installed.npm, 'node_modules/.bin/localtunnels')
  return expectThreadsToMove(args =>
    Bun.spawn({
      cmd: [bin, ...args],
      cwd: installed.npm,
      env: { PATH, HOME: folder, XDG_STATE_HOME: folder },
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'pipe',
    }),
  )
})

// ── The library ──────────────────────────────────────────────────────────────────────────────────────────────────

const SERVE = `
  import { TunnelServer } from 'localtunnels'
  const server = new TunnelServer({ port: 0, host: '127.0.0.1' })
  await server.start()
  console.log(server.port)
  process.on('SIGTERM', () => void server.stop())
`

/** Serves one request over each wire, then closes everything: the process must end by itself. */
const SHARE = `
  import { createServer, get } from 'node:http'
  import { TunnelClient } from 'localtunnels/client'
  const port = Number(process.argv[2])
  const app = createServer((request, answer) => {
    const pieces = []
    request.on('data', piece => pieces.push(piece))
    request.on('end', () => answer.end(request.method + ' ' + request.url + ' ' + Buffer.concat(pieces)))
  })
  await new Promise(resolve => app.listen(0, '127.0.0.1', resolve))
  const ask = (host, path) => new Promise((resolve, reject) =>
    get({ host: '127.0.0.1', port, path, headers: { Host: host }, agent: false }, answer => {
      let text = ''
      answer.on('data', piece => { text += piece }).on('end', () => resolve(answer.statusCode + ' ' + text))
    }).on('error', reject))
  for (const wire of ['streams', 'json']) {
    const client = new TunnelClient({ server: '127.0.0.1:' + port, subdomain: 'app', wire, port: app.address().port })
    await client.connect()
    console.log(wire, await ask('app.localhost', '/a?b'), await client.probe())
    await client.disconnect()
    const handler = new TunnelClient({
      server: '127.0.0.1:' + port, subdomain: 'fn', wire, fetch: request => new Response('fn ' + request.method) })
    await handler.connect()
    console.log(wire, await ask('fn.localhost', '/'))
    await handler.disconnect()
  }
  app.close()
  const nowhere = new TunnelClient({ server: '127.0.0.1:1', port: 1 })
  await nowhere.connect().catch(error => console.log(error.code))
`

test.each(['bun', 'node'])(
  'a client on %s shares an app over both wires, and its process ends by itself',
  async runtime => {
    await Bun.write(join(installed.bun, 'serve.mjs'), SERVE)
    await Bun.write(join(installed.npm, 'share.mjs'), SHARE)
    const server = Bun.spawn({
      cmd: ['bun', 'serve.mjs'],
      cwd: installed.bun,
      stdout: 'pipe',
      stderr: 'inherit',
    })
    try {
      const { value } = await server.stdout.getReader().read()
      const port = new TextDecoder().decode(value).trim()
      const startedAt = performance.now()
      expect(await succeed([runtime, 'share.mjs', port], installed.npm)).toBe(
        [
          'streams 200 GET /a?b  true',
          'streams 200 fn GET',
          'json 200 GET /a?b  true',
          'json 200 fn GET',
          'SERVER_UNREACHABLE',
        ].join('\n'),
      )
      expect(performance.now() - startedAt).toBeLessThan(4_000)
    } finally {
      server.kill('SIGTERM')
    }
    expect(await server.exited).toBe(0)
  },
)

const ENTRIES = Object.keys((await Bun.file(join(root, 'package.json')).json()).exports)
  .filter(entry => entry !== './package.json')
  .map(entry => entry.replace('.', 'localtunnels'))

test.each(['node', 'bun'].flatMap(runtime => ENTRIES.map(entry => [runtime, entry] as const)))(
  'on %s %s is there for import and for require()',
  async (runtime, entry) => {
    // Of what it is for dev servers, `next` and `nuxt` are not installed: their entries name only types of them.
    const name = entry.replace(/\W/g, '-')
    await Bun.write(
      join(installed.npm, `${name}.mjs`),
      `import * as all from '${entry}'\nconsole.log(Object.keys(all).filter(name => name !== 'module.exports').sort().join())`,
    )
    await Bun.write(join(installed.npm, `${name}.cjs`), `console.log(typeof require('${entry}'))`)
    const imported = await succeed([runtime, `${name}.mjs`], installed.npm)
    expect(imported.split(',').length).toBeGreaterThan(0)
    expect(imported).not.toBe('')
    expect(await succeed([runtime, `${name}.cjs`], installed.npm)).toMatch(/^(?:object|function)$/)
  },
)

test('on Node what of localtunnels/tls needs Bun says so, and the rest works', async () => {
  const program = `
    import { AcmeCertificates, Route53, SqliteCertificates } from 'localtunnels/tls'
    try { new SqliteCertificates('certificates.db') } catch (error) { console.log(error.code, error.message) }
    console.log(typeof AcmeCertificates, typeof Route53)
  `
  await Bun.write(join(installed.npm, 'sqlite.mjs'), program)
  expect(await succeed(['node', 'sqlite.mjs'], installed.npm)).toMatch(
    /^RUNTIME_UNSUPPORTED This needs the Bun runtime\. .*\nfunction function$/,
  )
})

test('on Node the server can be imported; making one says what it needs', async () => {
  const program = `
    import { TunnelServer } from 'localtunnels'
    try { new TunnelServer() } catch (error) { console.log(error.code) }
  `
  await Bun.write(join(installed.npm, 'server.mjs'), program)
  expect(await succeed(['node', 'server.mjs'], installed.npm)).toBe('RUNTIME_UNSUPPORTED')
})

test('localtunnels/client loads no code of the server', async () => {
  // The sources, whose parts have their names; tools/bundle.ts refuses a package in which it is otherwise.
  const bundle = await Bun.build({
    entrypoints: [join(root, 'src/client.ts')],
    target: 'node',
    external: ['bun', 'bun:*'],
    splitting: true,
    metafile: true,
  })
  const outputs = Object.entries(bundle.metafile?.outputs ?? {})
  const [, entry] = outputs.find(([, { entryPoint }]) => entryPoint?.endsWith('src/client.ts')) ?? []
  const inputs = Object.keys(entry?.inputs ?? {})
  expect(inputs.length).toBeGreaterThan(10)
  expect(inputs.filter(path => /(?:^|\/)src\/(?:server|cli)\//.test(path))).toEqual([])
})

// ── The types ────────────────────────────────────────────────────────────────────────────────────────────────────

const TYPED = `
  import { connectTunnel, type ServerStats, TunnelClient, TunnelError, TunnelServer, type TunnelServerOptions } from 'localtunnels'
  import { TunnelClient as Alone } from 'localtunnels/client'
  const options: TunnelServerOptions = { port: 0, limits: { leaseMs: 1_000 } }
  const server = new TunnelServer(options)
  await server.start()
  const stop: () => void = server.on('request', ({ status, path }) => [status.toFixed(), path.length])
  const stats: ServerStats = server.getStats(true)
  const client = await connectTunnel({ fetch: request => new Response(request.url), server: server.url })
  client.on('error', error => error instanceof TunnelError && error.code === 'CARRIER_LOST')
  const other: Promise<void> = new Alone({ port: 3000 }).connect()
  // @ts-expect-error: no such option
  new TunnelClient({ prot: 3000 })
  // @ts-expect-error: no such event
  client.on('eror', () => {})
  await client.disconnect()
  stop()
  export { other, stats }
`

test.each([
  ['NodeNext', ['ES2022', 'DOM']],
  ['Preserve', ['ESNext', 'DOM']],
])(
  'its types compile strictly with module %s and %j, without the types of Bun or Node',
  async (module, lib) => {
    const project = join(installed.npm, `types-${module}`)
    await Bun.write(join(project, 'index.ts'), TYPED)
    await Bun.write(
      join(project, 'tsconfig.json'),
      JSON.stringify({
        compilerOptions: {
          strict: true,
          exactOptionalPropertyTypes: true,
          skipLibCheck: false,
          noEmit: true,
          target: 'ES2022',
          module,
          moduleResolution: module === 'Preserve' ? 'Bundler' : module,
          lib,
          types: [],
        },
      }),
    )
    await Bun.write(join(project, 'package.json'), JSON.stringify({ type: 'module' }))
    await succeed([join(root, 'node_modules/.bin/tsc'), '-p', project], project)
  },
)
