// Takes pictures of the inspector's page in every state, light and dark, 1280 and 390 px wide: the real page in Chromium, in front
// of a small shop.
//
//   bun tools/inspector-pictures.ts        writes docs/images/inspector/ and the three pictures of the documentation

import { createHmac } from 'node:crypto'
import { join, resolve } from 'node:path'
import { type Browser, chromium, type Page } from 'playwright-core'
import { guarding, TunnelClient, TunnelServer } from '../src/index.ts'

const folder = join(resolve(import.meta.dir, '..'), 'docs/images')
const SECRET = 'whsec of the shop'
const ORDER = { id: 'ord_7f3a', items: [{ sku: 'hat-red', count: 2 }], total: 4_980, currency: 'EUR' }
let isFixed = false

const app = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  async fetch(request, server) {
    const { pathname } = new URL(request.url)
    if (pathname === '/live' && server.upgrade(request)) return undefined
    const body = await request.text()
    if (pathname === '/hooks/github') return Response.json({ queued: true })
    if (pathname === '/api/orders') return Response.json({ ...ORDER, note: body }, { status: 201 })
    if (pathname === '/api/checkout' && !isFixed)
      return Response.json({ error: 'total is undefined', at: 'checkout.ts:41' }, { status: 500 })
    if (pathname === '/api/checkout') return Response.json({ ok: true, total: ORDER.total })
    if (pathname === '/export')
      return new Response('x'.repeat(830_000), { headers: { 'content-type': 'text/csv' } })
    if (pathname === '/') return new Response('<h1>Hats</h1>', { headers: { 'content-type': 'text/html' } })
    return new Response('not here', { status: 404 })
  },
  websocket: {
    open: socket => void socket.send('{"type":"hello","room":1}'),
    message: (socket, text) => void socket.send(`{"type":"sold","echo":${String(text)}}`),
  },
})

const server = new TunnelServer({ port: 0, host: '127.0.0.1', guarding: guarding() })
await server.start()

async function shared(subdomain: string): Promise<TunnelClient> {
  const client = new TunnelClient({
    server: server.url,
    subdomain,
    host: '127.0.0.1',
    port: app.port ?? 0,
    inspect: { maxBody: 65_536 },
    verify: { provider: 'github', secret: SECRET, paths: ['/hooks/*'] },
    guard: { paths: { '/admin': { password: 'correct horse' } } },
  })
  await client.connect()
  return client
}

const visit = (path: string, init: RequestInit = {}) =>
  fetch(`http://127.0.0.1:${server.port}${path}`, {
    ...init,
    headers: { host: 'shop.localhost', ...(init.headers as Record<string, string>) },
  }).then(answer => answer.bytes())

async function fill(): Promise<void> {
  const json = { 'content-type': 'application/json' }
  await visit('/')
  await visit('/favicon.ico')
  const socket = new WebSocket(`ws://127.0.0.1:${server.port}/live`, { headers: { host: 'shop.localhost' } })
  await new Promise(resolve => socket.addEventListener('message', resolve, { once: true }))
  for (const sku of ['hat-red', 'hat-blue']) {
    const answered = new Promise(resolve => socket.addEventListener('message', resolve, { once: true }))
    socket.send(JSON.stringify({ watch: sku }))
    await answered
  }
  socket.close(1_000, 'enough')
  await visit('/admin')
  await visit('/export')
  const event = '{"action":"opened","number":42}'
  for (const secret of [SECRET, 'another']) {
    const signature = createHmac('sha256', secret).update(event).digest('hex')
    const headers = { ...json, 'x-github-event': 'issues', 'x-hub-signature-256': `sha256=${signature}` }
    await visit('/hooks/github', { method: 'POST', body: event, headers })
  }
  const headers = { ...json, authorization: 'Bearer not-for-eyes' }
  await visit('/api/orders', { method: 'POST', body: JSON.stringify({ cart: 'c_19' }), headers })
  await visit('/api/checkout', { method: 'POST', body: JSON.stringify(ORDER), headers })
}

async function choose(page: Page, path: string): Promise<void> {
  await page.locator('.row', { hasText: path }).first().click()
  await page.locator('.detail h2', { hasText: path }).waitFor()
}

