// Bandwidth of tunnels, addresses and tokens: bytes wait for their turn, all of them arrive, and those who send wait with them.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { request } from 'node:http'
import { connect, createServer, type Server } from 'node:net'
import { TunnelClient } from '../../src/index.ts'
import { Bucket, Shape, type ShapedTurn, ShapingTimer } from '../../src/parts/shaping/shaping.ts'
import { ask } from '../support/ask.ts'
import { codeOf, eventually } from '../support/events.ts'
import { startServer, startTunnel } from '../support/tunnel.ts'

const BYTES = 300_000
/** 20 kB go at once, the rest takes 1.4 s. */
const RATE = 200_000
const LEAST_MS = 1_200

const data = new Uint8Array(BYTES).map((_, index) => index % 251)
const isData = (bytes: ArrayBuffer | Uint8Array) => Buffer.from(data).equals(Buffer.from(bytes as Uint8Array))

let pulled = 0
let app: Bun.Server<undefined>
let echo: Server
beforeAll(async () => {
  app = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request, server) {
      const { pathname } = new URL(request.url)
      if (server.upgrade(request)) return undefined
      if (pathname === '/small') return new Response('small')
      if (pathname === '/upload') return new Response(String(isData(await request.arrayBuffer())))
      if (pathname !== '/endless') return new Response(data)
      return new Response(
        new ReadableStream({
          pull: controller => {
            pulled += 65_536
            controller.enqueue(new Uint8Array(65_536))
          },
        }),
      )
    },
    websocket: { maxPayloadLength: 1_000_000, message: (socket, bytes) => void socket.send(bytes) },
  })
  echo = createServer({ allowHalfOpen: true }, socket => {
    socket.on('error', () => {})
    socket.pipe(socket)
  })
  await new Promise<void>(resolve => echo.listen(0, '127.0.0.1', resolve))
})
afterAll(() => {
  echo.close()
  return app.stop(true)
})

const echoPort = () => (echo.address() as { port: number }).port

const url = (port: number, path = '/') => `http://127.0.0.1:${port}${path}`

async function lasts(task: () => Promise<void>): Promise<number> {
  const began = performance.now()
  await task()
  return performance.now() - began
}

test('downloads, uploads, WebSockets and raw bytes take their time, and arrive whole', async () => {
  await using tunnel = await startTunnel(
    { port: app.port ?? 0 },
    { server: { tunnelRules: [{ bandwidth: RATE }] } },
  )
  const { client, port } = tunnel
  const name = async () => `${(await client.http({ port: app.port ?? 0 })).name}.localhost`
  const raw = await client.tcp({ port: echoPort() })
  const times = await Promise.all([
    lasts(async () => {
      const answer = await fetch(url(port), { headers: { host: await name() } })
      expect(isData(await answer.arrayBuffer())).toBe(true)
    }),
    lasts(async () => {
      const init = { method: 'POST', body: data, headers: { host: await name() } }
      expect(await (await fetch(url(port, '/upload'), init)).text()).toBe('true')
      // What was read already is owed: the next request waits for it.
      expect(await (await fetch(url(port, '/upload'), init)).text()).toBe('true')
    }),
    lasts(async () => {
      const socket = new WebSocket(`ws://127.0.0.1:${port}/`, { headers: { host: await name() } } as never)
      socket.binaryType = 'arraybuffer'
      await new Promise(resolve => socket.addEventListener('open', resolve))
      const echoed = new Promise<ArrayBuffer>(resolve =>
        socket.addEventListener('message', ({ data: bytes }) => resolve(bytes)),
      )
      socket.send(data)
      expect(isData(await echoed)).toBe(true)
      socket.close()
    }),
    lasts(async () => {
      const socket = connect({ port: raw.port ?? 0, host: '127.0.0.1', allowHalfOpen: true })
      socket.end(data)
      const pieces: Buffer[] = []
      for await (const piece of socket) pieces.push(piece)
      expect(isData(Buffer.concat(pieces))).toBe(true)
    }),
  ])
  expect(times.map(ms => ms > LEAST_MS)).toEqual([true, true, true, true])
})

test('who sends waits as well: no more than a window is on its way', async () => {
  await using tunnel = await startTunnel(
    { port: app.port ?? 0 },
    { server: { tunnelRules: [{ bandwidth: 50_000 }], limits: { maxStreamWindowBytes: 524_288 } } },
  )
  pulled = 0
  const leave = new AbortController()
  const answer = await fetch(url(tunnel.port, '/endless'), {
    headers: { host: tunnel.host },
    signal: leave.signal,
  })
  const reader = answer.body?.getReader()
  for (let taken = 0; taken < 60_000; ) taken += (await reader?.read())?.value?.length ?? 60_000
  // The kernel's buffers between app, client and server are some megabytes.
  expect(pulled).toBeLessThan(16_000_000)
  leave.abort()
})

test('others of a tunnel are not kept waiting behind a download', async () => {
  await using tunnel = await startTunnel(
    { port: app.port ?? 0 },
    { server: { tunnelRules: [{ bandwidth: RATE }] } },
  )
  let isOver = false
  const download = fetch(url(tunnel.port), { headers: { host: tunnel.host } })
    .then(answer => answer.arrayBuffer())
    .then(() => {
      isOver = true
    })
  await eventually(() => tunnel.server.getStats().pendingResponses > 0, 'the download')
  expect((await ask(tunnel.port, tunnel.host, { path: '/small' })).body).toBe('small')
  expect(isOver).toBe(false)
  await download
})

