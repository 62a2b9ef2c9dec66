// The page of the admin listener in Chromium: every action, what strangers may have written, light and dark, narrow and wide.

import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { type Browser, chromium, type Page } from 'playwright-core'
import { TunnelClient, type TunnelServer } from '../../src/index.ts'
import { SqliteOperations } from '../../src/stores/sqlite-operations.ts'
import { SqliteTokens } from '../../src/stores/sqlite-tokens.ts'
import { buildPage } from '../../tools/pages.ts'
import { ADMIN_TOKEN, adminOptions, askAdmin } from '../support/admin.ts'
import { ask } from '../support/ask.ts'
import { next } from '../support/events.ts'
import { NaiveJsonClient } from '../support/json-client.ts'
import { describeWith } from '../support/needs.ts'
import { startServer } from '../support/tunnel.ts'

setDefaultTimeout(60_000)

const root = resolve(import.meta.dir, '../..')
const VIEWS = ['Overview', 'Tunnels', 'Clients', 'Traffic', 'Tokens', 'Bans', 'Log', 'Servers']
const AXE = 'axe.run().then(({ violations }) => violations.map(({ id, nodes }) => id + " " + nodes[0].html))'

test('the page is one file of at most 60 KB on the way', async () => {
  const { html } = await buildPage('admin')
  expect(Bun.gzipSync(html).length).toBeLessThan(60_000)
})

