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

setDefaultTimeout(20_000)

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
    page.setDefaultTimeout(8_000)
    page.on('pageerror', error => {
      throw error
    })
    await page.goto(client.inspectorUrl ?? '')
    await page.getByText('live', { exact: true }).waitFor()
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
  const panel = () => page.locator('#panel')
  const says = (text: string) => page.locator('.toast', { hasText: text }).waitFor()
  async function filterBy(text: string): Promise<void> {
    const isList = (url: URL) =>
      url.pathname === '/api/v1/exchanges' && (url.searchParams.get('filter') ?? '') === text
    const listed = page.waitForResponse(answer => isList(new URL(answer.url())))
    await page.getByLabel('Filter').fill(text)
    await (await listed).finished()
  }

  async function choose(path: string): Promise<void> {
    await page.locator('.row', { hasText: path }).first().click()
    await page.locator('.detail h2', { hasText: path }).waitFor()
    if ((await page.getByRole('tab').count()) > 0) await page.getByRole('tab').first().click()
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
    await page.keyboard.press('3')
    const list = page.locator('.messages li')
    await list.filter({ hasText: '→ to the app · text · 11 B' }).getByText('first words').waitFor()
    await list.filter({ hasText: '← from the app' }).getByText('first words').waitFor()
    await send(new Uint8Array([0x50, 0x4b, 0xff, 0]))
    await list.filter({ hasText: '→ to the app · binary · 4 B' }).getByText('50 4b ff 00').waitFor()
    // While it is looked at, and more than are in one answer of the API.
    for (let n = 0; n < 1_500; n++) await send(`message ${n}`)
    await list
      .filter({ hasText: /message 1499$/ })
      .nth(1)
      .waitFor()
    expect(await list.count()).toBeLessThanOrEqual(2_000)
    const numbers = async () =>
      (await list.filter({ hasText: '→ to the app · text' }).locator('pre').allTextContents()).map(text =>
        Number(/^message (\d+)$/.exec(text)?.[1] ?? -1),
      )
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
    await page.getByRole('button', { name: /^Show the newest \(\d+ more\)$/ }).click()
    await list
      .filter({ hasText: /message 1499$/ })
      .nth(1)
      .waitFor()
    inOrder(await numbers())
    // And what comes then.
    await send('last words')
    await list.filter({ hasText: '← from the app' }).getByText('last words').waitFor()
    peers.at(-1)?.close(4_001, 'enough')
    await once(visitor, 'close')
    await list.filter({ hasText: 'close' }).first().getByText('4001 enough').waitFor()
    await page.locator('.row', { hasText: '/chat' }).getByText('101').waitFor()
  })

  test('older messages than are kept: it says how many', async () => {
    const visitor = new WsSocket(`ws://127.0.0.1:${server.port}/long`, {
      headers: { host: 'shop.localhost' },
    })
    await once(visitor, 'open')
    for (let n = 0; n < 2_300; n++) visitor.send(`${n}`)
    while ((await api.rows('?filter=/long'))[0]?.frames.total !== 4_600) await Bun.sleep(5)
    await choose('/long')
    await page.keyboard.press('3')
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
    await panel().getByRole('button', { name: 'save' }).click()
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
    await page.keyboard.press('3')
    await page.locator('.messages li', { hasText: 'text' }).first().getByText(EVIL).waitFor()
    await page.locator('.messages li', { hasText: 'close' }).first().getByText(`4002 ${EVIL}`).waitFor()
    const body = `--b\r\nContent-Disposition: form-data; name="${EVIL}"; filename="${EVIL}.html"\r\nContent-Type: text/html\r\n\r\n${EVIL}\r\n--b--\r\n`
    const headers = { 'content-type': 'multipart/form-data; boundary=b' }
    await visit('/evil-parts', { method: 'POST', body, headers })
    await choose('/evil-parts')
    const part = page.getByRole('row', { name: `${EVIL} ${EVIL}.html` })
    await part.getByText('content').click()
    await part.locator('iframe.page').waitFor()
    // As after any script that ran: the next answer of the page is behind it.
    expect(await page.evaluate('String(window.owned ?? document.title)')).toBe('localtunnels inspector')
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
    await page.keyboard.press('2')
    await panel().getByText('HTTP/1.1 103 Early Hints').waitFor()
    await panel().getByRole('heading', { name: 'Trailers' }).waitFor()
    await panel().getByRole('row', { name: 'X-Sum 4' }).waitFor()
  })

  test('what the server refused: why, and what to do', async () => {
    await visit('/inside')
    await choose('/inside')
    const detail = page.locator('.detail')
    await detail.getByText('Refused by the server: ACCESS_REQUIRED').waitFor()
    await detail.getByText('from 127.0.0.1').waitFor()
    await detail.getByText('It never came here: there are no bytes of it.').waitFor()
    expect(await detail.getByRole('button', { name: 'Replay', exact: true }).isDisabled()).toBe(true)
    // The sentences of docs/errors.md.
    expect(await detail.locator('p.note').textContent()).toMatch(/ACCESS_REQUIRED · [A-Z].*\. .*\./)
  })

  test('a webhook: its signature, and replays with a fresh one or without', async () => {
    await visit('/hooks/wrong', { method: 'POST', body: '{}', headers: signed('{}', 'another secret') })
    await choose('/hooks/wrong')
    await page.locator('.detail').getByText('Signature of github: does not match').waitFor()
    const fresh = page.getByLabel('fresh signature')
    expect(await fresh.isChecked()).toBe(false)
    await page.getByRole('button', { name: 'Replay', exact: true }).click()
    await page.locator('.detail').getByText('Signature of github: does not match').waitFor()
    await choose('/hooks/wrong')
    await fresh.check()
    await page.getByRole('button', { name: 'Replay', exact: true }).click()
    await page.locator('.detail').getByText('Signature of github: right').waitFor()
    expect(await fresh.isChecked()).toBe(true)
    // An edited body has the signature of before, unless it is signed again.
    for (const [isFresh, verdict] of [
      [false, 'does not match'],
      [true, 'right'],
    ] as const) {
      await page.keyboard.press('e')
      const dialog = page.getByRole('dialog', { name: 'Edit and replay' })
      await dialog.getByLabel('Body').fill(`{"edited":${isFresh}}`)
      await dialog.getByLabel('fresh signature').setChecked(isFresh)
      await dialog.getByRole('button', { name: 'Send' }).click()
      await says('The answer is the same.')
      await page.locator('.detail').getByText(`Signature of github: ${verdict}`).waitFor()
      await panel().getByText(`${isFresh}`).waitFor()
    }
  })

  test('what does not match the filter any more leaves the list, and stays open beside it', async () => {
    await filterBy('is:open')
    const leaving = new AbortController()
    const visiting = visit('/waiting', { signal: leaving.signal }).catch(() => {})
    await choose('/waiting')
    leaving.abort()
    await visiting
    await page.locator('.row', { hasText: '/waiting' }).waitFor({ state: 'detached' })
    await page.locator('.detail h2', { hasText: '/waiting' }).waitFor()
    await page.locator('.detail').getByText('CANCELLED').waitFor()
    await filterBy('')
  })

  test('a list of thousands: older ones come as it is scrolled, and the oldest by a key', async () => {
    const MANY = 3_200
    for (let index = 0; index < MANY; index += 50)
      await Promise.all(Array.from({ length: 50 }, (_, one) => visit(`/many/${index + one}`)))
    await page.reload()
    await filterBy('path:/many/*')
    const list = page.locator('.list')
    await page.locator('.row', { hasText: `/many/${MANY - 1}` }).waitFor()
    // As with a wheel: down to where the list ends now, until it ends for good.
    await page.locator('.row').first().click()
    for (let height = 0; ; ) {
      const now = Number(await list.evaluate('document.querySelector(".list").scrollHeight'))
      if (now === MANY * 44) break
      expect(now).toBeGreaterThanOrEqual(height)
      height = now
      await list.evaluate('document.querySelector(".list").scrollTop = 1e9')
      while (Number(await list.evaluate('document.querySelector(".list").scrollHeight')) === now)
        await Bun.sleep(5)
    }
    await list.evaluate('document.querySelector(".list").scrollTop = 1e9')
    await page.locator('.row .path', { hasText: /^\/many\/0$/ }).waitFor()
    expect(await page.locator('.row').count()).toBeLessThan(100)
    await page.reload()
    await filterBy('path:/many/*')
    await page.locator('.row', { hasText: `/many/${MANY - 1}` }).waitFor()
    await page.locator('.list').focus()
    await page.keyboard.press('End')
    await page.locator('.detail h2', { hasText: /\/many\/\d\d?$/ }).waitFor()
    await page.keyboard.press('Home')
    await visit('/many/new')
    await page.locator('.row', { hasText: '/many/new' }).waitFor()
    await page.keyboard.press('Home')
    await page.locator('.detail h2', { hasText: '/many/new' }).waitFor()
  })
})

const EVIL = '<img src=x onerror=window.owned=1><script>window.owned=1</script>'
const PIXEL = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==',
  'base64',
)
