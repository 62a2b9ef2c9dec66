// `localtunnels/test` as its users have it: in bun test, in vitest on Node and with a browser of Playwright.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdir, mkdtemp, rename, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { VERSION } from '../../src/version.ts'
import { testWith } from '../support/needs.ts'
import { copySources } from '../support/released.ts'

const root = resolve(import.meta.dir, '../..')
/** A project that has the package and the runners. */
let project = ''

// Packing builds.
beforeAll(async () => {
  project = await mkdtemp(join(tmpdir(), 'localtunnels-runners-'))
  const sources = join(project, 'sources')
  await copySources(sources)
  await finished(['npm', 'pack', '--pack-destination', project], sources)
  const modules = join(project, 'node_modules')
  await mkdir(modules)
  await finished(['tar', '-xzf', join(project, `localtunnels-${VERSION}.tgz`), '-C', modules], project)
  await rename(join(modules, 'package'), join(modules, 'localtunnels'))
  for (const name of ['vitest', 'playwright-core', 'diff', 'mrmime'])
    await symlink(join(root, 'node_modules', name), join(modules, name))
  await Bun.write(join(project, 'package.json'), '{ "type": "module" }')
}, 120_000)
afterAll(() => rm(project, { recursive: true, force: true }))

async function finished(cmd: readonly string[], cwd: string): Promise<void> {
  const child = Bun.spawn({ cmd: [...cmd], cwd, stdin: 'ignore', stdout: 'ignore', stderr: 'pipe' })
  if ((await child.exited) !== 0) throw new Error(await child.stderr.text())
}

/** The example of docs/integrations.md, of one runner. */
async function exampleFor(runner: string): Promise<string> {
  const text = await Bun.file(join(root, 'docs/integrations.md')).text()
  const example =
    /```ts no-run\n\/\/ Or 'vitest'\n(import \{ expect, test \} from 'bun:test'[\s\S]*?)```/.exec(text)?.[1]
  if (example === undefined) throw new Error('docs/integrations.md has no example')
  return example.replace('bun:test', runner)
}

async function run(cmd: readonly string[], more: { readonly FORCE_COLOR?: string } = {}) {
  const { PATH = '', HOME = '' } = process.env
  // What a developer has set is not for tests: they would go out to that server.
  const env = {
    PATH,
    HOME,
    TUNNEL_SERVER: 'http://nowhere.invalid',
    TUNNEL_TOKEN: 'x',
    ...more,
  }
  const child = Bun.spawn({
    cmd: [...cmd],
    cwd: project,
    env,
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()])
  return { exitCode: await child.exited, output: stdout + stderr }
}

test('the example passes in bun test', async () => {
  await Bun.write(join(project, 'bun.test.ts'), await exampleFor('bun:test'))
  const { exitCode, output } = await run(['bun', 'test', './bun.test.ts'])
  expect(output).toContain('1 pass')
  expect(exitCode).toBe(0)
})

testWith(['node'], 'the example passes in vitest, on Node', async () => {
  await Bun.write(join(project, 'vitest.spec.ts'), await exampleFor('vitest'))
  const vitest = join(project, 'node_modules/vitest/vitest.mjs')
  // Playwright sets FORCE_COLOR for its tests, and so do many CI systems.
  for (const more of [{}, { FORCE_COLOR: '1' }] as Record<string, string>[]) {
    const { exitCode, output } = await run(['node', vitest, 'run', '--no-color', 'vitest.spec.ts'], more)
    expect(output).toContain('1 passed')
    expect(exitCode).toBe(0)
  }
})

testWith(['node', 'chromium'], 'a browser of Playwright visits it, on Node', async () => {
  await Bun.write(
    join(project, 'browser.mjs'),
    `
      import { createServer } from 'node:http'
      import { chromium } from 'playwright-core'
      import { tunnel } from 'localtunnels/test'
      const page = '<button onclick="fetch(\\'/hooks\\', { method: \\'POST\\', body: \\'paid\\' })">Pay</button>'
      const app = createServer((_, answer) => answer.setHeader('content-type', 'text/html').end(page))
      await new Promise(resolve => app.listen(0, '127.0.0.1', resolve))
      const site = await tunnel(app.address().port)
      const browser = await chromium.launch({ executablePath: process.argv[2], args: ['--no-sandbox'] })
      const tab = await browser.newPage()
      await tab.goto(site.url)
      await tab.click('button')
      const { request } = await site.waitFor('POST /hooks')
      console.log('the app got', request.text(), request.headers.get('origin') === site.url)
      const paths = []
      const listing = (async () => { for await (const { method, path } of site.exchanges) paths.push(method + ' ' + path) })()
      await browser.close()
      await site.close()
      await listing
      console.log(paths.filter(path => !path.includes('favicon')).join())
      app.close()
    `,
  )
  const { exitCode, output } = await run(['node', 'browser.mjs', Bun.which('chromium') ?? ''])
  // Its process ends by itself: nothing of the tunnel or its server is left.
  expect(output).toBe('the app got paid true\nGET /,POST /hooks\n')
  expect(exitCode).toBe(0)
})

testWith(['node'], 'without Bun on Node it says what is missing, and a server named needs none', async () => {
  await Bun.write(
    join(project, 'alone.mjs'),
    `
      import { tunnel } from 'localtunnels/test'
      process.env.PATH = '/nowhere'
      await tunnel(() => new Response()).catch(error => console.log(error.code, error.message))
      await tunnel(() => new Response(), { server: 'http://127.0.0.1:1' }).catch(error => console.log(error.code))
    `,
  )
  const { output, exitCode } = await run(['node', 'alone.mjs'])
  expect(output).toMatch(/^RUNTIME_UNSUPPORTED .*needs Bun.*\nSERVER_UNREACHABLE\n$/)
  expect(exitCode).toBe(0)
})

testWith(['node'], 'the server beside a test on Node ends when the test is killed', async () => {
  await Bun.write(
    join(project, 'killed.mjs'),
    `
      import { tunnel } from 'localtunnels/test'
      console.log((await tunnel(() => new Response('hi'))).url)
      setInterval(() => {}, 1_000)
    `,
  )
  const child = Bun.spawn({ cmd: ['node', 'killed.mjs'], cwd: project, stdout: 'pipe' })
  const { value } = await child.stdout.getReader().read()
  const url = new TextDecoder().decode(value).trim()
  expect(await (await fetch(url)).text()).toBe('hi')
  child.kill('SIGKILL')
  await child.exited
  // Refused, as soon as it has noticed.
  for (;;) {
    const refused = await fetch(url).then(
      () => false,
      () => true,
    )
    if (refused) break
  }
})