describeWith(['chromium'], 'in a browser', () => {
  let browser: Browser
  let server: TunnelServer
  let page: Page
  const clients: TunnelClient[] = []
  const store = new SqliteOperations(':memory:')
  const dir = mkdtempSync(join(tmpdir(), 'localtunnels-admin-'))
  const tokens = new SqliteTokens(join(dir, 'tokens.db'))

  async function share(subdomain: string): Promise<TunnelClient> {
    const client = new TunnelClient({
      server: server.url,
      subdomain,
      fetch: request =>
        new Response('hello', { status: new URL(request.url).pathname === '/bad' ? 500 : 200 }),
      reconnect: false,
    })
    client.on('error', () => {})
    clients.push(client)
    await client.connect()
    return client
  }

  async function opened(scheme: 'light' | 'dark' = 'light', width = 1280): Promise<Page> {
    const own = await browser.newPage({ colorScheme: scheme, viewport: { width, height: 800 } })
    await own.goto(`${server.adminUrl}/`)
    await own.getByLabel('Admin token').fill(ADMIN_TOKEN)
    await own.getByRole('button', { name: 'Sign in' }).click()
    await own.getByText('Live').waitFor()
    return own
  }

  const showView = (name: string, on = page) => on.getByRole('navigation').getByRole('link', { name }).click()
  const rowOf = (name: string) => page.getByRole('row', { name: new RegExp(`^${name} `) })
  const doing = async (row: string, item: string) => {
    await page.getByRole('button', { name: `Actions for ${row}` }).click()
    await page.getByRole('menuitem', { name: item }).click()
  }
  const confirm = (verb: string) => page.getByRole('dialog').getByRole('button', { name: verb }).click()

  beforeAll(async () => {
    browser = await chromium.launch({ executablePath: Bun.which('chromium') ?? '', args: ['--no-sandbox'] })
    server = await startServer({ admin: adminOptions({ store, audit: store, tokens }) })
    await share('shop')
    await share('blog')
    page = await opened()
  })
  afterAll(async () => {
    await browser?.close()
    await Promise.all(clients.map(client => client.disconnect()))
    await server?.stop()
    store.close()
    tokens.close()
    rmSync(dir, { recursive: true })
  })

  test('a wrong token is said, and nothing of the server is shown; the right one is kept for the tab', async () => {
    const stranger = await browser.newPage()
    await stranger.goto(`${server.adminUrl}/`)
    await stranger.getByLabel('Admin token').fill('a-guess-of-somebody')
    await stranger.getByRole('button', { name: 'Sign in' }).click()
    await stranger.getByText('That is not the token.').waitFor()
    expect(await stranger.locator('main').textContent()).not.toContain('shop')
    expect(await stranger.context().cookies()).toEqual([])
    await stranger.close()
    await page.reload()
    await page.getByText('Live').waitFor()
    await page.goto(`${server.adminUrl}/#${ADMIN_TOKEN}`)
    await page.getByText('Live').waitFor()
    expect(new URL(page.url()).hash).toBe('')
  })

  test('tunnels: rates and errors of now, a probe, and the filter', async () => {
    await ask(server.port, 'shop.localhost', { path: '/bad' })
    await showView('Tunnels')
    await page.getByRole('row', { name: /shop Up 1\.0 100\.0 % .*ms/ }).waitFor()
    await doing('shop', 'Probe now')
    await page.getByText(/^shop: 200 in/).waitFor()
    await page.keyboard.press('/')
    await page.keyboard.type('blo')
    await rowOf('shop').waitFor({ state: 'hidden' })
    expect(new URL(page.url()).hash).toBe('#/tunnels?q=blo')
    await page.reload()
    await rowOf('blog').waitFor()
    expect(await rowOf('shop').count()).toBe(0)
    await page.getByLabel('Filter tunnels').fill('')
    await rowOf('shop').waitFor()
  })

  test('clients: their version and address; one is disconnected when the operator says so', async () => {
    const client = await share('leaves')
    const cut = next(client, 'disconnected')
    await page.getByLabel('Filter').blur()
    await page.keyboard.press('3')
    const row = page.getByRole('row', { name: 'leaves' })
    await row.getByText(/localtunnels\/\d/).waitFor()
    const menu = row.getByRole('button', { name: /Actions for client/ })
    await menu.click()
    await page.getByRole('menuitem', { name: 'Disconnect…' }).click()
    await page.getByRole('dialog').waitFor()
    // What a careless Enter does.
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Cancel')
    await page.keyboard.press('Enter')
    await page.getByRole('dialog').waitFor({ state: 'hidden' })
    expect(await row.count()).toBe(1)
    await menu.click()
    await page.getByRole('menuitem', { name: 'Disconnect…' }).click()
    await page
      .getByRole('dialog')
      .getByRole('button', { name: /^Disconnect client \d+$/ })
      .click()
    await row.waitFor({ state: 'hidden' })
    await cut
  })

  test('a tunnel is closed, another blocked; the ban is listed, and lifted', async () => {
    await share('closed')
    await share('blocked')
    await showView('Tunnels')
    await doing('closed', 'Close…')
    await confirm('Close closed')
    await page.getByText('closed is closed.').waitFor()
    await doing('blocked', 'Block…')
    await confirm('Block blocked')
    await page.getByText('blocked is blocked.').waitFor()
    await showView('Bans')
    await page.getByRole('button', { name: 'New ban' }).click()
    await page.getByLabel('Address, network or name').fill('192.0.2.0/24')
    await page.getByLabel('Why').fill('a scan')
    await page.getByLabel('For how long').selectOption('3600')
    await page.getByRole('button', { name: 'Block', exact: true }).click()
    await page.getByRole('row', { name: /192\.0\.2\.0\/24.*a scan.*now.*20\d\d/ }).waitFor()
    await page.getByLabel('Address, network or name').fill('no address')
    await page.getByRole('button', { name: 'Block', exact: true }).click()
    await page
      .getByRole('alert')
      .getByText(/not an address/)
      .waitFor()
    await page.getByRole('button', { name: 'Lift the ban of blocked' }).click()
    await page.getByRole('row', { name: 'blocked tunnel' }).waitFor({ state: 'hidden' })
    expect(store.bans().map(({ value }) => value)).toEqual(['192.0.2.0/24'])
    await showView('Log')
    await page.getByRole('row', { name: /tunnel\.close.*closed/ }).waitFor()
  })

  test('a token is made, shown once, given another secret, and taken back', async () => {
    await showView('Tokens')
    await page.getByText('There is no token yet.').waitFor()
    await page.getByRole('button', { name: 'New token' }).click()
    await page.getByLabel('Name of the token').fill('laptop')
    await page.getByLabel('Subdomains that it opens').fill('shop, ci-*')
    await page.getByLabel('For how long').selectOption('86400')
    await page.getByRole('button', { name: 'Make' }).click()
    const first = await page.locator('.secret code').textContent()
    await page.getByRole('row', { name: /laptop.*names shop ci-\*.*never/ }).waitFor()
    const hashed = (secret: string | null) =>
      createHash('sha256')
        .update(secret ?? '')
        .digest('hex')
    expect(tokens.list()).toMatchObject([
      { name: 'laptop', hash: hashed(first), scope: { names: ['shop', 'ci-*'] } },
    ])
    await page.getByRole('button', { name: 'New token' }).click()
    await page.getByLabel('Name of the token').fill('laptop')
    await page.getByRole('button', { name: 'Make' }).click()
    await page.getByText(/There is a token called laptop/).waitFor()
    await doing('laptop', 'New secret…')
    await confirm('Rotate laptop')
    await page.getByText('laptop has another secret.').waitFor()
    const second = await page.locator('.secret code').textContent()
    expect(tokens.list()[0]?.hash).toBe(hashed(second))
    expect(second).not.toBe(first)
    await showView('Bans')
    await showView('Tokens')
    expect(await page.locator('.secret').count()).toBe(0)
    await doing('laptop', 'Revoke…')
    await page.getByText('No client uses it now. This cannot be undone.').waitFor()
    await confirm('Revoke laptop')
    await page.getByText('There is no token yet.').waitFor()
    expect(tokens.list()).toEqual([])
  })

  test('the server itself: certificates and others of its cluster', async () => {
    await page.keyboard.press('8')
    await page.getByRole('row', { name: /^this server Ready/ }).waitFor()
    await page.getByText('None: the server speaks plain HTTP').waitFor()
  })

  test('what strangers wrote is text: names of clients and tokens, and the log', async () => {
    const evil = '<img src=x onerror="document.title=1"><script>document.title=2</script>'
    using stranger = await new NaiveJsonClient(server.port, undefined, '?subdomain=strange', undefined, {
      host: 'localhost',
      'user-agent': evil,
    }).opened()
    await stranger.until(() => stranger.received.length > 0, 'the registration')
    expect((await askAdmin(server, '/tokens', { method: 'POST', body: { name: evil } })).status).toBe(400)
    const hash = createHash('sha256').update(evil).digest('hex')
    tokens.add({ name: evil, hash, createdAtMs: Date.now(), expiresAtMs: undefined, scope: {} })
    store.note({ atMs: Date.now(), action: evil, actor: evil, subject: evil, detail: evil })
    for (const view of ['Clients', 'Tokens', 'Log']) {
      await showView(view)
      await page.getByText(evil).first().waitFor()
      await page.waitForFunction(`document.title === '${view} · localhost · localtunnels admin'`)
      expect(await page.locator('main img, main script').count()).toBe(0)
    }
  })

  test('by a name that is made to lead here, a page gets nothing without the token', async () => {
    const { port } = new URL(server.adminUrl ?? '')
    const own = await chromium.launch({
      executablePath: Bun.which('chromium') ?? '',
      args: ['--no-sandbox', '--host-resolver-rules=MAP evil.example 127.0.0.1'],
    })
    const rebound = await own.newPage()
    await rebound.goto(`http://evil.example:${port}/`)
    await rebound.getByLabel('Admin token').waitFor()
    const statuses = await rebound.evaluate(
      `Promise.all(['/api/v1/status', '/api/v1/tunnels', '/metrics'].map(path => fetch(path).then(({ status }) => status)))`,
    )
    expect(statuses).toEqual([401, 401, 401])
    await own.close()
  })

  test('a page of another site has neither the API nor a frame', async () => {
    const site = Bun.serve({
      port: 0,
      fetch: () =>
        new Response(
          `<iframe src="${server.adminUrl}/"></iframe><script>fetch('${server.adminUrl}/api/v1/status',{headers:{authorization:'Bearer ${ADMIN_TOKEN}'}}).then(r=>r.text()).then(t=>document.title='read '+t,()=>document.title='refused')</script>`,
          { headers: { 'content-type': 'text/html' } },
        ),
    })
    const other = await browser.newPage()
    await other.goto(`http://127.0.0.1:${site.port}/`)
    await other.waitForFunction('document.title !== ""')
    expect(await other.title()).toBe('refused')
    expect(await other.frames()[1]?.content()).not.toContain('Admin token')
    await other.close()
    await site.stop(true)
  })

  /** What lies over something else, or reaches out of the window or of what scrolls. */
  const MISPLACED = `(() => {
    const all = [...document.querySelectorAll('main :is(button, input, select, tbody th, tbody td)')]
    const parts = all.filter(one => one.getClientRects().length > 0)
    const box = one => one.getBoundingClientRect()
    const named = one => one.tagName + ' ' + (one.innerText || one.name || one.ariaLabel)
    const liesOver = (one, other) => {
      if (one === other || one.contains(other) || other.contains(one)) return false
      const [a, b] = [box(one), box(other)]
      return Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1
    }
    return [
      ...parts.filter(one => box(one).left < 0 || box(one).right > innerWidth).map(one => named(one) + ' is outside'),
      ...parts.filter(one => one.tagName === 'BUTTON').flatMap(one =>
        parts.filter(other => liesOver(one, other)).map(other => named(one) + ' lies over ' + named(other))),
      ...[...document.querySelectorAll('.tall, main, .card')].filter(one => one.scrollWidth > one.clientWidth)
        .map(one => (one.ariaLabel || one.tagName) + ' has to be scrolled'),
    ]
  })()`

  test('on a phone nothing lies over anything else, and nothing has to be scrolled sideways', async () => {
    await share('a-rather-long-name-of-a-preview-of-a-pull-request-12345')
    const made = [
      [
        '/bans',
        { kind: 'address', value: '2001:db8:1234:5678::/64', reason: 'a scan of the night, '.repeat(5) },
      ],
      ['/tokens', { name: 'on-a-phone', names: ['shop', 'blog', 'a-name-with-dashes-in-it-that-is-long'] }],
    ] as const
    for (const [path, body] of made)
      expect((await askAdmin(server, path, { method: 'POST', body })).status).toBeLessThan(300)
    const minute = Math.floor(Date.now() / 60_000) * 60_000
    store.add(minute, [{ tunnel: 'shop', requests: 100, errors: 3, bytesIn: 10, bytesOut: 2_048 }])
    for (const width of [320, 360, 400]) {
      const own = await opened('light', width)
      for (const name of VIEWS) {
        await showView(name, own)
        await own.locator('.loading').waitFor({ state: 'detached' })
        if (name !== 'Traffic') {
          await own.locator('main tbody tr').first().waitFor()
          expect(await own.locator('main tbody tr').count()).toBeGreaterThan(0)
        }
        expect([width, name, await own.evaluate(MISPLACED)]).toEqual([width, name, []])
      }
      await own.close()
    }
  })

  for (const scheme of ['light', 'dark'] as const)
    for (const width of [1440, 1024, 390])
      test(`${scheme}, ${width} pixels: nothing to find for axe, nothing wider than the screen`, async () => {
        const own = await opened(scheme, width)
        // The page's policy does not let scripts in that are not its own.
        await own.evaluate(await Bun.file(join(root, 'node_modules/axe-core/axe.min.js')).text())
        for (const name of VIEWS) {
          await showView(name, own)
          await own.locator('.loading').waitFor({ state: 'detached' })
          expect([name, await own.evaluate(AXE)]).toEqual([name, []])
          expect(await own.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(width)
          if (process.env.LT_SCREENSHOTS)
            await own.screenshot({
              path: `${process.env.LT_SCREENSHOTS}/admin-${name}-${scheme}-${width}.png`,
            })
        }
        await own.close()
      })
})