test("a token's bandwidth is shared by its tunnels, and an address has its own", async () => {
  const tokens = [{ token: 'anna', bandwidth: RATE }, 'ben']
  const tunnelRules = [{ tunnels: ['slow'], addressBandwidth: RATE }]
  await using server = await startServer({ tokens, tunnelRules, trustedProxies: ['127.0.0.1'] })
  const clientOf = (token: string) => new TunnelClient({ server: url(server.port), token })
  const [anna, ben] = [clientOf('anna'), clientOf('ben')]
  await anna.http({ port: app.port ?? 0, subdomain: 'one' })
  await anna.http({ port: app.port ?? 0, subdomain: 'two' })
  await ben.http({ port: app.port ?? 0, subdomain: 'slow' })
  const get = async (name: string, address: string, bytes = BYTES) => {
    const headers = { host: `${name}.localhost`, 'x-forwarded-for': address }
    const got = await (await fetch(url(server.port), { headers })).arrayBuffer()
    expect(got.byteLength).toBe(bytes)
  }
  const [shared, own] = await Promise.all([
    lasts(() => Promise.all([get('one', '192.0.2.1'), get('two', '192.0.2.2')]).then(() => {})),
    lasts(() => Promise.all([get('slow', '192.0.2.3'), get('slow', '192.0.2.3')]).then(() => {})),
    get('slow', '192.0.2.4'),
  ])
  // 600,000 bytes through one bucket.
  expect(shared).toBeGreaterThan(2 * LEAST_MS)
  expect(own).toBeGreaterThan(2 * LEAST_MS)
  await Promise.all([anna.disconnect(), ben.disconnect()])
}, 60_000)

test('a visitor that leaves in the middle leaves nothing behind', async () => {
  await using tunnel = await startTunnel(
    { port: app.port ?? 0 },
    { server: { tunnelRules: [{ bandwidth: 20_000 }] } },
  )
  for (let count = 0; count < 5; count++) {
    const asking = request({ port: tunnel.port, host: '127.0.0.1', headers: { host: tunnel.host } })
    asking.on('error', () => {})
    asking.end()
    await new Promise(resolve => asking.on('response', answer => answer.once('data', resolve)))
    asking.destroy()
  }
  await eventually(() => tunnel.server.getStats().pendingResponses === 0, 'the end of all visits')
})

test('a body without a length and a head may be too long for a tunnel', async () => {
  const tunnelRules = [{ maxContentLength: 5_000, maxHeadBytes: 400 }]
  await using tunnel = await startTunnel({ port: app.port ?? 0 }, { server: { tunnelRules } })
  const post = (bytes: number) =>
    new Promise<number>((resolve, reject) => {
      const asking = request({
        port: tunnel.port,
        method: 'POST',
        path: '/upload',
        headers: { host: tunnel.host },
      })
      asking.on('response', answer => {
        answer.resume()
        resolve(answer.statusCode ?? 0)
      })
      asking.on('error', reject)
      for (let sent = 0; sent < bytes; sent += 100) asking.write('x'.repeat(100))
      asking.end()
    })
  expect([await post(5_000), await post(5_100)]).toEqual([200, 413])
  const headers = { 'x-long': 'x'.repeat(400) }
  expect(await ask(tunnel.port, tunnel.host, { headers })).toMatchObject({
    status: 431,
    code: 'HEAD_TOO_LARGE',
  })
})

test('values that cannot be used are OPTION_INVALID', async () => {
  for (const rule of [{ bandwidth: 1_023 }, { addressBandwidth: 0 }, { bandwidth: 1.5 }, { maxHeadBytes: 0 }])
    expect(await codeOf(startServer({ tunnelRules: [rule] }))).toBe('OPTION_INVALID')
  expect(await codeOf(startServer({ tokens: [{ token: 't', bandwidth: 10 }] }))).toBe('OPTION_INVALID')
})

test('a bucket lets pass what it has, owes no more than a second, and fills to its burst', () => {
  const bucket = new Bucket(1_000_000, 0)
  expect(bucket.available(0)).toBe(100_000)
  bucket.spend(100_000)
  expect([bucket.available(0), bucket.available(50), bucket.available(10_000)]).toEqual([0, 50_000, 100_000])
  bucket.spend(50_000_000)
  expect([bucket.available(10_000), bucket.available(11_000)]).toEqual([-1_000_000, 0])
})

test('those that wait take turns, and one that throws does not keep the others from theirs', async () => {
  const errors: string[] = []
  const timer = new ShapingTimer(error => errors.push(error.message))
  const bucket = new Bucket(1_000_000)
  bucket.spend(100_000)
  const order: string[] = []
  const done = Promise.withResolvers<void>()
  const waits = (name: string, turns: number): ShapedTurn => {
    const shape = new Shape([bucket], timer)
    const one = {
      turn: () => {
        order.push(name)
        expect(shape.take(50_000, true)).toBeGreaterThan(0)
        if (--turns > 0) shape.await(one)
        else if (order.length === 5) done.resolve()
        if (name === 'b') throw new Error('broken')
      },
    }
    shape.await(one)
    return one
  }
  waits('a', 2)
  waits('b', 1)
  waits('c', 2)
  // Who comes while others wait is behind them.
  expect(new Shape([bucket], timer).take(1, false)).toBe(0)
  await done.promise
  expect(order).toEqual(['a', 'b', 'c', 'a', 'c'])
  expect(errors).toEqual(['broken'])
})
