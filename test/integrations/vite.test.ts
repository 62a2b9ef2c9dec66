// The plugin in real dev servers of Vite, this major version and the one before, on Node: in a browser, through the tunnel.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { ask } from '../support/ask.ts'
import { Browser } from '../support/browser.ts'
import { eventually } from '../support/events.ts'
import { describeWith } from '../support/needs.ts'
import { freePort } from '../support/ports.ts'
import { startServer } from '../support/tunnel.ts'

const root = resolve(import.meta.dir, '../..')
let folder = ''

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
})
afterAll(() => rm(folder, { recursive: true, force: true }))

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

class Vite implements AsyncDisposable {
  printed = ''
  readonly #child: Bun.Subprocess<'pipe', 'pipe', 'pipe'>
  readonly #read: Promise<unknown>

  constructor(version: string, place: string, ...words: readonly string[]) {
    const { PATH } = process.env
    this.#child = Bun.spawn(['node', join(root, 'node_modules', version, 'bin/vite.js'), ...words], {
      cwd: place,
      env: { PATH, HOME: folder, NO_COLOR: '1' },
      stdin: 'pipe',
      stdout: 'pipe',
      stderr: 'pipe',
    })
    const read = async (stream: ReadableStream<Uint8Array>) => {
      const decoder = new TextDecoder()
      for await (const bytes of stream) this.printed += decoder.decode(bytes, { stream: true })
    }
    this.#read = Promise.all([read(this.#child.stdout), read(this.#child.stderr)])
  }

  async says(text: string): Promise<void> {
    await eventually(() => this.printed.includes(text), `"${text}" of Vite, which said: ${this.printed}`)
  }

  get exited(): Promise<number> {
    return this.#read.then(() => this.#child.exited)
  }

  end(): void {
    this.#child.kill('SIGTERM')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.exited
  }
}

for (const version of ['vite', 'vite-7'])
  describeWith(['chromium', 'node'], version, () => {
    test('a page, and what changes in it, by the public URL', async () => {
      await using server = await startServer()
      const place = await project(`${version}-page`, { server: server.url, subdomain: 'app' })
      await using vite = new Vite(version, place, '--port', `${freePort()}`)
      const url = `http://app.localhost:${server.port}/`
      await vite.says(`Tunnel:  ${url.slice(0, -1)}`)
      // Before the address of this machine itself is asked for in vain: .localhost is that in Chromium.
      await using browser = await Browser.start()
      await browser.open(url)
      const said = () => browser.run(`document.querySelector('#said').textContent`)
      const says = async (text: string) => {
        while ((await said()) !== text);
      }
      await says('first')
      // A reload of the whole page would lose this.
      await browser.run('window.before = true')
      await writeFile(join(place, 'said.js'), `export const said = 'second'`)
      await says('second')
      expect(await browser.run('window.before')).toBe('true')
      // Its end gives the name back at once.
      vite.end()
      await vite.exited
      expect(await ask(server.port, 'app.localhost')).toMatchObject({ code: 'TUNNEL_NOT_FOUND' })
    }, 30_000)

    test('a restart keeps the name', async () => {
      await using server = await startServer()
      const place = await project(`${version}-restart`, { server: server.url, subdomain: 'app' })
      await using vite = new Vite(version, place, '--port', `${freePort()}`)
      await vite.says('Tunnel:  http://app.localhost')
      const config = join(place, 'vite.config.mjs')
      await writeFile(config, `${await Bun.file(config).text()}\n// changed`)
      await vite.says('server restarted')
      expect(await ask(server.port, 'app.localhost')).toMatchObject({ status: 200 })
      expect(vite.printed).not.toContain('app-2')
    }, 30_000)

    test('a build is as without it, and without a server the dev server starts all the same', async () => {
      const place = await project(`${version}-build`, { server: `http://127.0.0.1:${freePort()}` })
      await using build = new Vite(version, place, 'build')
      expect(await build.exited).toBe(0)
      expect(build.printed).not.toContain('unnel')
      await using vite = new Vite(version, place, '--port', `${freePort()}`)
      await vite.says('localtunnels: no tunnel. ')
      await vite.says('Local:')
    }, 30_000)
  })

test('options that ask for no tunnel, and no server at all', async () => {
  const { localtunnels } = await import('../../src/integrations/vite.ts')
  const { apply } = localtunnels({ enabled: false })
  if (typeof apply !== 'function') throw new Error('apply is a function')
  expect(apply({}, { command: 'serve', mode: 'development' })).toBe(false)
})
