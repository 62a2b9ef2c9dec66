// Webhooks through a whole tunnel: one without a valid signature does not reach the app, and the inspector shows what came of it.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createServer, type IncomingMessage } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { WebSocketServer } from 'ws'
import { TunnelClient, TunnelServer } from '../../../src/index.ts'
import { signed } from '../../../src/signatures/signatures.ts'
import { ask } from '../../support/ask.ts'
import { eventually } from '../../support/events.ts'
import { InspectorApi } from '../../support/inspector.ts'
import { type RawConnection, rawDial } from '../../support/raw.ts'
import { within } from '../../support/within.ts'

const SECRET = 'a github secret'
const seen: string[] = []
const app = createServer(async (request, answer) => {
  const body = await bodyOf(request)
  seen.push(`${request.method} ${request.url} ${body.length}`)
  answer.end(`ok ${body.length}`)
})
const sockets = new WebSocketServer({ server: app })
sockets.on('connection', socket => socket.on('message', text => socket.send(text, { binary: false })))
let server: TunnelServer
let client: TunnelClient
let api: InspectorApi

async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const piece of request) text += piece
  return text
}

beforeAll(async () => {
  await new Promise<void>(resolve => app.listen(0, '127.0.0.1', resolve))
  server = new TunnelServer({ port: 0, host: '127.0.0.1' })
  await server.start()
  client = new TunnelClient({
    server: server.url,
    subdomain: 'hooks',
    port: (app.address() as AddressInfo).port,
    verify: { provider: 'github', secret: SECRET, paths: ['/hooks/*'], require: true, maxBodyBytes: 100_000 },
    inspect: { port: 0, rate: 0 },
  })
  await client.connect()
  api = new InspectorApi(client)
})
afterAll(async () => {
  await client.disconnect()
  await server.stop()
  for (const socket of sockets.clients) socket.terminate()
  app.close()
})

const signatureOf = (body: string) =>
  signed(
    'github',
    { header: () => undefined, body: new TextEncoder().encode(body) },
    { secret: SECRET, now: 0 },
  )
const post = (path: string, body: string, headers = {}) =>
  ask(server.port, 'hooks.localhost', { method: 'POST', path, body, headers })

test('a webhook with its signature reaches the app; the inspector says that it was right', async () => {
  seen.length = 0
  expect((await post('/hooks/a', 'hello', signatureOf('hello'))).body).toBe('ok 5')
  expect(seen).toEqual(['POST /hooks/a 5'])
  const row = await api.ended('POST /hooks/a')
  expect(row.verified).toEqual({ provider: 'github', isValid: true })
})

test.each([
  ['without one', {}],
  ['with that of another body', signatureOf('other')],
])('%s it is answered with 401 and does not reach the app', async (_how, headers) => {
  seen.length = 0
  const answer = await post('/hooks/b', 'hello', headers)
  expect([answer.status, answer.code]).toEqual([401, 'SIGNATURE_INVALID'])
  expect(answer.body).not.toContain(SECRET)
  expect(seen).toEqual([])
})

test('a spelling of the path does not lead around it', async () => {
  for (const path of ['//hooks/b', '/HOOKS/b', '/x/../hooks/b', '/%68ooks/b'])
    expect((await post(path, 'x')).status).toBe(401)
})

test('other paths pass as they come, on the same connections, with bodies of any kind', async () => {
  seen.length = 0
  for (let count = 0; count < 5; count++) {
    expect((await post('/other', 'x'.repeat(300_000))).body).toBe('ok 300000')
    expect((await post('/hooks/c', 'y', signatureOf('y'))).body).toBe('ok 1')
    const chunked = { ...signatureOf('chunks'), 'transfer-encoding': 'chunked' }
    expect((await post('/hooks/d', 'chunks', chunked)).body).toBe('ok 6')
    const waiting = { ...signatureOf('waits'), expect: '100-continue' }
    expect((await post('/hooks/e', 'waits', waiting)).body).toBe('ok 5')
  }
  expect(seen).toHaveLength(20)
})

