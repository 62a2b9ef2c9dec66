// The page of the inspector in Chromium: every action, every attack, light and dark, narrow and wide.
// 10 s on a busy machine for ten thousand exchanges.

import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { join, resolve } from 'node:path'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import { TunnelClient, type TunnelServer } from '../../src/index.ts'
import { buildPage } from '../../tools/pages.ts'
import { ask } from '../support/ask.ts'
import { describeWith } from '../support/needs.ts'
import { startServer } from '../support/tunnel.ts'

setDefaultTimeout(20_000)

const root = resolve(import.meta.dir, '../..')
const JSON_TYPE = { 'content-type': 'application/json' }

test('the page is one file of at most 60 KB on the way', async () => {
  const { html } = await buildPage('inspector')
  expect(Bun.gzipSync(html).length).toBeLessThan(60_000)
  expect(html).not.toMatch(/<(?:script|link|img)[^>]* (?:src|href)="(?!data:)/)
})

interface Scrolled {
  readonly mostRows: number
  readonly height: number
  readonly longestTaskMs: number
  /** The text of the last row. */
  readonly oldest: string
}

/** Scrolls the list to its end, some screens with each frame, and notes what it meets. */
const SCROLL = `async list => {
  window.scrolled = { mostRows: 0, height: 0, longestTaskMs: 0, oldest: '' }
  const { scrolled } = window
  const tasks = new PerformanceObserver(entries => {
    for (const { duration } of entries.getEntries()) scrolled.longestTaskMs = Math.max(scrolled.longestTaskMs, duration)
  })
  tasks.observe({ type: 'longtask' })
  for (let still = 0; still < 60; ) {
    await new Promise(requestAnimationFrame)
    scrolled.mostRows = Math.max(scrolled.mostRows, document.querySelectorAll('.row').length)
    const before = list.scrollTop
    list.scrollTop += 2400
    still = list.scrollTop === before ? still + 1 : 0
  }
  tasks.disconnect()
  scrolled.height = list.scrollHeight
  scrolled.oldest = list.querySelector('.row:last-child').textContent
}`

describeWith(['chromium'], 'in a browser', () => {
  let browser: Browser
  let server: TunnelServer
  let client: TunnelClient
  let context: BrowserContext
  let page: Page
  /** Sees the body of each request to /untouched. */
  let seen: (body: Buffer) => void = () => {}
  /** What the app answers to /state. */
  let state = 500

  beforeAll(async () => {
    browser = await chromium.launch({ executablePath: await chromiumPath(), args: ['--no-sandbox'] })
    server = await startServer()
    client = new TunnelClient({
      server: server.url,
      subdomain: 'shop',
      inspect: { maxExchanges: 10_000, maxBody: 4_096, rate: 0 },
      fetch: answer,
    })
    await client.connect()
    context = await browser.newContext({ viewport: { width: 1280, height: 800 } })
    await context.grantPermissions(['clipboard-read', 'clipboard-write'])
    page = await opened()
  })
  afterAll(async () => {
    await browser?.close()
    await client?.disconnect()
    await server?.stop()
  })

  async function answer(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url)
    if (pathname === '/state') return new Response(state === 200 ? 'well' : 'broken', { status: state })
    if (pathname.startsWith('/untouched/')) {
      seen(Buffer.from(await request.arrayBuffer()))
      return new Response('taken')
    }
    if (pathname === '/html')
      return new Response(EVIL, {
        headers: { 'content-type': 'text/html', 'x-evil': EVIL, 'set-cookie': 's=1' },
      })
    if (pathname === '/sse')
      return new Response('data: one\n\nevent: price\ndata: 12\n\n', {
        headers: { 'content-type': 'text/event-stream' },
      })
    if (pathname === '/image') return new Response(PIXEL, { headers: { 'content-type': 'image/png' } })
    return Response.json({ ok: true, got: await request.text() })
  }

  const visit = (path: string, options: Parameters<typeof ask>[2] = {}) =>
    ask(server.port, 'shop.localhost', { path, ...options })

  const sendBytes = (path: string, body: Buffer) =>
    fetch(`http://127.0.0.1:${server.port}${path}`, {
      method: 'POST',
      body: new Uint8Array(body),
      headers: { host: 'shop.localhost', connection: 'close' },
    })

  async function opened(in_ = context): Promise<Page> {
    const one = await in_.newPage()
    // Below that of the test: what is missing is named then.
    one.setDefaultTimeout(8_000)
    one.on('pageerror', error => {
      throw error
    })
    await one.goto(client.inspectorUrl ?? '')
    await one.getByText('live', { exact: true }).waitFor()
    return one
  }

  /** The newest exchange with this path, chosen. */
  async function choose(path: string): Promise<void> {
    await page.locator('.row', { hasText: path }).first().click()
    await page.locator('.detail h2', { hasText: path }).waitFor()
    await page.getByRole('tab').first().click()
  }

  const says = (text: string) => page.locator('.toast', { hasText: text }).waitFor()

  test('nothing came yet, and then it comes by itself', async () => {
    await page.getByText('Nothing came yet.').waitFor()
    await visit('/first?a=1')
    await page.locator('.row', { hasText: '/first?a=1' }).waitFor()
    expect(await page.getByText('Nothing came yet.').count()).toBe(0)
  })

  test('a request: fields, a secret that is shown when asked for, and JSON as a tree', async () => {
    await visit('/hooks', {
      method: 'POST',
      body: '{"type":"paid","n":[1,null]}',
      headers: { ...JSON_TYPE, authorization: 'Bearer abc' },
    })
    await choose('/hooks')
    const panel = page.locator('#panel')
    await panel.getByText('POST /hooks HTTP/1.1').waitFor()
    expect(await panel.textContent()).not.toContain('Bearer abc')
    await page.keyboard.press('s')
    await panel.getByText('Bearer abc').waitFor()
    await panel.getByText('"paid"').waitFor()
    await panel.getByRole('button', { name: 'hex' }).click()
    await panel.getByText('7b 22 74 79 70 65').waitFor()
    await panel.getByRole('button', { name: 'pretty' }).click()
    await page.getByRole('tab', { name: 'Answer' }).click()
    await panel.getByText('HTTP/1.1 200').waitFor()
  })

  test('forms, parts, pictures and events are shown as what they are, and a cut body as cut', async () => {
    const form = { 'content-type': 'application/x-www-form-urlencoded' }
    await visit('/form', { method: 'POST', body: 'name=Ada+Lovelace&city=London', headers: form })
    await choose('/form')
    await page.getByRole('row', { name: 'name Ada Lovelace' }).waitFor()
    const parts =
      '--b\r\nContent-Disposition: form-data; name="file"; filename="<b>.txt"\r\n\r\nhello\r\n--b--\r\n'
    await visit('/parts', {
      method: 'POST',
      body: parts,
      headers: { 'content-type': 'multipart/form-data; boundary=b' },
    })
    await choose('/parts')
    await page.getByRole('row', { name: 'file <b>.txt (5 B)' }).waitFor()
    await visit('/image')
    await choose('/image')
    await page.keyboard.press('2')
    await page.locator('img.picture').waitFor()
    await visit('/sse')
    await choose('/sse')
    await page.getByRole('tab', { name: 'Messages 2' }).click()
    await page.locator('.messages li', { hasText: 'price' }).getByText('12').waitFor()
    await visit('/large', { method: 'POST', body: 'x'.repeat(10_000) })
    await choose('/large')
    await page.getByText('4 KiB of 9.8 KiB are kept: it cannot be sent again as it was.').waitFor()
    expect(await page.getByRole('button', { name: 'Replay', exact: true }).isDisabled()).toBe(true)
  })

  test('replay after a fix says fixed, and shows what differs', async () => {
    state = 500
    await visit('/state')
    await choose('/state')
    state = 200
    await page.keyboard.press('r')
    await says('Fixed: the error is gone.')
    // The key does what the button does, which waits for the answer and for the exchange that it is compared with.
    await page.getByRole('tab', { name: 'Compare with' }).waitFor()
    await page.locator('button[title="d"]:not([disabled])').waitFor()
    await page.keyboard.press('d')
    await page.locator('.diff .removed', { hasText: 'broken' }).waitFor()
    await page.locator('.diff .added', { hasText: 'well' }).waitFor()
  })

  test('edit and replay: method, path, fields, body; and several times', async () => {
    await visit('/edit', { method: 'POST', body: 'before', headers: { 'content-type': 'text/plain' } })
    await choose('/edit')
    await page.keyboard.press('e')
    const dialog = page.getByRole('dialog', { name: 'Edit and replay' })
    await dialog.getByLabel('Path').fill('/edited?by=hand')
    await dialog.getByLabel('Method').fill('PUT')
    await dialog.getByLabel('Body').fill('after')
    await dialog.getByLabel('Times').fill('2')
    await dialog.getByRole('button', { name: 'Send' }).click()
    await says('Sent 2 times.')
    await page.locator('.detail h2', { hasText: 'PUT /edited?by=hand' }).waitFor()
    await page.locator('#panel').getByText('after').waitFor()
    await page.locator('.row', { hasText: '/edited?by=hand' }).nth(1).waitFor()
  })

  test('a body that was not touched is sent byte for byte, whatever else was edited', async () => {
    const bodies: Buffer[] = []
    seen = body => bodies.push(body)
    for (const [kind, body] of [
      ['text', Buffer.from('one\r\ntwo\n')],
      ['bytes', Buffer.from('500d0afffe0001', 'hex')],
    ] as const) {
      bodies.length = 0
      await sendBytes(`/untouched/${kind}`, body)
      await choose(`/untouched/${kind}`)
      await page.keyboard.press('e')
      const dialog = page.getByRole('dialog', { name: 'Edit and replay' })
      await dialog.getByLabel('Path').fill(`/untouched/${kind}?edited`)
      await dialog.getByRole('button', { name: 'Send' }).click()
      await says('The answer is')
      expect(bodies).toEqual([body, body])
      await page.keyboard.press('x')
      await page.locator('.row', { hasText: `/untouched/${kind}?edited` }).waitFor({ state: 'detached' })
    }
  })

  test('copies as curl, pins, notes, deletes', async () => {
    await visit('/keep', { headers: { cookie: 'a=secret' } })
    await choose('/keep')
    await page.getByLabel('Copy as').selectOption('curl')
    await says('Copied, without secrets')
    const copied = await page.evaluate('navigator.clipboard.readText()')
    expect(copied).toContain('curl ')
    expect(copied).not.toContain('a=secret')
    await page.keyboard.press('p')
    await page.locator('.row', { hasText: 'pinned' }).waitFor()
    await page.keyboard.press('n')
    await page.keyboard.type('ask Anna')
    await page.keyboard.press('Enter')
    await page.locator('.row', { hasText: 'ask Anna' }).waitFor()
    // What is pinned stays.
    await page.getByRole('button', { name: 'Clear' }).click()
    await says('Cleared. What is pinned stays.')
    await page.locator('.row', { hasText: '/first?a=1' }).waitFor({ state: 'detached' })
    expect(await page.locator('.row').count()).toBe(1)
    await choose('/keep')
    await page.keyboard.press('x')
    await page.locator('.row', { hasText: '/keep' }).waitFor({ state: 'detached' })
  })

  test('the filter narrows the list, also for what comes, and says where it is wrong', async () => {
    await visit('/one')
    await visit('/two')
    await page.locator('.row', { hasText: '/one' }).waitFor()
    await page.locator('.row', { hasText: '/two' }).waitFor()
    await page.keyboard.press('Escape')
    await page.keyboard.press('/')
    await page.keyboard.type('path:/two')
    await page.locator('.row', { hasText: '/one' }).waitFor({ state: 'detached' })
    await visit('/one')
    await visit('/two?again')
    await page.locator('.row', { hasText: '/two?again' }).waitFor()
    expect(await page.locator('.row', { hasText: '/one' }).count()).toBe(0)
    await page.getByLabel('Filter').fill('slower:soon')
    await page.getByRole('alert').getByText('of the filter').waitFor()
    await page.getByLabel('Filter').fill('path:/none')
    await page.getByText('Nothing matches this filter.').waitFor()
    await page.getByRole('button', { name: 'Show everything' }).click()
    await page.locator('.row', { hasText: '/one' }).first().waitFor()
  })

  test('a search that takes long says so, and ends when another one begins', async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    const isSearch = (url: URL) => url.pathname === '/api/v1/exchanges' && url.search.includes('body')
    await page.route(isSearch, async route => {
      await released
      await route.abort().catch(() => {})
    })
    const failed = page.waitForEvent('requestfailed', request => isSearch(new URL(request.url())))
    await page.getByLabel('Filter').fill('body:needle')
    await page.getByText('searching…').waitFor()
    await page.getByLabel('Filter').fill('path:/none')
    expect((await failed).failure()?.errorText).toContain('ABORTED')
    await page.getByText('live', { exact: true }).waitFor()
    await page.getByText('Nothing matches this filter.').waitFor()
    release()
    await page.unrouteAll({ behavior: 'wait' })
    await page.getByRole('button', { name: 'Show everything' }).click()
  })

  test('everything goes from the keyboard, and the help lists it', async () => {
    await page.keyboard.press('?')
    const help = page.getByRole('dialog', { name: 'Keys' })
    await help.getByRole('row', { name: 'e edit and replay' }).waitFor()
    await page.keyboard.press('Escape')
    await help.waitFor({ state: 'detached' })
    await page.keyboard.press('Home')
    const first = await page.locator('[aria-selected="true"].row').getAttribute('id')
    await page.keyboard.press('j')
    await page.keyboard.press('k')
    expect(await page.locator('[aria-selected="true"].row').getAttribute('id')).toBe(first)
    await page.keyboard.press('Escape')
    await page.getByText('Choose an exchange').waitFor()
  })

  test('every control is reached by Tab, shows that it is, and works by a key', async () => {
    await visit('/keys', { method: 'POST', body: '{"a":1}', headers: { ...JSON_TYPE, cookie: 'a=b' } })
    await choose('/keys')
    await page.locator('#panel').getByText('"a"').or(page.locator('#panel').getByText('a:')).first().waitFor()
    await page.locator('button[title="e"]:not([disabled])').waitFor()
    const count = await page.evaluate<number>(MARK_CONTROLS)
    expect(count).toBeGreaterThan(15)
    const reached = new Map<string, boolean>()
    for (let press = 0; press < count + 5 && reached.size < count; press++) {
      await page.keyboard.press('Tab')
      const [control, isShown] = await page.evaluate<[string, boolean]>(FOCUSED)
      if (control !== '') reached.set(control, isShown)
    }
    expect(reached.size).toBe(count)
    expect([...reached].filter(([, isShown]) => !isShown)).toEqual([])
    const press = async (name: string, key: string) => {
      await page.getByRole('button', { name, exact: true }).focus()
      await page.keyboard.press(key)
    }
    await press('Show secrets', 'Enter')
    await page.locator('#panel').getByText('a=b').waitFor()
    await press('hex', 'Space')
    await page.locator('#panel').getByText('7b 22 61').waitFor()
    await page.getByLabel('Copy as').focus()
    await page.keyboard.press('ArrowDown')
    await says('Copied')
    await press('Replay', 'Enter')
    await says('The answer is')
    await press('Edit and replay', 'Enter')
    await page.getByRole('dialog').waitFor()
    // The page behind it is out of reach.
    for (let at = 0; at < 8; at++) {
      await page.keyboard.press('Tab')
      expect(await page.evaluate('document.activeElement.dataset.control')).toBeUndefined()
    }
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    await press('pretty', 'Enter')
  })

  test('scripts in a path, a field, a body, a file name and an event do not run', async () => {
    await visit(`/html?${encodeURI(EVIL)}`, { headers: { 'x-evil': EVIL } })
    await choose('/html')
    await page.keyboard.press('2')
    await page.frameLocator('iframe.page').getByText('captured').waitFor()
    await page.getByRole('button', { name: 'text' }).click()
    await page.locator('pre.text', { hasText: 'window.owned' }).waitFor()
    expect(await page.evaluate('String(window.owned ?? document.title)')).toBe('localtunnels inspector')
    const { headers } = await fetch((client.inspectorUrl ?? '').split('#')[0] ?? '')
    expect(headers.get('content-security-policy')).not.toContain('unsafe')
    expect(headers.get('set-cookie')).toBeNull()
  })

  test('a page of another site learns nothing and changes nothing', async () => {
    const [base = '', token = ''] = (client.inspectorUrl ?? '').split('/#')
    using site = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch: () =>
        new Response('<!doctype html><title>foreign</title>', { headers: { 'content-type': 'text/html' } }),
    })
    const foreign = await context.newPage()
    await foreign.goto(`http://127.0.0.1:${site.port}/`)
    const attempt = (init: string) =>
      foreign.evaluate(
        `fetch('${base}/api/v1/exchanges', ${init}).then(answer => answer.text(), () => 'refused')`,
      )
    expect(await attempt(`{ headers: { authorization: 'Bearer ${token}' } }`)).toBe('refused')
    expect(await attempt(`{ method: 'DELETE', mode: 'no-cors' }`)).toBe('refused')
    // Forms, of which a browser asks nothing before it sends them.
    await visit('/untouched-by-forms')
    const bodies = seen
    let count = 0
    seen = () => count++
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data']) {
      const form = `Object.assign(document.createElement('form'), { method: 'post', enctype: '${type}', action: '${base}/api/v1/exchanges/latest/replay' })`
      const answered = foreign.waitForResponse(`${base}/**`)
      await foreign.evaluate(`document.body.appendChild(${form}).submit()`)
      expect((await answered).status()).toBe(403)
      await foreign.getByText('INSPECT_REFUSED').waitFor()
      await foreign.goto(`http://127.0.0.1:${site.port}/`)
    }
    expect(count).toBe(0)
    seen = bodies
    // A frame of it stays empty.
    await foreign.evaluate(
      `document.body.append(Object.assign(document.createElement('iframe'), { src: '${base}/#${token}' }))`,
    )
    await foreign.locator('iframe').waitFor()
    expect(await foreign.frames().at(-1)?.locator('.row').count()).toBe(0)
    await foreign.close()
  })

  test('the filter is typed while requests come', async () => {
    const coming = setInterval(() => void visit('/noise'), 20)
    await page.getByLabel('Filter').pressSequentially('path:/none', { delay: 30 })
    await page.getByText('Nothing matches this filter.').waitFor()
    clearInterval(coming)
    expect(await page.getByLabel('Filter').inputValue()).toBe('path:/none')
    await page.getByRole('button', { name: 'Show everything' }).click()
    await page.locator('.row', { hasText: '/noise' }).first().waitFor()
    expect(await page.getByLabel('Filter').inputValue()).toBe('')
    await page.keyboard.press('Escape')
  })

  test('ten thousand exchanges scroll: only those in sight are in the document, and no frame takes long', async () => {
    for (let index = 0; index < 10_000; index += 100)
      await Promise.all(Array.from({ length: 100 }, (_, one) => visit(`/many/${index + one}`)))
    await page.reload()
    await page.locator('.row').first().waitFor()
    await page.evaluate(`(${SCROLL})(document.querySelector('.list'))`)
    const seen = await page.evaluate<Scrolled>('scrolled')
    expect(seen.mostRows).toBeLessThan(60)
    expect(seen.oldest).toContain('/many/')
    expect(seen.height).toBe(10_000 * 44)
    // A machine that has other things to do makes frames late; a list that draws all of its rows takes seconds for one.
    expect(seen.longestTaskMs).toBeLessThan(1_000)
    await page.locator('.list').focus()
    await page.keyboard.press('Home')
    await page.keyboard.press('End')
    await page.locator('.detail').waitFor()
    expect(await page.locator('.row').count()).toBeLessThan(60)
  }, 60_000)

  test('a client of many tunnels: their URLs are reached, and the page is no wider', async () => {
    const names = Array.from({ length: 8 }, (_, index) => `one-of-many-tunnels-${index}`)
    const tunnels = await Promise.all(names.map(subdomain => client.http({ fetch: answer, subdomain })))
    const one = await opened()
    try {
      const last = one.locator('.tunnels a').last()
      await last.focus()
      const { x = 0, width = 0 } = (await last.boundingBox()) ?? {}
      expect(x + width).toBeLessThanOrEqual(Number(await one.evaluate('innerWidth')))
      expect(await one.evaluate('document.documentElement.scrollWidth - innerWidth')).toBe(0)
    } finally {
      await one.close()
      for (const tunnel of tunnels) await tunnel.close()
    }
  })

  test.each([
    ['light', 1280],
    ['dark', 1280],
    ['light', 390],
    ['dark', 390],
  ] as const)(
    '%s, %d pixels: nothing to find for axe, nothing wider than the screen',
    async (colorScheme, width) => {
      const narrow = await browser.newContext({ colorScheme, viewport: { width, height: 800 } })
      const one = await opened(narrow)
      await one.locator('.row').first().waitFor()
      const isWhole = () => one.evaluate('document.documentElement.scrollWidth <= innerWidth')
      const faults = async () => {
        await one.evaluate(await Bun.file(join(root, 'node_modules/axe-core/axe.min.js')).text())
        return one.evaluate(
          'axe.run().then(({ violations }) => violations.map(({ id, nodes }) => id + " " + nodes[0].html))',
        )
      }
      expect(await faults()).toEqual([])
      expect(await isWhole()).toBe(true)
      await one.locator('.row').first().click()
      await one.locator('.detail').waitFor()
      const looksGood = async () => {
        expect(await faults()).toEqual([])
        expect(await isWhole()).toBe(true)
      }
      await looksGood()
      // Each state in each scheme, once.
      if ((width === 390) === (colorScheme === 'dark')) {
        await one.keyboard.press('2')
        await one.locator('#panel').getByText('HTTP/1.1').waitFor()
        await looksGood()
        await one.getByRole('button', { name: 'hex' }).click()
        await looksGood()
        await one.keyboard.press('r')
        await one.getByRole('tab', { name: 'Compare with' }).click()
        await one.getByRole('heading', { name: 'Answer' }).waitFor()
        await looksGood()
        await one.keyboard.press('e')
        await one.getByRole('dialog', { name: 'Edit and replay' }).waitFor()
        await looksGood()
        await one.keyboard.press('Escape')
        await one.keyboard.press('?')
        await one.getByRole('dialog', { name: 'Keys' }).waitFor()
        await looksGood()
        await one.keyboard.press('Escape')
        await one.keyboard.press('Escape')
        await one.getByLabel('Filter').fill('path:/none')
        await one.getByText('Nothing matches this filter.').waitFor()
        await looksGood()
        await one.getByLabel('Filter').fill('slower:soon')
        await one.getByRole('alert').getByText('of the filter').waitFor()
        await looksGood()
      }
      await narrow.close()
    },
  )

  test('without a token, and when the client is gone, it says so', async () => {
    const [base = ''] = (client.inspectorUrl ?? '').split('#')
    const stranger = await context.newPage()
    await stranger.goto(`${base}#wrong`)
    await stranger.getByText('no valid token').waitFor()
    await stranger.getByText('its token is behind the #').waitFor()
    await stranger.close()
    await client.disconnect()
    await page.getByText('connection lost, trying again').waitFor()
  })
})

/** Marks what a user can act on now; how many there are. */
const MARK_CONTROLS = `(() => {
  const controls = [...document.querySelectorAll('a[href], button, input, select, textarea, summary, iframe, [tabindex="0"]')]
    .filter(one => !one.disabled && one.tabIndex >= 0 && one.checkVisibility())
  controls.forEach((one, index) => (one.dataset.control = String(index)))
  document.activeElement.blur()
  return controls.length
})()`
/** Which of them has the focus, and whether one sees it. */
const FOCUSED = `(() => {
  const one = document.activeElement
  const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(one)
  return [one.dataset.control ?? '', (outlineStyle !== 'none' && outlineWidth !== '0px') || boxShadow !== 'none']
})()`

const EVIL =
  '<p>captured</p><script>window.owned=1</script><img src=x onerror="parent.owned=1;window.owned=1">'
const PIXEL = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)

async function chromiumPath(): Promise<string> {
  const path = Bun.which('chromium')
  if (path === null) throw new Error('needs chromium')
  return path
}
