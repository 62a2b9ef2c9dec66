// Takes pictures of the inspector's page in every state, light and dark, 1440, 1024 and 390 px wide: the real page in Chromium, in
// front of the shop of tools/shop.ts.
//
//   bun tools/inspector-pictures.ts [FOLDER]     the states into FOLDER (.cache/inspector), and the pictures of the documentation

import { join, resolve } from 'node:path'
import { chromium, type Page } from 'playwright-core'
import { openShop } from './shop.ts'

const root = resolve(import.meta.dir, '..')
const folder = resolve(process.argv[2] ?? join(root, '.cache/inspector'))
const images = join(root, 'docs/images')

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

type Show = (page: Page) => Promise<unknown>

/** What stands on the page, by the name of its picture; each begins with nothing chosen. */
const STATES: Readonly<Record<string, Show>> = {
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
  paused: async page => {
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
  verdict: async page => {
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
  'detail-light-1440': 'inspector.png',
  'detail-dark-1440': 'inspector-dark.png',
  'detail-dark-390': 'inspector-phone.png',
}

const browser = await chromium.launch({ executablePath: Bun.which('chromium') ?? '', args: ['--no-sandbox'] })
const shop = await openShop()

/** Opens the page in every look, brings it into a state and takes a picture. */
async function take(state: string, show: Show, url = shop.client.inspectorUrl ?? ''): Promise<void> {
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

await take('first', page => page.getByText('Waiting for the first request').waitFor())
await take(
  'token',
  page => page.getByText('This page has no token').waitFor(),
  `${shop.client.inspectorUrl?.split('#')[0]}#/requests`,
)
// What the page shows until the list is here.
await take('loading', async page => {
  // By then it has kept its token.
  await page.getByText('Waiting for the first request').waitFor()
  await page.route('**/api/v1/**', () => {})
  await page.reload()
  await page.getByText('Loading requests').waitFor()
})
await shop.morning()
for (const [state, show] of Object.entries(STATES)) await take(state, show)
await take('lost', async page => {
  await choose(page, 'invoice.paid')
  await settled(page)
  await shop.client.disconnect()
  await page.getByText('The client on this machine has stopped.').waitFor()
  await shop.client.connect()
})
await browser.close()
await shop.stop()