test('a body above the bound is answered with 413, whether its length is said or not', async () => {
  seen.length = 0
  const body = 'z'.repeat(200_000)
  for (const headers of [signatureOf(body), { ...signatureOf(body), 'transfer-encoding': 'chunked' }]) {
    const answer = await post('/hooks/f', body, headers).catch((error: Error) => ({ code: error.message }))
    expect(['BODY_TOO_LARGE', 'the answer was cut']).toContain(answer.code ?? '')
  }
  expect(seen).toEqual([])
})

test('the app is dialled for what it gets, and not for what is kept, refused or left', async () => {
  const dialled = await connectionsOf(async () => {
    expect((await post('/hooks/a', 'hello')).status).toBe(401)
    const stopped = await rawDial(server.port)
    await stopped.send('POST /hooks/a HTTP/1.1\r\nHost: hooks.localhost\r\nContent-Length: 9\r\n\r\nhalf')
    // It is with the client by the time that another one was answered.
    expect((await post('/hooks/a', 'hello')).status).toBe(401)
    stopped.socket.terminate()
  })
  expect(dialled).toBe(0)
  expect(await connectionsOf(() => post('/hooks/a', 'hello', signatureOf('hello')))).toBeLessThanOrEqual(1)
})

/** How many connections the app gets meanwhile. */
async function connectionsOf(act: () => Promise<unknown>): Promise<number> {
  let count = 0
  const counts = () => count++
  app.on('connection', counts)
  await act()
  app.off('connection', counts)
  return count
}

test('one visitor has a fifth of what may be kept for all: above it is 503, and others go on', async () => {
  await using front = new TunnelServer({ port: 0, host: '127.0.0.1', trustedProxies: ['127.0.0.1'] })
  await front.start()
  await using behind = new TunnelClient({
    server: front.url,
    subdomain: 'large',
    port: (app.address() as AddressInfo).port,
    verify: { provider: 'github', secret: SECRET, require: true },
  })
  await behind.connect()
  const head = (address: string) =>
    `POST / HTTP/1.1\r\nHost: large.localhost\r\nX-Forwarded-For: ${address}\r\nContent-Length: 1048576\r\n\r\n`
  const uploads = await Promise.all(Array.from({ length: 20 }, () => rawDial(front.port)))
  await Promise.all(uploads.map(raw => raw.send(head('192.0.2.1') + 'x'.repeat(1_048_570))))
  const refused = () => uploads.filter(({ text }) => text.includes('TUNNEL_BUSY')).length
  await eventually(() => refused() >= 14, 'the refusals')
  expect(refused()).toBe(14)
  const body = 'y'.repeat(1_000_000)
  const headers = { ...signatureOf(body), 'x-forwarded-for': '192.0.2.2' }
  const answer = await ask(front.port, 'large.localhost', { method: 'POST', body, headers })
  expect(answer.body).toBe('ok 1000000')
  for (const { socket } of uploads) socket.terminate()
})

test('many visitors who stop do not keep out one with less: the visitor that has most gives way', async () => {
  await using front = new TunnelServer({ port: 0, host: '127.0.0.1', trustedProxies: ['127.0.0.1'] })
  await front.start()
  await using behind = new TunnelClient({
    server: front.url,
    subdomain: 'many',
    port: (app.address() as AddressInfo).port,
    verify: { provider: 'github', secret: SECRET, require: true },
  })
  await behind.connect()
  const uploads: RawConnection[] = []
  const sizes = [1_000_000, 250_000, 60_000, 15_000, 4_000]
  for (const [at, bytes] of sizes.entries())
    for (let one = 0; one < (at === 0 ? 30 : 14); one++) {
      const upload = await rawDial(front.port)
      uploads.push(upload)
      const lines = `X-Forwarded-For: 10.${at}.0.${one}\r\nContent-Length: ${bytes + 1}\r\nExpect: 100-continue\r\n`
      await upload.send(`POST / HTTP/1.1\r\nHost: many.localhost\r\n${lines}\r\n`)
      await upload.until('\r\n\r\n')
      await upload.send('x'.repeat(bytes))
    }
  const body = 'y'.repeat(20_000)
  const headers = { ...signatureOf(body), 'x-forwarded-for': '192.0.2.2' }
  const answer = await ask(front.port, 'many.localhost', { method: 'POST', body, headers })
  expect(answer.body).toBe('ok 20000')
  const isCut = ({ text }: RawConnection) => text.includes('TUNNEL_BUSY')
  expect(uploads.slice(30).filter(isCut)).toEqual([])
  for (const { socket } of uploads) socket.terminate()
})

