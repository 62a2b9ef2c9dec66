// The plugin in real dev servers of Vite, this major version and the one before, on Node: in a browser, through the tunnel.
// Up to 10 s for a test on a busy machine: real dev servers and a browser start.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { BIN, Running } from '../cli/bin.ts'
import { ask } from '../support/ask.ts'
import type { Browser } from '../support/browser.ts'
import { describeWith } from '../support/needs.ts'
import { changes, isMarked, mark, shows } from '../support/page.ts'
import { freePort } from '../support/ports.ts'
import { PublicSide } from '../support/public-site.ts'
import { startServer } from '../support/tunnel.ts'

const root = resolve(import.meta.dir, '../..')
/** Failure only: Vite may take its time on a busy machine. */
const DEADLINE_MS = 30_000
let folder = ''
let side: PublicSide

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'localtunnels-vite-'))
  // As the package has it: JavaScript that Node runs.
  const { success, logs } = await Bun.build({
    entrypoints: [join(root, 'src/integrations/vite.ts')],
    outdir: join(folder, 'plugin'),
    naming: 'vite.mjs',
    target: 'node',
    external: ['ws', 'diff', 'jose'],
  })
  if (!success) throw new Error(logs.map(({ message }) => message).join('\n'))
  await symlink(join(root, 'node_modules'), join(folder, 'node_modules'))
  side = await PublicSide.start()
})
afterAll(async () => {
  await side[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
}, 60_000)

/** A project with a page that shows what a module says. */
async function project(name: string, options: object): Promise<string> {
  const place = join(folder, name)
  await mkdir(place)
  const files = {
    'index.html': '<!doctype html><h1 id="said"></h1><script type="module" src="/main.js"></script>',
    'main.js': `import { said } from './said.js'
      document.querySelector('#said').textContent = said
      import.meta.hot.accept('./said.js', now => { document.querySelector('#said').textContent = now.said })`,
    'said.js': `export const said = 'first'`,
    'vite.config.mjs': `import { localtunnels } from '../plugin/vite.mjs'
      export default { plugins: [localtunnels(${JSON.stringify(options)})], clearScreen: false }`,
  }
  for (const [file, text] of Object.entries(files)) await writeFile(join(place, file), text)
  return place
}

/** In a project, with nothing of the developer's own. */
function start(place: string, ...words: readonly string[]): Running {
  const { PATH = '' } = process.env
  return new Running(words, { PATH, HOME: folder, NO_COLOR: '1' }, false, place, DEADLINE_MS)
}

function vite(version: string, place: string, ...words: readonly string[]): Running {
  return start(place, 'node', binOf(version), ...words)
}

const binOf = (version: string) => join(root, 'node_modules', version, 'bin/vite.js')

/** A visitor sees the page, and then what changes in it without a reload. */
async function seesHotUpdate(browser: Browser, url: string, place: string): Promise<void> {
  await browser.open(url)
  await shows(browser, '#said', 'first')
  // A reload of the whole page would lose this.
  await mark(browser)
  const change = () => writeFile(join(place, 'said.js'), `export const said = 'second'`)
  await changes(browser, '#said', 'second', change)
  expect(await isMarked(browser)).toBe(true)
}

for (const version of ['vite', 'vite-7'])
  describeWith(['chromium', 'node'], version, () => {
    test('a page, and what changes in it, by a public URL whose host Vite does not know', async () => {
      const site = side.site()
      const options = { server: site.dialled, subdomain: site.name, verifyServer: false }
      const place = await project(`${version}-page`, options)
      await using running = vite(version, place, '--port', `${freePort()}`)
      await running.printed(new RegExp(`Tunnel: {2}${site.url}`))
      await using browser = await site.visitor()
      await seesHotUpdate(browser, site.url, place)
      // Its end gives the name back at once.
      await running.end()
      expect(await site.visit()).toMatchObject({ code: 'TUNNEL_NOT_FOUND' })
    }, 60_000)

    test('without the plugin Vite refuses that host, and localtunnels run is enough', async () => {
      const site = side.site()
      const place = await project(`${version}-run`, { enabled: false })
      const port = freePort()
      const own = ['--server', site.dialled, '--insecure', '--subdomain', site.name]
      await using plain = vite(version, place, '--port', `${port}`)
      await plain.printed(/Local:/)
      const asked = await fetch(`http://localhost:${port}/`, { headers: { host: site.host } })
      expect([asked.status, await asked.text()]).toEqual([403, expect.stringContaining('Blocked request')])
      await plain.end()
      const command = ['node', binOf(version), '--port', `${port}`]
      await using running = start(place, 'bun', BIN, 'run', ...own, '--', ...command)
      await running.printed(new RegExp(`${site.url} → localhost:${port}`))
      await using browser = await site.visitor()
      await seesHotUpdate(browser, site.url, place)
      await running.end()
    }, 60_000)

    test('the key t pauses the tunnel and opens it again, under its name', async () => {
      const site = side.site()
      const options = { server: site.dialled, subdomain: site.name, verifyServer: false }
      const place = await project(`${version}-keys`, options)
      const { PATH = '' } = process.env
      const command = ['node', binOf(version), '--port', `${freePort()}`]
      const env = { PATH, HOME: folder, NO_COLOR: '1', TERM: 'xterm' }
      await using running = new Running(command, env, true, place, DEADLINE_MS)
      await running.printed(new RegExp(`Tunnel: {2}${site.url}`))
      await running.printed(/press h \+ enter/)
      expect(await site.visit()).toMatchObject({ status: 200 })
      running.type('t\n')
      await running.printed(/Tunnel: {2}paused/)
      expect(await site.visit()).toMatchObject({ code: 'TUNNEL_NOT_FOUND' })
      running.type('t\n')
      await running.printed(new RegExp(`paused[\\s\\S]*Tunnel: {2}${site.url}`))
      expect(await site.visit()).toMatchObject({ status: 200 })
    }, 60_000)

    test('a restart keeps the name', async () => {
      await using server = await startServer()
      const place = await project(`${version}-restart`, { server: server.url, subdomain: 'app' })
      await using running = vite(version, place, '--port', `${freePort()}`)
      await running.printed(/Tunnel: {2}http:\/\/app\.localhost/)
      const config = join(place, 'vite.config.mjs')
      await writeFile(config, `${await Bun.file(config).text()}\n// changed`)
      await running.printed(/server restarted/)
      expect(await ask(server.port, 'app.localhost')).toMatchObject({ status: 200 })
      expect(running.stdout).not.toContain('app-2')
    }, 60_000)

    test('a build is as without it, and without a server the dev server starts all the same', async () => {
      const place = await project(`${version}-build`, { server: `http://127.0.0.1:${freePort()}` })
      await using build = vite(version, place, 'build')
      expect(await build.exited).toBe(0)
      expect(build.stdout + build.stderr).not.toContain('unnel')
      await using running = vite(version, place, '--port', `${freePort()}`)
      await running.printed(/localtunnels: no tunnel\. /)
      await running.printed(/Local:/)
    }, 60_000)
  })

test('options that ask for no tunnel, and no server at all', async () => {
  const { localtunnels } = await import('../../src/integrations/vite.ts')
  const { apply } = localtunnels({ enabled: false })
  if (typeof apply !== 'function') throw new Error('apply is a function')
  expect(apply({}, { command: 'serve', mode: 'development' })).toBe(false)
})

test('a tunnel that never was is not paused', async () => {
  const { urlLine } = await import('../../src/integrations/dev-tunnel.ts')
  const { HeldTunnel } = await import('../../src/integrations/held-tunnel.ts')
  await using server = await startServer({ tokens: ['right'] })
  const tunnel = HeldTunnel.of('test', { server: server.url })
  expect(urlLine(tunnel)).toContain('paused')
  await tunnel.open()
  expect(tunnel.failure).toMatchObject({ code: 'TOKEN_REFUSED' })
  expect(urlLine(tunnel)).toMatch(/Tunnel.*none/)
})
