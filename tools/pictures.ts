// Takes pictures of every page in every state, light and dark, 1440, 1024 and 390 px wide, in Chromium: the real inspector in front
// of the shop of tools/shop.ts, the admin page of a server on a working day, the pages for visitors, and the documentation.
//
//   bun tools/pictures.ts [terminal|inspector|admin|visitor|site …]     all of them without a word; into .cache/pictures, and those
//                                                                       that the documentation shows into docs/images

import { join, resolve } from 'node:path'
import { chromium, type Page } from 'playwright-core'
import { ADMIN_TOKEN, adminOptions } from '../test/support/admin.ts'
import { busyServer } from '../test/support/busy-server.ts'
import { startServer } from '../test/support/tunnel.ts'
import { visitorPages } from '../test/support/visitor-pages.ts'
import { openShop, type Shop } from './shop.ts'

const root = resolve(import.meta.dir, '..')
const folder = join(root, '.cache/pictures')
const images = join(root, 'docs/images')
const wanted = process.argv.slice(2)

async function choose(page: Page, text: string): Promise<void> {
  const row = page.locator('.rows .row', { hasText: text }).last()
  // It may be below those that are in the document.
  await page.locator('.rows').hover()
  while ((await row.count()) === 0) await page.mouse.wheel(0, 200)
  await row.click()
  await page.locator('.detail h2').first().waitFor()
}

async function settled(page: Page): Promise<void> {
  await page.locator('.detail .body').first().waitFor()
}

type Show = (page: Page, shop: Shop) => Promise<unknown>

/** What stands on the page, by the name of its picture; each begins with nothing chosen. */
const INSPECTOR: Readonly<Record<string, Show>> = {
  list: page => page.locator('.rows .row').first().waitFor(),
  detail: async page => {
    await choose(page, 'invoice.paid')
    await settled(page)
  },
  headers: async page => {
    await choose(page, '/api/cart')
    await settled(page)
    await page.keyboard.press('h')
  },
  form: async page => {
    await page.locator('.rows').focus()
    // The oldest but one.
    await page.keyboard.press('End')
    await page.keyboard.press('k')
    await page.locator('.detail h2', { hasText: '303' }).waitFor()
    await settled(page)
  },
  menu: async page => {
    await choose(page, '/products')
    await settled(page)
    await page.getByLabel('More actions').click()
  },
  messages: async page => {
    await choose(page, '/ws/room/7')
    await page.locator('.msg').nth(3).waitFor()
  },
  stream: async page => {
    await choose(page, '/events')
    await page.locator('.msg').nth(1).waitFor()
  },
  cut: async page => {
    await choose(page, '/api/reports/stock')
    await page.locator('#response .tree').waitFor()
  },
  refused: async page => {
    await choose(page, '/admin')
    await page.locator('.banner').waitFor()
  },
  editor: async page => {
    await choose(page, 'invoice.paid')
    await settled(page)
    await page.keyboard.press('e')
    const body = page.getByLabel('Body', { exact: true })
    await page.getByText('Valid JSON').waitFor()
    await body.fill((await body.inputValue()).replace('"eur",', '"eur"'))
    await page.getByText('is expected').waitFor()
  },
  paused: async (page, shop) => {
    await page.locator('.rows .row').first().waitFor()
    await page.locator('.live').click()
    await shop.more()
    await page.getByText('1 new').waitFor()
  },
  suggestions: async page => {
    await page.keyboard.press('/')
    await page.keyboard.type('is:')
    await page.getByRole('option').first().waitFor()
  },
  'no-match': async page => {
    await page.getByLabel('Filter', { exact: true }).fill('path:/none')
    await page.getByRole('heading', { name: 'No request matches' }).waitFor()
  },
  fault: async page => {
    await page.getByLabel('Filter', { exact: true }).fill('slower:soon')
    await page.getByRole('alert').waitFor()
  },
  keys: async page => {
    await page.keyboard.press('?')
    await page.getByRole('dialog').waitFor()
  },
  removed: async page => {
    await page.locator('.rows').focus()
    await page.keyboard.press('Home')
    await settled(page)
    await page.keyboard.press('x')
    await page.locator('.toast').waitFor()
    await page.getByRole('button', { name: 'Undo' }).focus()
  },
  gone: async page => {
    await page.goto(`${page.url().split('#')[0]}#/requests/99999`)
    await page.getByRole('heading', { name: 'is gone' }).waitFor()
  },
  verdict: async (page, shop) => {
    shop.fix()
    await choose(page, 'invoice.paid')
    await settled(page)
    await page.keyboard.press('r')
    await page.locator('.banner.ok').waitFor()
    await settled(page)
  },
  compare: async page => {
    await choose(page, 'invoice.paid')
    await settled(page)
    await page.keyboard.press('r')
    await page.locator('.banner').waitFor()
    await page.keyboard.press('d')
    await page.locator('.diff').first().waitFor()
  },
}

const LOOKS = [
  ['light', 1440, 900],
  ['dark', 1440, 900],
  ['light', 1024, 768],
  ['dark', 1024, 768],
  ['light', 390, 844],
  ['dark', 390, 844],
] as const

/** Those that the documentation shows. */
const SHOWN: Readonly<Record<string, string>> = {
  'inspector-detail-light-1440': 'inspector.png',
  'inspector-detail-dark-1440': 'inspector-dark.png',
  'inspector-detail-dark-390': 'inspector-phone.png',
  'admin-overview-light-1440': 'admin.png',
}

const browser = await chromium.launch({ executablePath: Bun.which('chromium') ?? '', args: ['--no-sandbox'] })