test('a WebSocket of another path works; behind one that the app refuses requests are checked again', async () => {
  const visitor = new WebSocket(`ws://127.0.0.1:${server.port}/live`, {
    headers: { host: 'hooks.localhost' },
  } as never)
  await within(new Promise(resolve => visitor.addEventListener('open', resolve)), 'open')
  const echoed = within(
    new Promise(resolve => visitor.addEventListener('message', ({ data }) => resolve(data))),
    'echo',
  )
  visitor.send('hi')
  expect(await echoed).toBe('hi')
  visitor.close()
  expect((await post('/hooks/g', 'x')).status).toBe(401)
})

test('two requests in one segment: the second is checked as the first', async () => {
  seen.length = 0
  const socket = connect(server.port, '127.0.0.1')
  const line = (path: string) =>
    `POST ${path} HTTP/1.1\r\nHost: hooks.localhost\r\nContent-Length: 1\r\n\r\nx`
  let text = ''
  socket.on('data', data => {
    text += data
  })
  socket.write(line('/free') + line('/hooks/h'))
  await within(
    new Promise<void>(resolve => socket.on('data', () => text.includes('401') && resolve())),
    '401',
  )
  expect(seen).toEqual(['POST /free 1'])
  socket.destroy()
})

test('a replay is signed afresh where the time has passed, and one that was refused stays so', async () => {
  const now = Math.floor(Date.now() / 1_000)
  const stripe = new TunnelClient({
    server: server.url,
    subdomain: 'pay',
    port: (app.address() as AddressInfo).port,
    verify: { provider: 'stripe', secret: 'whsec_x', require: true, toleranceSeconds: 300 },
    inspect: { port: 0, rate: 0 },
  })
  await stripe.connect()
  try {
    const own = new InspectorApi(stripe)
    const body = new TextEncoder().encode('paid')
    const headers = signed('stripe', { header: () => undefined, body }, { secret: 'whsec_x', now: now - 290 })
    const first = await ask(server.port, 'pay.localhost', { method: 'POST', body: 'paid', headers })
    expect(first.status).toBe(200)
    const row = await own.ended('POST /')
    const { json } = await own.send('POST', `exchanges/${row.id}/replay`)
    expect(json.replays[0].exchange.status).toBe(200)
    const again = await own.detail(json.replays[0].exchange.id, '?reveal=true')
    const line =
      again.request?.fields.find(({ name }) => name.toLowerCase() === 'stripe-signature')?.value ?? ''
    expect(line).not.toBe(headers['stripe-signature'] ?? '')
    const kept = await own.send('POST', `exchanges/${row.id}/replay`, { resign: false })
    const detail = await own.detail(kept.json.replays[0].exchange.id, '?reveal=true')
    expect(detail.request?.fields.find(({ name }) => name.toLowerCase() === 'stripe-signature')?.value).toBe(
      headers['stripe-signature'],
    )
    const refused = await ask(server.port, 'pay.localhost', { method: 'POST', path: '/r', body: 'paid' })
    expect(refused.status).toBe(401)
    const wrong = await own.ended('POST /r')
    expect(wrong.verified).toEqual({ provider: 'stripe', isValid: false, reason: 'no signature' })
    const same = await own.send('POST', `exchanges/${wrong.id}/replay`)
    expect(same.json.replays[0]).toMatchObject({ verdict: 'same', exchange: { status: 401 } })
    const forced = await own.send('POST', `exchanges/${wrong.id}/replay`, { resign: true })
    expect(forced.json.replays[0].exchange.status).toBe(200)
  } finally {
    await stripe.disconnect()
  }
})
