// The documentation as a site. It takes longer than other tests, because it is built as a whole, twice bundled.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, readdirSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { chromium } from 'playwright-core'
import { VERSION } from '../src/version.ts'
import { finish } from './cli/bin.ts'
import { unknownWords } from './support/documented-commands.ts'
import { testWith } from './support/needs.ts'
import { type Ran, run } from './support/programs.ts'

const ROOT = resolve(import.meta.dir, '..')
const steps = readdirSync(join(ROOT, 'docs/start'))
let out = ''

let built: Ran
let pages: readonly string[] = []

beforeAll(async () => {
  out = await mkdtemp(join(tmpdir(), 'localtunnels-site-'))
  const vitepress = join(ROOT, 'node_modules/.bin/vitepress')
  // Below a path, as the workflow of a release publishes it. 30 s on two busy cores.
  const words = [vitepress, 'build', join(ROOT, 'docs'), '--outDir', out, '--base', '/tunnels/']
  built = await run(words, { GITHUB_REPOSITORY: 'acme/tunnels' }, '', 290_000)
  pages = readdirSync(out, { recursive: true })
    .map(String)
    .filter(name => name.endsWith('.html'))
}, 300_000)
afterAll(() => rm(out, { recursive: true, force: true }))

test('every page is built, no link in it is dead, and it reads without JavaScript', async () => {
  expect(built.err).not.toMatch(/dead link|error/i)
  expect(built.code).toBe(0)
  // The pages of the sidebar, the first page and that of an address that is not there.
  expect(pages.length).toBe(32)
  expect(await Bun.file(join(out, 'start/share.html')).text()).toContain('Your app listens on port 3000.')
  const page = await Bun.file(join(out, 'cli.html')).text()
  expect(page).toContain('TUNNEL_SUBDOMAIN')
  // Without JavaScript, too: the sidebar is in the page.
  const linked = new Set([...page.matchAll(/href="\/tunnels\/([^"#]+)"/g)].map(([, path]) => path))
  expect(page).not.toMatch(/(?:href|src)="\/(?!tunnels\/)/)
  // Five groups with at most 30 pages.
  expect(page.match(/VPSidebarItem level-0/g)).toHaveLength(5)
  expect(page.match(/VPSidebarItem level-1/g)?.length).toBeLessThanOrEqual(30)
  const names = pages.map(name => name.replace(/\.html$/, ''))
  expect(names.filter(name => !linked.has(name) && !['index', '404'].includes(name))).toEqual([])
  const texts = new Map<string, string>()
  for (const name of names) texts.set(name, await Bun.file(join(out, `${name}.html`)).text())
  const repository = 'https://github.com/acme/tunnels/blob/main/'
  const leadsNowhere = ({ href, pathname, hash }: URL) => {
    if (href.startsWith(repository))
      return !existsSync(join(ROOT, href.slice(repository.length).replace(/#.*/, '')))
    const path = decodeURIComponent(pathname.slice('/tunnels/'.length)) || 'index'
    const text = texts.get(path)
    if (text === undefined) return !existsSync(join(out, path))
    return hash !== '' && !text.includes(`id="${decodeURIComponent(hash.slice(1))}"`)
  }
  // VitePress looks at no `#heading`, and not at what leads out of docs/.
  const dead = [...texts].flatMap(([name, text]) =>
    [...text.matchAll(/<a [^>]*?href="([^"]+)"/g)]
      .map(([, href = '']) => new URL(href, `http://site/tunnels/${name}`))
      .filter(url => (url.host === 'site' || url.href.startsWith(repository)) && leadsNowhere(url))
      .map(url => `${name}: ${url.href}`),
  )
  expect(dead).toEqual([])
}, 300_000)

test('the first page has one command, the repository and the version; each page has what social networks show, and no face', async () => {
  const home = await Bun.file(join(out, 'index.html')).text()
  expect(home).toContain('bun bin/localtunnels.ts 3000')
  expect(home).toContain('href="https://github.com/acme/tunnels"')
  expect(home).toContain(`>${VERSION}<`)
  expect(home).toContain('property="og:image" content="https://acme.github.io/tunnels/images/inspector.png"')
  expect(existsSync(join(out, 'images/inspector.png'))).toBeTrue()
  const share = await Bun.file(join(out, 'start/share.html')).text()
  expect(share).toContain('property="og:url" content="https://acme.github.io/tunnels/start/share"')
  expect(share).toMatch(/<img src="[^"]+" alt="A terminal/)
  const faces: string[] = []
  for (const name of pages)
    if (/[\u{1f600}-\u{1f64f}]/u.test(await Bun.file(join(out, name)).text())) faces.push(name)
  expect(faces).toEqual([])
})

const served = () =>
  Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: async request => {
      const file = Bun.file(join(out, new URL(request.url).pathname.replace('/tunnels/', '/')))
      return (await file.exists()) ? new Response(file) : new Response(Bun.file(join(out, '404.html')))
    },
  })
const launched = () =>
  chromium.launch({ executablePath: Bun.which('chromium') ?? '', args: ['--no-sandbox'] })

testWith(
  ['chromium'],
  'no page is wider than the window, on a phone, a tablet and a laptop',
  async () => {
    using site = served()
    await using browser = await launched()
    // As the server sends it: what a script does later is not waited for.
    const page = await browser.newPage({ javaScriptEnabled: false })
    const wide: string[] = []
    for (const name of pages) {
      await page.goto(`${site.url.href}tunnels/${name}`)
      for (const width of [390, 768, 1280]) {
        await page.setViewportSize({ width, height: 800 })
        const over = await page.evaluate('document.documentElement.scrollWidth - innerWidth')
        if (Number(over) > 0) wide.push(`${name} at ${width}: ${String(over)}`)
      }
    }
    expect(wide).toEqual([])
  },
  300_000,
)

/** Tables of figures are compared row by row: they stay tables. */
const FIGURES = /^(?:benchmarks\.|cluster\.)/

testWith(
  ['chromium'],
  'on a phone no table of words scrolls inside of itself, and each value says what it is',
  async () => {
    using site = served()
    await using browser = await launched()
    const viewport = { width: 390, height: 800 }
    const page = await browser.newPage({ javaScriptEnabled: false, viewport })
    const wide: string[] = []
    for (const name of pages.filter(one => !FIGURES.test(one))) {
      await page.goto(`${site.url.href}tunnels/${name}`)
      const widths = await page.evaluate<number[]>(
        '[...document.querySelectorAll(".vp-doc table")].map(one => one.scrollWidth - one.clientWidth)',
      )
      if (widths.some(over => over > 0)) wide.push(name)
    }
    expect(wide).toEqual([])
    await page.goto(`${site.url.href}tunnels/errors.html`)
    const labels = await page.evaluate<string[]>(
      '[...document.querySelectorAll("tbody tr:first-child td")].map(one => getComputedStyle(one, "::before").content)',
    )
    expect(labels).toEqual(['none', '"HTTP: "', '"Whose fault: "', '"Retry: "', '"Number: "'])
  },
  300_000,
)

testWith(
  ['chromium'],
  'the site has the colours of the tokens, in both themes, and the ways to install need no script',
  async () => {
    using site = served()
    await using browser = await launched()
    for (const [colorScheme, colours] of [
      ['light', ['rgb(255, 255, 255)', 'rgb(23, 30, 34)']],
      ['dark', ['rgb(15, 21, 23)', 'rgb(230, 234, 235)']],
    ] as const) {
      const page = await browser.newPage({ colorScheme })
      await page.goto(`${site.url.href}tunnels/index.html`)
      const found = await page.evaluate(
        '[document.body, document.querySelector("h1 .text")].map((one, at) => getComputedStyle(one)[at ? "color" : "backgroundColor"])',
      )
      expect(found).toEqual([...colours])
      expect(await page.locator('.picture img:visible').count()).toBe(1)
    }
    const plain = await browser.newPage({ javaScriptEnabled: false })
    await plain.goto(`${site.url.href}tunnels/index.html`)
    await plain.getByText('Docker', { exact: true }).click()
    await plain.getByText('docker build').waitFor()
    expect(await plain.locator('.install pre:visible').count()).toBe(1)
  },
  300_000,
)

testWith(
  ['chromium'],
  'axe finds nothing: the first page, one of code, those of tables, and that of an address that is not there',
  async () => {
    using site = served()
    await using browser = await launched()
    const axe = await Bun.file(join(ROOT, 'node_modules/axe-core/axe.min.js')).text()
    const page = await browser.newPage()
    const found: string[] = []
    for (const name of [
      'index.html',
      'start/share.html',
      'configuration.html',
      'errors.html',
      'benchmarks.html',
      'nowhere',
    ]) {
      await page.goto(`${site.url.href}tunnels/${name}`)
      // A script makes the last one.
      if (name === 'nowhere') await page.getByRole('heading', { name: 'No such page' }).waitFor()
      await page.evaluate(axe)
      const ids = await page.evaluate<string[]>(
        'axe.run().then(({ violations }) => violations.map(({ id, nodes }) => id + " " + nodes[0].html))',
      )
      found.push(...ids.map(id => `${name}: ${id}`))
    }
    expect(found).toEqual([])
  },
  300_000,
)

test('the way of a newcomer has three pages, each leads to the next, and its commands exist', async () => {
  expect(steps).toHaveLength(3)
  const texts = await Promise.all(steps.map(name => Bun.file(join(ROOT, 'docs/start', name)).text()))
  for (const [at, text] of texts.entries()) {
    expect([steps[at], unknownWords(text)]).toEqual([steps[at], []])
    expect(text.split(/\s+/).length).toBeLessThan(200)
  }
  let name = 'share.md'
  for (let at = 1; at <= 3; at++) {
    const text = texts[steps.indexOf(name)] ?? ''
    expect(text).toStartWith(`# ${at}. `)
    name = /Next: \[[^\]]+\]\((\w+\.md)\)/.exec(text)?.[1] ?? ''
  }
  expect(name).toBe('')
})

test('the files and the tokens of these pages are accepted as printed', async () => {
  const names = [...steps.map(name => `start/${name}`), 'tokens.md', 'webhooks.md']
  const texts = await Promise.all(names.map(name => Bun.file(join(ROOT, 'docs', name)).text()))
  const environment = { XDG_STATE_HOME: out, STRIPE_WEBHOOK_SECRET: 'whsec_dGVzdA==' }
  const file = join(out, 'localtunnels.toml')
  const files = texts.flatMap(text =>
    [...text.matchAll(/^```toml\n([\s\S]*?)^```$/gm)].map(([, toml = '']) => toml),
  )
  expect(files.length).toBeGreaterThan(1)
  for (const toml of files) {
    await Bun.write(file, toml)
    expect(await finish(['config', 'check', file], environment)).toMatchObject({ exitCode: 0, stderr: '' })
  }
  const commands = texts.flatMap(text =>
    [...text.matchAll(/^localtunnels (token .*?)(?:\s+#.*)?$/gm)].map(([, words = '']) => words),
  )
  expect(commands.length).toBeGreaterThan(3)
  for (const words of commands)
    expect(await finish(words.replaceAll("'", '').split(/\s+/), environment)).toMatchObject({ exitCode: 0 })
})