/** Opens the page in every look, brings it into a state and takes a picture. */
async function take(state: string, url: string, show: (page: Page) => Promise<unknown>): Promise<void> {
  for (const [colorScheme, width, height] of LOOKS) {
    const viewport = { width, height }
    const context = await browser.newContext({ colorScheme, viewport, reducedMotion: 'reduce' })
    const page = await context.newPage()
    await page.goto(url)
    await show(page)
    const name = `${state}-${colorScheme}-${width}`
    await page.mouse.move(0, 0)
    const picture = await page.screenshot({ path: join(folder, `${name}.png`) })
    const shown = SHOWN[name]
    if (shown !== undefined) await Bun.write(join(images, shown), picture)
    await context.close()
  }
}

async function inspector(): Promise<void> {
  const shop = await openShop()
  const url = shop.client.inspectorUrl ?? ''
  const waiting: Show = page => page.getByText('Waiting for the first request').waitFor()
  const one = (state: string, show: Show, at = url) =>
    take(`inspector-${state}`, at, page => show(page, shop))
  await one('first', waiting)
  const noToken: Show = page => page.getByText('This page has no token').waitFor()
  await one('token', noToken, `${url.split('#')[0]}#/requests`)
  await one('loading', async (page, own) => {
    // By then it has kept its token.
    await waiting(page, own)
    await page.route('**/api/v1/**', () => {})
    await page.reload()
    await page.getByText('Loading requests').waitFor()
  })
  await shop.morning()
  for (const [state, show] of Object.entries(INSPECTOR)) await one(state, show)
  await one('unread', async page => {
    await page.route('**/api/v1/exchanges/*', route => route.abort())
    await page.locator('.rows .row').first().click()
    await page.getByRole('heading', { name: 'cannot be read' }).waitFor()
  })
  const [words, note] = ['מחיר-הכובע-האדום/', 'a-value-that-never-ends-'.repeat(30)]
  await shop.visit('shop', `/${encodeURI(words).repeat(6)}?${'filter=long&'.repeat(60)}`, {
    method: 'POST',
    body: JSON.stringify({ [words.repeat(9)]: note, שם: 'כובע אדום', note: '‮reversed' }),
    headers: { 'content-type': 'application/json', 'x-note': note },
  })
  await one('long', async page => {
    await page.locator('.rows .row').first().click()
    await settled(page)
    await page.keyboard.press('h')
  })
  await one('lost', async page => {
    await choose(page, 'invoice.paid')
    await settled(page)
    await shop.client.disconnect()
    await page.getByText('The client on this machine has stopped.').waitFor()
    await shop.client.connect()
  })
  await shop.stop()
}

async function admin(): Promise<void> {
  await using busy = await busyServer('tunnel.example')
  const url = busy.server.adminUrl ?? ''
  await take('admin-token', url, page => page.getByLabel('Admin token').waitFor())
  const views = [
    'overview',
    'tunnels',
    'tunnels/docs-14',
    'clients',
    'traffic',
    'tokens',
    'bans',
    'log',
    'servers',
  ]
  const view = (hash: string) => async (page: Page) => {
    await page.getByText('Live').waitFor()
    await page.evaluate(`location.hash = '#/${hash}'`)
    await page.locator('.loading').waitFor({ state: 'detached' })
    // Once more with the numbers of what is in sight.
    await page.waitForResponse(response => response.url().includes('/views/'))
  }
  for (const hash of views)
    await take(`admin-${hash.replace('/', '-')}`, `${url}/#${ADMIN_TOKEN}`, view(hash))
  await take('admin-lost', `${url}/#${ADMIN_TOKEN}`, async page => {
    await view('overview')(page)
    await page.route('**/api/v1/**', route => route.abort())
    await page.getByText('Lost, trying again').waitFor()
  })
  await take('admin-new-token', `${url}/#${ADMIN_TOKEN}`, async page => {
    await view('tokens')(page)
    await page.getByRole('button', { name: 'New token' }).click()
    await page.getByLabel('Name of the token').waitFor()
  })
  await using empty = await startServer({ admin: adminOptions() })
  await take('admin-empty', `${empty.adminUrl}/#${ADMIN_TOKEN}`, view('overview'))
  await take('admin-confirm', `${url}/#${ADMIN_TOKEN}`, async page => {
    await view('tunnels')(page)
    await page.getByLabel('Actions for shop').click()
    await page.getByText('Block…').click()
    await page.getByRole('dialog').waitFor()
  })
}

async function visitor(): Promise<void> {
  await using own = await visitorPages(undefined)
  // The next visit is one too many.
  await fetch(own.at('rated'))
  for (const [title, url, act] of own.pages)
    await take(`visitor-${title.toLowerCase().replaceAll(/\W+/g, '-')}`, url, async page => act?.(page))
}

async function site(): Promise<void> {
  await Bun.$`bun run site`.cwd(root).quiet()
  const dist = join(root, 'docs/.vitepress/dist')
  const files = Bun.serve({
    port: 0,
    async fetch(request) {
      const { pathname } = new URL(request.url)
      for (const path of [pathname, `${pathname}.html`, `${pathname}index.html`]) {
        const file = Bun.file(join(dist, path))
        if (await file.exists()) return new Response(file)
      }
      return new Response(Bun.file(join(dist, '404.html')), { status: 404 })
    },
  })
  for (const path of ['', 'start/share', 'guards', 'configuration', 'errors', 'comparison', 'benchmarks'])
    await take(`site-${path.replace('/', '-') || 'home'}`, files.url.href + path, page =>
      page.waitForLoadState('networkidle'),
    )
  await files.stop(true)
}

const terminal = () => Bun.$`bun tools/terminal-picture.ts`.cwd(root)

const PAGES = { terminal, inspector, admin, visitor, site }
for (const [name, shoot] of Object.entries(PAGES))
  if (wanted.length === 0 || wanted.includes(name)) await shoot()
await browser.close()