/** What stands on the page, by the name of its picture; each begins with nothing chosen. */
const STATES: Readonly<Record<string, (page: Page) => Promise<unknown>>> = {
  list: page => page.locator('.row').first().waitFor(),
  request: async page => {
    await choose(page, '/api/orders')
    await page.locator('#panel').getByText('cart').waitFor()
  },
  answer: async page => {
    await choose(page, '/api/checkout')
    await page.getByRole('tab', { name: 'Answer' }).click()
    await page.locator('#panel').getByText('total is undefined').waitFor()
  },
  messages: async page => {
    await choose(page, '/live')
    await page.locator('.messages li').nth(3).waitFor()
  },
  webhook: async page => {
    await choose(page, '/hooks/github')
    await page.locator('.detail').getByText('does not match').waitFor()
  },
  cut: async page => {
    await choose(page, '/export')
    await page.getByRole('tab', { name: 'Answer' }).click()
    await page.getByRole('note').waitFor()
    await page.locator('pre.text').waitFor()
  },
  refused: async page => {
    await choose(page, '/admin')
    await page.locator('.detail').getByText('ACCESS_REQUIRED').waitFor()
  },
  editor: async page => {
    await choose(page, '/api/orders')
    await page.keyboard.press('e')
    await page.getByRole('dialog').getByLabel('Body').waitFor()
  },
  keys: async page => {
    await page.keyboard.press('?')
    await page.getByRole('dialog').waitFor()
  },
  fault: async page => {
    await page.getByLabel('Filter').fill('slower:soon')
    await page.getByRole('alert').getByText('of the filter').waitFor()
  },
  compare: async page => {
    isFixed = true
    // The first one is what was broken; later ones are its replays.
    await page.locator('.row', { hasText: '/api/checkout' }).last().click()
    await page.locator('.detail h2', { hasText: '/api/checkout' }).waitFor()
    await page.keyboard.press('r')
    await page.locator('.toast', { hasText: 'Fixed' }).waitFor()
    await page.getByRole('tab', { name: /^Compare/ }).click()
    await page.locator('.diff .added').first().waitFor()
    isFixed = false
  },
}

const LOOKS = [
  ['light', 1280, 800],
  ['dark', 1280, 800],
  ['light', 390, 800],
  ['dark', 390, 800],
] as const

/** Those that the documentation shows. */
const SHOWN: Readonly<Record<string, string>> = {
  'compare-light-1280': 'inspector.png',
  'compare-dark-1280': 'inspector-dark.png',
  'request-light-390': 'inspector-phone.png',
}

/** The same as WebP, a quarter of the size. */
async function smaller(browser: Browser, png: Buffer): Promise<Buffer> {
  const page = await browser.newPage()
  const url: string = await page.evaluate(`(async () => {
    const picture = new Image()
    picture.src = 'data:image/png;base64,${png.toString('base64')}'
    await picture.decode()
    const canvas = Object.assign(document.createElement('canvas'), { width: picture.width, height: picture.height })
    canvas.getContext('2d').drawImage(picture, 0, 0)
    return canvas.toDataURL('image/webp', 0.75)
  })()`)
  await page.close()
  return Buffer.from(url.slice(url.indexOf(',') + 1), 'base64')
}

/** Opens the page in every look, brings it into a state and takes a picture. */
async function take(
  browser: Browser,
  state: string,
  url: () => string,
  show: (page: Page) => Promise<unknown>,
): Promise<void> {
  for (const [colorScheme, width, height] of LOOKS) {
    const context = await browser.newContext({
      colorScheme,
      viewport: { width, height },
      reducedMotion: 'reduce',
    })
    const page = await context.newPage()
    await page.goto(url())
    await show(page)
    const name = `${state}-${colorScheme}-${width}`
    const picture = await page.screenshot()
    await Bun.write(join(folder, `inspector/${name}.webp`), await smaller(browser, picture))
    const shown = SHOWN[name]
    if (shown !== undefined) await Bun.write(join(folder, shown), picture)
    await context.close()
  }
}

const browser = await chromium.launch({ executablePath: Bun.which('chromium') ?? '', args: ['--no-sandbox'] })
const client = await shared('shop')
const url = () => client.inspectorUrl ?? ''
await take(browser, 'empty', url, page => page.getByText('Nothing came yet.').waitFor())
await take(
  browser,
  'token',
  () => `${url().split('#')[0]}#wrong`,
  page => page.getByText('no valid token').waitFor(),
)
// What the page shows until the list is here.
await take(browser, 'loading', url, async page => {
  await page.route('**/api/v1/**', () => {})
  await page.reload()
  await page.getByText('Loading…').waitFor()
})
await fill()
for (const [state, show] of Object.entries(STATES)) await take(browser, state, url, show)
await take(browser, 'lost', url, async page => {
  await page.locator('.row').first().waitFor()
  await client.disconnect()
  await page.getByText('connection lost').waitFor()
  await client.connect()
})
await browser.close()
await client.disconnect()
await server.stop()
await app.stop(true)
