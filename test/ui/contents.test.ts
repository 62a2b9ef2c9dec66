// What the page of the inspector shows of long lists, messages, parts, webhooks and refusals, in Chromium.

import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Browser, chromium, type Page } from 'playwright-core'
import { type WebSocket as Peer, WebSocketServer, WebSocket as WsSocket } from 'ws'
import { guarding, TunnelClient, type TunnelServer } from '../../src/index.ts'
import { ask } from '../support/ask.ts'
import { InspectorApi } from '../support/inspector.ts'
import { describeWith } from '../support/needs.ts'
import { startServer } from '../support/tunnel.ts'

setDefaultTimeout(60_000)

const SECRET = 'whsec of the test'
const signed = (body: string, secret = SECRET) => ({
  'x-hub-signature-256': `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`,
})

describeWith(['chromium'], 'in a browser', () => {
  let browser: Browser
  let server: TunnelServer
  let client: TunnelClient
  let api: InspectorApi
  let app: Server
  let page: Page
  const sockets = new WebSocketServer({ noServer: true })
  const peers: Peer[] = []

  beforeAll(async () => {
    app = createServer((request, answer) => {
      request.resume().on('end', () => {
        if (request.url === '/hints') {
          answer.writeEarlyHints({ link: '</a.css>; rel=preload' })
          answer.writeHead(200, { trailer: 'X-Sum' })
          answer.write('body')
          answer.addTrailers({ 'X-Sum': '4' })
        }
        if (request.url !== '/waiting') answer.end('ok')
      })
    })
    app.on('upgrade', (request, socket, head) =>
      sockets.handleUpgrade(request, socket, head, peer => {
        peers.push(peer)
        peer.on('message', (message: Buffer, isBinary: boolean) => peer.send(message, { binary: isBinary }))
      }),
    )
    app.listen(0, '127.0.0.1')
    await once(app, 'listening')
    server = await startServer({ guarding: guarding() })
    client = new TunnelClient({
      server: server.url,
      subdomain: 'shop',
      host: '127.0.0.1',
      // A TCP port.
      port: (app.address() as AddressInfo).port,
      inspect: { maxExchanges: 20_000, maxFrames: 4_000, rate: 0 },
      verify: { provider: 'github', secret: SECRET, paths: ['/hooks/*'] },
      guard: { paths: { '/inside': { password: 'correct horse' } } },
    })
    await client.connect()
    api = new InspectorApi(client)
    browser = await chromium.launch({
      executablePath: Bun.which('chromium') ?? '',
      // A name of a stranger that leads to this machine, as after DNS rebinding.
      args: [
        '--no-sandbox',
        '--host-resolver-rules=MAP rebound.example 127.0.0.1',
        // Not every browser asks before a page reaches this machine.
        '--disable-features=LocalNetworkAccessChecks',
      ],
    })
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 } })
    page = await context.newPage()
    page.setDefaultTimeout(20_000)
    page.on('pageerror', error => {
      throw error
    })
    await page.goto(client.inspectorUrl ?? '')
    await page.locator('.live', { hasText: 'Live' }).waitFor()
  })
  afterAll(async () => {
    await browser?.close()
    await client?.disconnect()
    await server?.stop()
    app?.closeAllConnections()
    app?.close()
  })

  const visit = (path: string, options: Parameters<typeof ask>[2] = {}) =>
    ask(server.port, 'shop.localhost', { path, ...options })
  const request = () => page.locator('#request')
  const response = () => page.locator('#response')
  async function filterBy(text: string): Promise<void> {
    const isList = (url: URL) =>
      url.pathname === '/api/v1/exchanges' && (url.searchParams.get('filter') ?? '') === text
    const listed = page.waitForResponse(answer => isList(new URL(answer.url())))
    await page.getByLabel('Filter', { exact: true }).fill(text)
    await (await listed).finished()
  }

  async function choose(path: string): Promise<void> {
    // Those that wait come into the list.
    await page.mouse.move(700, 20)
    await page.evaluate('document.activeElement.blur()')
    for (let step = 0; step < 3 && (await page.locator('main.has-detail').count()) > 0; step++)
      await page.keyboard.press('Escape')
    await page.locator('.rows .row', { hasText: path }).first().click()
    await page.locator('.detail h2', { hasText: path }).waitFor()
  }

  test('messages of a WebSocket: they come by themselves, thousands of them, and none is missing', async () => {
    const visitor = new WsSocket(`ws://127.0.0.1:${server.port}/chat`, {
      headers: { host: 'shop.localhost' },
    })
    await once(visitor, 'open')
    const send = async (data: string | Uint8Array) => {
      visitor.send(data)
      await once(visitor, 'message')
    }
    await send('first words')
    await choose('/chat')
    const list = page.locator('.msg')
    const sent = list.filter({ has: page.locator('.up') })
    const received = list.filter({ has: page.locator('.down') })
    await sent.filter({ hasText: '11 B' }).getByText('first words').waitFor()
    await received.getByText('first words').waitFor()
    await send(new Uint8Array([0x50, 0x4b, 0xff, 0]))
    await sent.getByText('binary, 4 B').click()
    await sent.getByText('50 4b ff 00').waitFor()
    await page.getByRole('button', { name: 'Follow' }).click()
    // While it is looked at, and more than are in one answer of the API.
    for (let n = 0; n < 1_500; n++) await send(`message ${n}`)
    await list
      .locator('.x', { hasText: /message 1499$/ })
      .nth(1)
      .waitFor()
    expect(await list.count()).toBeLessThanOrEqual(2_000)
    const numbers = async () =>
      (await sent.locator('.x').allTextContents())
        .filter(text => text.startsWith('message '))
        .map(text => Number(/^message (\d+)$/.exec(text)?.[1] ?? -1))
    const inOrder = (shown: readonly number[]) =>
      expect(shown).toEqual(Array.from({ length: shown.length }, (_, index) => shown[0]! + index))
    inOrder(await numbers())
    for (const earlier = page.getByRole('button', { name: /^Show earlier ones/ }); ; ) {
      if ((await earlier.count()) === 0) break
      const said = await earlier.textContent()
      await earlier.click()
      await page.getByRole('button', { name: said ?? '' }).waitFor({ state: 'detached' })
    }
    await list.getByText('first words').first().waitFor()
    await page.getByRole('button', { name: 'Show the newest' }).click()
    await list
      .locator('.x', { hasText: /message 1499$/ })
      .nth(1)
      .waitFor()
    inOrder(await numbers())
    // And what comes then.
    await send('last words')
    await received.getByText('last words').waitFor()
    peers.at(-1)?.close(4_001, 'enough')
    await once(visitor, 'close')
    await list.getByText('close 4001 enough').first().waitFor()
    await page.locator('.rows .row', { hasText: '/chat' }).getByText('101').waitFor()
  })

  test('older messages than are kept: it says how many', async () => {
    const visitor = new WsSocket(`ws://127.0.0.1:${server.port}/long`, {
      headers: { host: 'shop.localhost' },
    })
    await once(visitor, 'open')
    for (let n = 0; n < 2_300; n++) visitor.send(`${n}`)
    while ((await api.rows('?filter=/long'))[0]?.frames.total !== 4_600) await Bun.sleep(5)
    await choose('/long')
    const { frames } = (await api.rows('?filter=/long'))[0]!
    await page.getByText(`The ${4_600 - frames.kept} oldest are not kept any more.`).waitFor()
    visitor.terminate()
  })

  test('parts with bytes: a picture is shown, another file when it is opened, fields as text', async () => {
    const form = new FormData()
    form.set('title', 'Grüße')
    form.set('photo', new File([PIXEL], 'me.png', { type: 'image/png' }))
    form.set('data', new File([new Uint8Array([0xff, 0xfe, 0, 1])], 'a.bin'))
    form.set('notes', new File(['{"deep":[1]}'], 'n.json', { type: 'application/json' }))
    await fetch(`http://127.0.0.1:${server.port}/upload`, {
      method: 'POST',
      body: form,
      headers: { host: 'shop.localhost' },
    })
    await choose('/upload')
    await page.getByRole('row', { name: 'title Grüße' }).waitFor()
    await page
      .getByRole('row', { name: `photo me.png (${PIXEL.length} B, image/png)` })
      .locator('img')
      .waitFor()
    const data = page.getByRole('row', { name: 'data a.bin (4 B' })
    await data.getByText('content').click()
    await data.getByText('ff fe 00 01').waitFor()
    const notes = page.getByRole('row', { name: 'notes n.json' })
    await notes.getByText('content').click()
    await notes.getByText('deep').waitFor()
    // As it came, into a file.
    const saving = page.waitForEvent('download')
    await request().getByRole('button', { name: 'Save request body' }).click()
    const file = await (await saving).path()
    const [row] = await api.rows('?filter=/upload')
    expect(await readFile(file)).toEqual(Buffer.from(await api.bytes(`exchanges/${row?.id}/request.body`)))
  })

  test('scripts in messages, file names, names of parts and events do not run', async () => {
    const visitor = new WsSocket(`ws://127.0.0.1:${server.port}/evil`, {
      headers: { host: 'shop.localhost' },
    })
    await once(visitor, 'open')
    visitor.send(EVIL)
    await once(visitor, 'message')
    peers.at(-1)?.close(4_002, EVIL)
    await once(visitor, 'close')
    await choose('/evil')
    await page.locator('.msg').getByText(EVIL, { exact: true }).first().waitFor()
    await page.locator('.msg').getByText(`close 4002 ${EVIL}`).first().waitFor()
    const body = `--b\r\nContent-Disposition: form-data; name="${EVIL}"; filename="${EVIL}.html"\r\nContent-Type: text/html\r\n\r\n${EVIL}\r\n--b--\r\n`
    const headers = { 'content-type': 'multipart/form-data; boundary=b' }
    await visit('/evil-parts', { method: 'POST', body, headers })
    await choose('/evil-parts')
    const part = page.getByRole('row', { name: `${EVIL} ${EVIL}.html` })
    await part.getByText('content').click()
    await part.locator('pre', { hasText: 'onerror' }).waitFor()
    // As after any script that ran: the next answer of the page is behind it.
    expect(await page.evaluate<boolean>('window.owned === undefined')).toBe(true)
  })

  test('a stranger whose name leads to this machine gets neither the page nor the API', async () => {
    const { port } = new URL(client.inspectorUrl ?? '')
    const rebound = await page.context().newPage()
    const answer = await rebound.goto(`http://rebound.example:${port}/`)
    expect(answer?.status()).toBe(403)
    expect(await answer?.text()).toContain('INSPECT_REFUSED')
    // The page that came before the name led here is of the same origin: nothing but the name gives it away, even with the token.
    const before = { contentType: 'text/html', body: '<!doctype html><title>mine</title>' }
    await rebound.route('**/mine', route => route.fulfill(before))
    await rebound.goto(`http://rebound.example:${port}/mine`)
    const asked = await rebound.evaluate(
      `fetch('/api/v1/exchanges', { headers: { authorization: 'Bearer ${api.token}' } }).then(answer => answer.text())`,
    )
    expect(asked).toContain('INSPECT_REFUSED')
    expect(asked).not.toContain('exchanges":')
    await rebound.close()
  })

  test('1xx answers and trailers', async () => {
    await visit('/hints')
    await choose('/hints')
    await response().getByText('Early heads').click()
    await response().locator('pre', { hasText: 'HTTP/1.1 103 Early Hints' }).waitFor()
    await response().getByText('Trailers').click()
    await response().getByRole('row', { name: 'X-Sum 4' }).waitFor()
  })

  test('what the server refused: why, and what to do', async () => {
    await visit('/inside')
    await choose('/inside')
    const detail = page.locator('.detail')
    await detail.getByText('Refused by the server, not by your app.').waitFor()
    await detail.getByText('from 127.0.0.1').waitFor()
    await detail.getByRole('heading', { name: 'It did not reach this machine' }).waitFor()
    const button = detail.getByRole('button', { name: 'Replay', exact: true })
    expect(await button.getAttribute('aria-disabled')).toBe('true')
    // The sentences of docs/errors.md.
    expect(await detail.locator('.banner').textContent()).toMatch(/ACCESS_REQUIRED [A-Z].*\. .*\./)
  })

  test('a webhook: its signature, and replays with a fresh one or without', async () => {
    await visit('/hooks/wrong', { method: 'POST', body: '{}', headers: signed('{}', 'another secret') })
    await choose('/hooks/wrong')
    const signature = (said: string) => page.locator('.line2').getByText(`signature ${said}`).waitFor()
    const replayed = () => page.locator('.banner', { hasText: 'The response is the same.' }).waitFor()
    await signature('does not match')
    const more = async (choice: string, isOn: boolean) => {
      await page.getByRole('button', { name: 'More ways to replay' }).click()
      const item = page.getByRole('menuitemcheckbox', { name: choice })
      expect(await item.getAttribute('aria-checked')).toBe(String(isOn))
      return item
    }
    await (await more('New GitHub signature', false)).focus()
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'Replay', exact: true }).click()
    await replayed()
    await signature('does not match')
    await choose('/hooks/wrong')
    await (await more('New GitHub signature', false)).click()
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'Replay', exact: true }).click()
    await replayed()
    await signature('valid')
    // An edited body has the signature of before, unless it is signed again.
    for (const [isFresh, verdict] of [
      [false, 'does not match'],
      [true, 'valid'],
    ] as const) {
      await page.keyboard.press('e')
      await page.getByLabel('Body', { exact: true }).fill(`{"edited":${isFresh}}`)
      await page.getByLabel('New GitHub signature').setChecked(isFresh)
      await page.getByRole('button', { name: 'Send' }).click()
      await replayed()
      await signature(verdict)
      await request().getByText(`${isFresh}`).waitFor()
    }
  })

  test('what does not match the filter any more leaves the list, but not under the pointer', async () => {
    await filterBy('is:open')
    const leaving = new AbortController()
    const visiting = visit('/waiting', { signal: leaving.signal }).catch(() => {})
    await choose('/waiting')
    leaving.abort()
    await visiting
    await page.locator('.detail').getByText('CANCELLED').waitFor()
    // The list is held while one is chosen.
    expect(await page.locator('.rows .row', { hasText: '/waiting' }).count()).toBe(1)
    await page.mouse.move(700, 20)
    await page.keyboard.press('Escape')
    await page.locator('.rows .row', { hasText: '/waiting' }).waitFor({ state: 'detached' })
    await filterBy('')
  })

  test('a list of thousands: older ones come as it is scrolled, and the oldest by a key', async () => {
    const MANY = 3_200
    for (let index = 0; index < MANY; index += 50)
      await Promise.all(Array.from({ length: 50 }, (_, one) => visit(`/many/${index + one}`)))
    await page.reload()
    await filterBy('path:/many/*')
    const rows = page.locator('.rows .row')
    await rows.filter({ hasText: `/many/${MANY - 1}` }).waitFor()
    const height = () => page.evaluate<number>('document.querySelector(".rows").scrollHeight')
    // As with a wheel: down to where the list ends now, until it ends for good.
    for (let before = 0; ; ) {
      const now = await height()
      if (now === MANY * 32) break
      expect(now).toBeGreaterThanOrEqual(before)
      before = now
      await page.evaluate('document.querySelector(".rows").scrollTop = 1e9')
      while ((await height()) === now) await Bun.sleep(5)
    }
    await page.evaluate('document.querySelector(".rows").scrollTop = 1e9')
    await rows.locator('code', { hasText: /^\/many\/0$/ }).waitFor()
    expect(await rows.count()).toBeLessThan(100)
    await page.reload()
    await rows.filter({ hasText: `/many/${MANY - 1}` }).waitFor()
    await page.locator('.rows').focus()
    await page.keyboard.press('End')
    await page.locator('.detail h2', { hasText: /\/many\/\d\d?$/ }).waitFor()
    await page.keyboard.press('Home')
    await visit('/many/new')
    await page.getByText('↑ 1 new').waitFor()
    await page.keyboard.press('Home')
    await page.locator('.detail h2', { hasText: '/many/new' }).waitFor()
  })
})

const EVIL = '<img src=x onerror=window.owned=1><script>window.owned=1</script>'
const PIXEL = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==',
  'base64',
)
