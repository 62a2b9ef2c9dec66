// Messages of a WebSocket and events of a stream in the inspector: the newest are followed until one scrolls up.

import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { InspectorPage } from '../support/inspector-page.ts'
import { describeWith } from '../support/needs.ts'

setDefaultTimeout(60_000)

const PLACE =
  "(({ scrollTop, scrollHeight, clientHeight }) => ({ top: scrollTop, left: scrollHeight - clientHeight - scrollTop }))(document.querySelector('.mlist'))"

interface Place {
  readonly top: number
  readonly left: number
}

describeWith(['chromium'], 'in a browser', () => {
  let own: InspectorPage
  const sockets: WebSocket[] = []
  const app = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: (request, server) => (server.upgrade(request) ? undefined : new Response('no')),
    websocket: { message: (socket, text) => void socket.send(`{"got":${String(text)}}`) },
  })

  beforeAll(async () => {
    own = await InspectorPage.open(undefined, {}, { host: '127.0.0.1', port: app.port ?? 0 })
  })
  afterAll(async () => {
    for (const socket of sockets) socket.close()
    await own?.[Symbol.asyncDispose]()
    await app.stop(true)
  })

  test('a stream of them is followed, searched, and stands still when one scrolls up', async () => {
    const { page } = own
    const socket = new WebSocket(`ws://127.0.0.1:${own.server.port}/chat`, {
      headers: { host: 'shop.localhost' },
    })
    sockets.push(socket)
    await new Promise(resolve => socket.addEventListener('open', resolve, { once: true }))
    await own.row('/chat').click()
    const send = (from: number, to: number) => {
      for (let n = from; n < to; n++) socket.send(`{"n":${n}}`)
    }
    send(0, 300)
    await page.locator('.msg', { hasText: '"got":{"n":299}' }).waitFor()
    await page.getByText('following the newest').waitFor()
    expect((await page.evaluate<Place>(PLACE)).left).toBeLessThan(24)
    await page.evaluate("document.querySelector('.mlist').scrollTop = 900")
    await page.getByText('not following').waitFor()
    const { top } = await page.evaluate<Place>(PLACE)
    send(300, 400)
    await page.locator('.mhead', { hasText: '800' }).waitFor()
    expect((await page.evaluate<Place>(PLACE)).top).toBe(top)
    await page.getByRole('button', { name: 'Follow' }).click()
    await page.locator('.msg', { hasText: '"got":{"n":399}' }).waitFor()
    await page.waitForFunction(`(${PLACE}).left < 24`)
    await page.getByRole('button', { name: 'Sent', exact: true }).click()
    expect(await page.locator('.msg .down').count()).toBe(0)
    await page.getByLabel('Filter messages').fill('"n":399')
    expect(await page.locator('.msg').count()).toBe(1)
    // The page has the newest 2,000 of them: earlier ones are found, too.
    send(400, 1_300)
    await page.locator('.mhead', { hasText: '1 of 2,600' }).waitFor()
    await page.getByLabel('Filter messages').fill('"n":7}')
    await page.locator('.msg', { hasText: '"n":7}' }).waitFor()
    await page.locator('.mhead', { hasText: '1 of 2,600' }).waitFor()
    await page.getByLabel('Filter messages').fill('"n":1299')
    await page.locator('.msg', { hasText: '"n":1299' }).waitFor()
    await page.locator('.msg', { hasText: '"n":1299' }).getByRole('button').click()
    await page.locator('.msg pre', { hasText: '"n": 1299' }).waitFor()
    // A WebSocket cannot be replayed, and a press says why.
    await page.getByRole('button', { name: 'Replay', exact: true }).click({ force: true })
    await own.says('A WebSocket cannot be replayed')
  })
})
