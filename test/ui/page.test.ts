// The page of the inspector in Chromium: every action, every attack, light and dark, narrow and wide.

import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { buildPage } from '../../tools/pages.ts'
import { InspectorPage } from '../support/inspector-page.ts'
import { describeWith } from '../support/needs.ts'

setDefaultTimeout(60_000)

test('the page is one file of at most 60 KB on the way', async () => {
  const { html } = await buildPage('inspector')
  expect(Bun.gzipSync(html).length).toBeLessThan(60_000)
  expect(html).not.toMatch(/<(?:script|link|img)[^>]* (?:src|href)="(?!data:)/)
})

describeWith(['chromium'], 'in a browser', () => {
  let own: InspectorPage
  /** Sees the body of each request to /untouched. */
  let seen: (body: Buffer) => void = () => {}
  /** What the app answers to /state. */
  let state = 500

  beforeAll(async () => {
    own = await InspectorPage.open(answer, { maxBody: 4_096, secrets: ['Password'] })
  })
  afterAll(() => own?.[Symbol.asyncDispose]())

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
      return new Response('data: one\n\nevent: price\ndata: {"sku":12}\n\n', {
        headers: { 'content-type': 'text/event-stream' },
      })
    if (pathname === '/image') return new Response(PIXEL, { headers: { 'content-type': 'image/png' } })
    if (pathname === '/slow') await Bun.sleep(2_500)
    return Response.json({ ok: true, got: await request.text() })
  }

  const panel = (side: 'request' | 'response') => own.page.locator(`#${side}`)
  const sendBytes = (path: string, body: Buffer, type = '') =>
    fetch(`http://127.0.0.1:${own.server.port}${path}`, {
      method: 'POST',
      body: new Uint8Array(body),
      headers: { host: 'shop.localhost', connection: 'close', ...(type !== '' && { 'content-type': type }) },
    })

  test('a request and its response side by side: headers, a secret that is shown when asked for, views', async () => {
    const { page } = own
    await own.visit('/hooks?a=1&b=%C3%BC', {
      method: 'POST',
      body: '{"type":"paid","n":[1,null]}',
      headers: { 'content-type': 'application/json', authorization: 'Bearer abc' },
    })
    await own.choose('/hooks')
    await panel('request').getByText('"paid"').waitFor()
    await page.keyboard.press('h')
    await panel('request').getByText('hidden').waitFor()
    expect(await panel('request').textContent()).not.toContain('Bearer abc')
    await page.keyboard.press('s')
    await panel('request').getByText('Bearer abc').waitFor()
    await panel('request').getByRole('row', { name: 'b ü' }).waitFor()
    await panel('request').getByRole('button', { name: 'Hex' }).click()
    await panel('request').getByText('7b 22 74 79 70 65').waitFor()
    await panel('response').locator('.phead', { hasText: '200' }).waitFor()
    const [left, right] = [await panel('request').boundingBox(), await panel('response').boundingBox()]
    expect(left!.x + left!.width).toBeLessThanOrEqual(right!.x + 1)
    await page.keyboard.press('h')
  })

  test('forms, parts, pictures and events are shown as what they are, and a cut body as cut', async () => {
    const { page } = own
    const form = { 'content-type': 'application/x-www-form-urlencoded' }
    const fields = 'name=Ada+Lovelace&password=hunter2'
    await own.visit('/form', { method: 'POST', body: fields, headers: form })
    await own.choose('/form')
    await page.getByRole('row', { name: 'name Ada Lovelace' }).waitFor()
    // A field of a form that the user calls secret.
    await page.getByRole('row', { name: 'password ••••••' }).waitFor()
    await page.keyboard.press('c')
    await own.says('Copied, without secrets')
    expect(await page.evaluate('navigator.clipboard.readText()')).not.toContain('hunter2')
    await page.keyboard.press('s')
    await page.getByRole('row', { name: 'password hunter2' }).waitFor()
    const parts =
      '--b\r\nContent-Disposition: form-data; name="file"; filename="<b>.txt"\r\n\r\nhello\r\n--b--\r\n'
    await own.visit('/parts', {
      method: 'POST',
      body: parts,
      headers: { 'content-type': 'multipart/form-data; boundary=b' },
    })
    await own.choose('/parts')
    await page.getByRole('row', { name: 'file <b>.txt (5 B)' }).waitFor()
    await own.visit('/image')
    await own.choose('/image')
    await page.locator('img.picture').waitFor()
    await own.visit('/sse')
    await own.choose('/sse')
    await page.locator('.msg', { hasText: 'price' }).getByText('12').waitFor()
    await page.getByLabel('Filter messages').fill('one')
    await page.locator('.msg', { hasText: 'price' }).waitFor({ state: 'detached' })
    await own.visit('/large', { method: 'POST', body: 'x'.repeat(10_000) })
    await own.choose('/large')
    await panel('request').getByText('4.1 kB of 10 kB are kept').waitFor()
    const button = page.getByRole('button', { name: 'Replay', exact: true })
    expect(await button.getAttribute('aria-disabled')).toBe('true')
    await button.click({ force: true })
    await own.says('Its body was not kept whole.')
  })

  test('a request that is under way shows its time', async () => {
    const asked = own.visit('/slow')
    await own.all()
    await own
      .row('/slow')
      .locator('.du', { hasText: /^[12](\.\d)? s$/ })
      .waitFor()
    await asked
    await own.row('/slow').locator('.st', { hasText: '200' }).waitFor()
  })

  test('replay after a fix: a verdict that stays, the new response, the way back, and what differs', async () => {
    const { page } = own
    state = 500
    await own.visit('/state')
    await own.all()
    await page.getByLabel('Filter', { exact: true }).fill('is:error')
    await page.locator('.count', { hasText: /^\d+ of/ }).waitFor()
    await own.choose('/state')
    const original = await page.locator('.detail').getAttribute('data-shows')
    state = 200
    await page.keyboard.press('r')
    await page.locator('.banner', { hasText: '500 → 200 Fixed: the error is gone.' }).waitFor()
    await panel('response').getByText('well').waitFor()
    // The filter hides it: it is docked, and its original says what became of it.
    await page.locator('.outside', { hasText: 'outside the filter' }).waitFor()
    await own.row('/state').getByText('replayed: 200').waitFor()
    await page.keyboard.press('d')
    await page.locator('.diff .minus', { hasText: 'broken' }).waitFor()
    await page.locator('.diff .plus', { hasText: 'well' }).waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: `Back to #${original}` }).click()
    await page.locator(`.detail[data-shows="${original}"]`).waitFor()
    await page.getByLabel('Filter', { exact: true }).fill('')
    await own.all()
  })

  test('edit and replay: method, path, headers, body; JSON is checked and formatted as it was sent', async () => {
    const { page } = own
    await own.json('/edit', '{"id":12345678901234567890,"price":1.0}')
    await own.choose('/edit')
    await page.keyboard.press('e')
    const body = page.getByLabel('Body', { exact: true })
    await page.getByText('Valid JSON').waitFor()
    expect(await body.inputValue()).toBe('{\n  "id": 12345678901234567890,\n  "price": 1.0\n}')
    expect(
      await page.evaluate<string>("getComputedStyle(document.querySelector('#edit-body')).fontFamily"),
    ).toMatch(/mono/i)
    await body.fill('{"id":1,\n"b" 2}')
    await page.getByText('Line 2, column 5: a colon is expected').waitFor()
    // Leaving keeps the draft.
    await page.keyboard.press('Escape')
    await page.keyboard.press('Escape')
    await page.locator('.detail h2', { hasText: '/edit' }).waitFor()
    await page.keyboard.press('e')
    expect(await body.inputValue()).toBe('{"id":1,\n"b" 2}')
    await body.fill('{"id":12345678901234567891}')
    await page.getByRole('button', { name: 'Format' }).click()
    await page.getByLabel('Path').fill('/edited?by=hand')
    await page.getByLabel('Method').fill('PUT')
    await page.getByRole('button', { name: 'Add header' }).click()
    const index = await page.locator('.hrows .input').count()
    await page
      .locator('.hrows .input')
      .nth(index - 2)
      .fill('X-By')
    await page
      .locator('.hrows .input')
      .nth(index - 1)
      .fill('hand')
    await body.focus()
    await page.keyboard.press('Control+Enter')
    await page.locator('.detail h2', { hasText: 'PUT' }).waitFor()
    await panel('request').getByText('12345678901234567891').waitFor()
    await page.keyboard.press('h')
    await panel('request').getByRole('row', { name: 'X-By hand' }).waitFor()
    await page.keyboard.press('h')
  })

  test('a body that was not touched is sent byte for byte, whatever else was edited', async () => {
    const { page } = own
    const bodies: Buffer[] = []
    for (const [kind, type, body] of [
      ['text', '', Buffer.from('one\r\ntwo\n')],
      ['bytes', '', Buffer.from('500d0afffe0001', 'hex')],
      ['form', 'application/x-www-form-urlencoded', Buffer.from('password=hunter2&a=%20')],
    ] as const) {
      bodies.length = 0
      seen = given => bodies.push(given)
      await sendBytes(`/untouched/${kind}`, body, type)
      await own.choose(`/untouched/${kind}`)
      await page.keyboard.press('e')
      await page.getByLabel('Path').fill(`/untouched/${kind}?edited`)
      await page.keyboard.press('Control+Enter')
      await page.locator('.banner', { hasText: 'The response is' }).waitFor()
      expect(bodies).toEqual([body, body])
    }
    // A mask in an edited form stands for what was captured.
    bodies.length = 0
    await own.choose('/untouched/form')
    await page.keyboard.press('e')
    const editor = page.getByLabel('Body', { exact: true })
    await page.waitForFunction(
      field => (field as unknown as { value: string }).value.startsWith('password='),
      await editor.elementHandle(),
    )
    await editor.fill('password=••••••&a=1')
    await page.keyboard.press('Control+Enter')
    await page.locator('.banner', { hasText: 'The response is' }).waitFor()
    expect(String(bodies[0])).toBe('password=hunter2&a=1')
  })

  test('copies, pins, notes; all of them as HAR', async () => {
    const { page } = own
    await own.visit('/keep', { headers: { cookie: 'a=secret' } })
    await own.choose('/keep')
    const menu = async (item: string) => {
      await page.getByLabel('More actions').click()
      await page.getByRole('menuitem', { name: item }).click()
    }
    for (const [item, text] of [
      ['Copy as a test for vitest', "from 'vitest'"],
      ['Copy as a test for node', "from 'node:test'"],
      ['Copy as a test for bun', "from 'bun:test'"],
      ['Copy as curl', 'curl '],
    ] as const) {
      await menu(item)
      await own.says('Copied, without secrets')
      let copied = ''
      // The line that says so may be that of the one before.
      while (!copied.includes(text)) copied = await page.evaluate<string>('navigator.clipboard.readText()')
      expect(copied).not.toContain('a=secret')
    }
    await page.keyboard.press('h')
    await panel('request').getByRole('row', { name: 'Host shop.localhost' }).first().hover()
    await panel('request').getByRole('button', { name: 'Copy Host' }).first().click()
    expect(await page.evaluate<string>('navigator.clipboard.readText()')).toBe('shop.localhost')
    await page.keyboard.press('h')
    await page.keyboard.press('p')
    await own.row('/keep').getByText('pinned').waitFor()
    await menu('Note')
    await page.locator('#note:focus').waitFor()
    await page.keyboard.type('ask Anna')
    await page.keyboard.press('Enter')
    await own.row('/keep').getByText('ask Anna').waitFor()
    const download = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Save as HAR' }).click()
    const har = await Bun.file(await (await download).path()).json()
    expect(har.log.entries.length).toBeGreaterThan(5)
    const sent = har.log.entries.map((entry: { request: unknown }) => entry.request)
    expect(JSON.stringify(sent)).not.toMatch(/hunter2|a=secret/)
    await page.getByRole('button', { name: 'Clear', exact: true }).click()
    await own.row('/state').waitFor({ state: 'detached' })
    await own.row('/keep').waitFor()
    await page.getByRole('button', { name: 'Undo' }).click()
  })

  test('everything goes from the keyboard, and the help lists it; single letters can be turned off', async () => {
    const { page } = own
    await own.all()
    await page.keyboard.press('?')
    const help = page.getByRole('dialog', { name: 'Keys' })
    await help.getByText('edit and replay').waitFor()
    await help.getByLabel('One-key shortcuts').uncheck()
    await page.keyboard.press('Escape')
    await help.waitFor({ state: 'detached' })
    await page.keyboard.press('Home')
    const chosen = page.locator('.rows [aria-selected="true"].row')
    const first = await chosen.getAttribute('id')
    await page.keyboard.press('j')
    expect(await chosen.getAttribute('id')).toBe(first)
    await page.getByLabel('Keys and help').click()
    await help.getByLabel('One-key shortcuts').check()
    await page.keyboard.press('Escape')
    await help.waitFor({ state: 'detached' })
    await page.locator('.rows').focus()
    await page.keyboard.press('j')
    expect(await chosen.getAttribute('id')).not.toBe(first)
    await page.keyboard.press('ArrowUp')
    expect(await chosen.getAttribute('id')).toBe(first)
    // Arrows scroll what has the focus, and do not choose another request.
    await page.getByRole('button', { name: 'Compare', exact: true }).focus()
    await page.keyboard.press('ArrowDown')
    expect(await chosen.getAttribute('id')).toBe(first)
    await page.keyboard.press('F6')
    expect(await page.evaluate<string>('document.activeElement.id')).toBe('filter')
  })

  test('every control is reached by Tab, and shows that it is', async () => {
    const { page } = own
    await own.json('/keys', '{"a":1}')
    await own.choose('/keys')
    await panel('request').getByText('a:').waitFor()
    await panel('response').getByRole('tree').waitFor()
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
  })

  test('scripts in a path, a header, a body, a file name and an event do not run', async () => {
    const { page } = own
    await own.visit(`/html?${encodeURI(EVIL)}`, { headers: { 'x-evil': EVIL } })
    await own.choose('/html')
    await page.frameLocator('iframe.page').getByText('captured').waitFor()
    await panel('response').getByRole('button', { name: 'Text' }).click()
    await page.locator('pre.text', { hasText: 'window.owned' }).waitFor()
    expect(await page.evaluate<boolean>('window.owned === undefined')).toBe(true)
    const { headers } = await fetch((own.client.inspectorUrl ?? '').split('#')[0] ?? '')
    expect(headers.get('content-security-policy')).not.toContain('unsafe')
    expect(headers.get('set-cookie')).toBeNull()
  })

  test('a page of another site learns nothing and changes nothing', async () => {
    const [base = '', token = ''] = (own.client.inspectorUrl ?? '').split('/#')
    using site = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch: () =>
        new Response('<!doctype html><title>foreign</title>', { headers: { 'content-type': 'text/html' } }),
    })
    const foreign = await own.context.newPage()
    await foreign.goto(`http://127.0.0.1:${site.port}/`)
    const attempt = (init: string) =>
      foreign.evaluate(
        `fetch('${base}/api/v1/exchanges', ${init}).then(answer => answer.text(), () => 'refused')`,
      )
    expect(await attempt(`{ headers: { authorization: 'Bearer ${token}' } }`)).toBe('refused')
    expect(await attempt(`{ method: 'DELETE', mode: 'no-cors' }`)).toBe('refused')
    // Forms, of which a browser asks nothing before it sends them.
    await own.visit('/untouched-by-forms')
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

  test('a client of many tunnels: their URLs are reached, and the page is no wider', async () => {
    const names = Array.from({ length: 8 }, (_, index) => `one-of-many-tunnels-${index}`)
    const tunnels = await Promise.all(names.map(subdomain => own.client.http({ fetch: answer, subdomain })))
    const one = await own.another({ width: 1024, height: 768 })
    try {
      const last = one.locator('.services a').last()
      await last.focus()
      const { x = 0, width = 0 } = (await last.boundingBox()) ?? {}
      expect(x + width).toBeLessThanOrEqual(1024)
      expect(await one.evaluate<number>('document.documentElement.scrollWidth - innerWidth')).toBe(0)
      // Two services with the same path are told apart.
      await fetch(`http://127.0.0.1:${own.server.port}/keys`, { headers: { host: `${names[3]}.localhost` } })
      await own.row('/keys', one).locator('.sv', { hasText: names[3]! }).waitFor()
    } finally {
      await one.close()
      for (const tunnel of tunnels) await tunnel.close()
    }
  })

  test.each([
    ['light', 1440],
    ['dark', 1440],
    ['light', 1024],
    ['dark', 1024],
    ['light', 390],
    ['dark', 390],
  ] as const)(
    '%s, %d pixels: nothing to find for axe, nothing wider than the screen',
    async (colorScheme, width) => {
      const one = await own.another({ colorScheme, width, height: 844 })
      const looksGood = async (what: string) => {
        const found = await own.faults(one)
        expect({ what, found }).toEqual({ what, found: [] })
      }
      await own.json('/look', '{"a":[1,{"b":null}]}')
      await own.row('/look', one).waitFor()
      await looksGood('list')
      await own.row('/look', one).click()
      await one.locator('#response .tree').waitFor()
      await looksGood('request')
      // Each state in each scheme, once.
      if ((width === 390) === (colorScheme === 'dark')) {
        await one.keyboard.press('h')
        await looksGood('headers')
        await one.locator('#response').getByRole('button', { name: 'Hex' }).click()
        await looksGood('hex')
        await one.getByLabel('More actions').click()
        await looksGood('menu')
        await one.keyboard.press('Escape')
        await one.keyboard.press('r')
        await one.locator('.banner').waitFor()
        await looksGood('verdict')
        await one.keyboard.press('d')
        await one.locator('.cmp').waitFor()
        await looksGood('compare')
        await one.keyboard.press('Escape')
        await one.keyboard.press('e')
        await one.getByLabel('Body', { exact: true }).waitFor()
        await looksGood('editor')
        await one.getByLabel('Back, the draft is kept').click()
        await one.keyboard.press('?')
        await one.getByRole('dialog', { name: 'Keys' }).waitFor()
        await looksGood('keys')
        await one.keyboard.press('Escape')
        await one.getByRole('dialog').waitFor({ state: 'detached' })
        await one.keyboard.press('Escape')
        await one.getByLabel('Filter', { exact: true }).fill('path:/none')
        await one.getByRole('heading', { name: 'No request matches' }).waitFor()
        await looksGood('no match')
        await one.getByLabel('Filter', { exact: true }).fill('slower:soon')
        await one.getByRole('alert').getByText('of the filter').waitFor()
        await looksGood('fault')
      }
      await one.context().close()
    },
  )

  test('at 400 % zoom, with names that are long or read from the right, nothing is out of sight', async () => {
    await own.json('/zoomed', JSON.stringify({ ['x'.repeat(300)]: 'long '.repeat(40), שלום: 'עולם' }))
    const one = await own.another({ width: 320, height: 256 })
    await own.row('/zoomed', one).click()
    await one.locator('#response .tree').waitFor()
    const outside = () =>
      one.evaluate<string[]>(
        `[...document.querySelectorAll('.acts button, .tree .v')]
          .map(part => [part.getBoundingClientRect(), part.textContent])
          .filter(([{ left, right, width }]) => left < 0 || right > innerWidth || width < 24)
          .map(([, text]) => text)`,
      )
    expect([await outside(), await own.faults(one)]).toEqual([[], []])
    await one.keyboard.press('e')
    await one.getByLabel('Body', { exact: true }).waitFor()
    expect([await outside(), await own.faults(one)]).toEqual([[], []])
    await one.context().close()
  })

  test('without a token it says so', async () => {
    const [base = ''] = (own.client.inspectorUrl ?? '').split('#')
    const fresh = await own.browser.newContext()
    const stranger = await fresh.newPage()
    await stranger.goto(`${base}#/requests`)
    await stranger.getByText('This page has no token').waitFor()
    await fresh.close()
  })
})

/** Marks what a user can act on now; how many there are. */
const MARK_CONTROLS = `(() => {
  const controls = [...document.querySelectorAll('a[href], button, input, select, textarea, summary, iframe, [tabindex="0"]')]
    .filter(one => !one.disabled && one.tabIndex >= 0 && one.checkVisibility({ visibilityProperty: true }))
  controls.forEach((one, index) => (one.dataset.control = String(index)))
  document.activeElement.blur()
  return controls.length
})()`
/** Which of them has the focus, and whether one sees it: on itself, or on the frame of its field. */
const FOCUSED = `(() => {
  const one = document.activeElement
  const isShown = one => {
    const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(one)
    return (outlineStyle !== 'none' && outlineWidth !== '0px') || boxShadow !== 'none'
  }
  const after = getComputedStyle(one, '::after').backgroundColor === getComputedStyle(document.querySelector('.btn.main')).backgroundColor
  return [one.dataset.control ?? '', isShown(one) || isShown(one.parentElement) || after]
})()`

const EVIL =
  '<p>captured</p><script>window.owned=1</script><img src=x onerror="parent.owned=1;window.owned=1">'
const PIXEL = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)
