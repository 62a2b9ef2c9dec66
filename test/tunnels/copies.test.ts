// A pool whose clients all get a copy of each request, and filters of what an app gets.

import { expect, test } from 'bun:test'
import { request } from 'node:http'
import { TunnelClient, type TunnelClientOptions } from '../../src/index.ts'
import { ask } from '../support/ask.ts'
import type { BoundedOptions } from '../support/bounded-server.ts'
import { eventually, next } from '../support/events.ts'
import { type RawConnection, rawDial } from '../support/raw.ts'
import { startServer } from '../support/tunnel.ts'
import { deferred, within } from '../support/within.ts'

interface Got {
  readonly method: string
  readonly path: string
  readonly body: string
  readonly type: string | null
}

/** A developer's client and what its app got. */
interface Developer extends AsyncDisposable {
  readonly client: TunnelClient
  readonly got: Got[]
  /** The app got so many. */
  has(count: number): Promise<void>
}

type Answer = (request: Request) => Response | Promise<Response>

async function team(options: BoundedOptions = {}) {
  const server = await startServer(options)
  const developers: Developer[] = []
  const join = async (answer: Answer, more: Partial<TunnelClientOptions> = {}): Promise<Developer> => {
    const got: Got[] = []
    const waiting: { readonly count: number; readonly resolve: () => void }[] = []
    const client = new TunnelClient({
      server: `http://127.0.0.1:${server.port}`,
      subdomain: 'hooks',
      pool: { to: 'all' },
      fetch: async request => {
        const { pathname, search } = new URL(request.url)
        const body = await request.text()
        got.push({
          method: request.method,
          path: pathname + search,
          body,
          type: request.headers.get('content-type'),
        })
        for (const { count, resolve } of waiting) if (got.length >= count) resolve()
        return await answer(request)
      },
      ...more,
    })
    await client.connect()
    const one: Developer = {
      client,
      got,
      has(count) {
        const { promise, resolve } = deferred<void>()
        if (got.length >= count) resolve(undefined)
        waiting.push({ count, resolve: () => resolve(undefined) })
        return within(promise, `${count} requests`)
      },
      [Symbol.asyncDispose]: () => client.disconnect(),
    }
    developers.push(one)
    return one
  }
  const post = (body: string, path = '/hooks/paid') =>
    ask(server.port, 'hooks.localhost', {
      method: 'POST',
      path,
      body,
      headers: { 'content-type': 'application/json' },
    })
  return {
    server,
    join,
    post,
    async [Symbol.asyncDispose]() {
      for (const { client } of developers) await client.disconnect()
      await server.stop()
    },
  }
}

test('each client gets every request once and whole, and the first good answer is the visitor’s', async () => {
  await using all = await team()
  const late = deferred<Response>()
  const anna = await all.join(() => late.promise)
  const bert = await all.join(() => new Response('bert', { status: 201 }))
  const carl = await all.join(() => new Response('carl is broken', { status: 500 }))
  for (let number = 0; number < 20; number++) {
    const body = JSON.stringify({ number, text: 'x'.repeat(number * 3_000) })
    const answer = await all.post(body, `/hooks/paid?n=${number}`)
    expect([answer.status, answer.body]).toEqual([201, 'bert'])
    for (const one of [anna, bert, carl]) {
      await one.has(number + 1)
      expect(one.got[number]).toEqual({
        method: 'POST',
        path: `/hooks/paid?n=${number}`,
        body,
        type: 'application/json',
      })
    }
  }
  late.resolve(new Response('anna'))
  expect([anna.got.length, bert.got.length, carl.got.length]).toEqual([20, 20, 20])
})

test('without a good answer the first one counts, and without any the reason', async () => {
  await using all = await team()
  const last = deferred<Response>()
  await all.join(() => last.promise)
  const quick = await all.join(() => new Response('no', { status: 422 }))
  const asked = all.post('{}')
  await quick.has(1)
  last.resolve(new Response('broken', { status: 500 }))
  const answer = await asked
  expect([answer.status, answer.body]).toEqual([422, 'no'])

  await using other = await team()
  // Nothing listens there.
  await other.join(() => new Response(), { fetch: undefined, port: 1 })
  expect((await other.post('{}')).code).toBe('ORIGIN_REFUSED')
})

test('the answer of a named client counts, whatever it is; while it is away, the first one', async () => {
  await using all = await team()
  const pool = { to: 'all', response: 'anna' } as const
  await using anna = await all.join(() => new Response('anna', { status: 409 }), {
    pool: { ...pool, label: 'anna' },
  })
  const bert = await all.join(() => new Response('bert'), { pool: { ...pool, label: 'bert' } })
  const answer = await all.post('{}')
  expect([answer.status, answer.body]).toEqual([409, 'anna'])
  await bert.has(1)
  await anna.client.disconnect()
  expect((await all.post('{}')).body).toBe('bert')
})

test('a status is answered at once, and the copies are delivered', async () => {
  await using all = await team()
  const never = deferred<Response>()
  const anna = await all.join(() => never.promise, { pool: { to: 'all', response: 202 } })
  const answer = await all.post('{"a":1}')
  expect([answer.status, answer.body]).toEqual([202, ''])
  await anna.has(1)
  never.resolve(new Response())
})

test('each takes what its filter says; what no one takes is 404', async () => {
  await using all = await team()
  const anna = await all.join(() => new Response('anna'), { filter: 'POST body:"customer.subscription"' })
  const bert = await all.join(() => new Response('bert'), { filter: 'path:/hooks/* -body:refund' })
  expect((await all.post('{"type":"customer.subscription.created"}', '/other')).body).toBe('anna')
  expect((await all.post('{"type":"invoice"}')).body).toBe('bert')
  const none = await all.post('{"type":"refund"}')
  expect([none.status, none.code]).toEqual([404, 'FILTERED_OUT'])
  expect([anna.got.length, bert.got.length]).toEqual([1, 1])
})

test('a filter works without a pool, also by the head alone', async () => {
  await using all = await team()
  const anna = await all.join(() => new Response('anna'), { pool: undefined, filter: 'header:x-event:push' })
  const headers = { 'x-event': 'push' }
  const answer = await ask(all.server.port, 'hooks.localhost', {
    method: 'POST',
    path: '/',
    body: 'x',
    headers,
  })
  expect(answer.body).toBe('anna')
  expect((await all.post('{}')).code).toBe('FILTERED_OUT')
  expect(anna.got).toHaveLength(1)
})

test('a client that does not take its copy keeps neither the visitor nor the others waiting', async () => {
  await using all = await team()
  const stuck = new TransformStream<Uint8Array, Uint8Array>()
  // It reads nothing: what it gets waits in its stream's window.
  await using _slow = await all.join(() => new Response(stuck.readable), {
    fetch: () => new Promise<Response>(() => {}),
  })
  const quick = await all.join(() => new Response('quick'))
  for (let number = 0; number < 5; number++) expect((await all.post('x'.repeat(900_000))).body).toBe('quick')
  expect(quick.got.map(({ body }) => body.length)).toEqual(Array.from({ length: 5 }, () => 900_000))
})

test('a long answer comes whole and as fast as the visitor takes it, and long answers of others are cut', async () => {
  await using all = await team()
  const long = 'y'.repeat(3_000_000)
  await all.join(() => new Response(long))
  await all.join(() => new Response(long))
  const answer = await all.post('{}')
  expect(answer.body === long).toBe(true)
  expect(await all.post('{}').then(({ body }) => body.length)).toBe(3_000_000)
})

test('chunks reach every app', async () => {
  await using all = await team()
  const [anna, bert] = [await all.join(() => new Response('ok')), await all.join(() => new Response('ok'))]
  const status = await new Promise<number | undefined>((resolve, reject) => {
    const asked = request(
      {
        port: all.server.port,
        host: '127.0.0.1',
        method: 'POST',
        path: '/c',
        headers: { host: 'hooks.localhost' },
      },
      answer => {
        answer.resume().on('end', () => resolve(answer.statusCode))
      },
    ).on('error', reject)
    asked.write('one,')
    asked.write('two,')
    asked.end('three')
  })
  expect(status).toBe(200)
  for (const one of [anna, bert]) {
    await one.has(1)
    expect(one.got[0]?.body).toBe('one,two,three')
  }
})

test('bodies are bounded, each and together', async () => {
  await using all = await team({ limits: { maxCopyBodyBytes: 1_000, maxCopiedBytes: 1_500 } })
  const never = deferred<string>()
  const anna = await all.join(async () => new Response(await never.promise))
  const long = await all.post('x'.repeat(1_001))
  expect([long.status, long.code]).toEqual([413, 'BODY_TOO_LARGE'])
  const first = all.post('x'.repeat(900))
  await anna.has(1)
  const second = await all.post('x'.repeat(900))
  expect([second.status, second.code]).toEqual([503, 'TUNNEL_BUSY'])
  never.resolve('at last')
  expect((await first).body).toBe('at last')
  expect((await all.post('x'.repeat(900))).status).toBe(200)
})

test('bodies of one visitor, or of one pool, leave room for those of others', async () => {
  await using all = await team({
    tokens: ['one', 'two'],
    trustedProxies: ['127.0.0.1'],
    limits: { maxCopyBodyBytes: 4_000, maxCopiedBytes: 64_000, headTimeoutMs: 1_000 },
  })
  await all.join(() => new Response('ok'), { token: 'one' })
  await all.join(() => new Response('ok'), { token: 'two', subdomain: 'more' })
  const head = (address: string) =>
    `POST / HTTP/1.1\r\nHost: hooks.localhost\r\nContent-Length: 4000\r\nX-Forwarded-For: ${address}\r\n\r\n`
  const stalled: RawConnection[] = []
  for (let at = 0; at < 40; at++) {
    const raw = await rawDial(all.server.port)
    await raw.send(head(`192.0.2.${at % 20}`) + 'x'.repeat(3_999))
    stalled.push(raw)
  }
  await eventually(() => stalled.some(({ text }) => text.includes(' 503 ')), 'a refusal')
  const post = (name: string, address: string) =>
    ask(all.server.port, `${name}.localhost`, {
      method: 'POST',
      body: 'x'.repeat(4_000),
      headers: { 'x-forwarded-for': address },
    })
  expect((await post('hooks', '192.0.2.1')).code).toBe('TUNNEL_BUSY')
  expect((await post('more', '192.0.2.200')).status).toBe(200)
  // What stops is over after a time.
  const ends = await Promise.all(stalled.map(raw => raw.end()))
  expect(ends.filter(text => text.includes('REQUEST_TIMEOUT')).length).toBe(8)
  expect((await post('hooks', '192.0.2.1')).status).toBe(200)
})

test('a visitor that leaves does not keep the copies from the apps', async () => {
  await using all = await team()
  const late = deferred<string>()
  const anna = await all.join(async () => new Response(await late.promise))
  const bert = await all.join(async () => new Response(await late.promise))
  const ended = next(all.server, 'request')
  const leaving = request({
    port: all.server.port,
    host: '127.0.0.1',
    method: 'POST',
    path: '/',
    headers: { host: 'hooks.localhost' },
  })
  leaving.on('error', () => {})
  leaving.end('{}')
  await anna.has(1)
  await bert.has(1)
  leaving.destroy()
  await within(ended, 'the request to be over')
  late.resolve('late')
  // The same client goes on.
  const again = all.post('{}')
  await anna.has(2)
  expect((await again).status).toBe(200)
})

test('a WebSocket goes to one of them', async () => {
  await using all = await team()
  let count = 0
  const app = Bun.serve({
    port: 0,
    fetch: (one, server) => (server.upgrade(one) ? undefined : new Response('no', { status: 400 })),
    websocket: {
      open() {
        count++
      },
      message: (socket, text) => void socket.send(text),
    },
  })
  await all.join(() => new Response(), { fetch: undefined, port: Number(app.port) })
  await all.join(() => new Response(), { fetch: undefined, port: Number(app.port) })
  const socket = new WebSocket(`ws://127.0.0.1:${all.server.port}/`, { headers: { host: 'hooks.localhost' } })
  const heard = deferred<string>()
  socket.addEventListener('open', () => socket.send('hello'))
  socket.addEventListener('message', ({ data }) => heard.resolve(String(data)))
  expect(await within(heard.promise, 'the echo')).toBe('hello')
  expect(count).toBe(1)
  socket.close()
  await app.stop(true)
})

test('pools of the two ways do not mix, and what cannot be is said', async () => {
  await using all = await team()
  await all.join(() => new Response('a'))
  const other = all.join(() => new Response('b'), { pool: true, exact: true })
  expect(await other.catch(({ code }) => code)).toBe('POOL_DIFFERS')
  const invalid = (more: Partial<TunnelClientOptions>) =>
    all
      .join(() => new Response(), more)
      .then(
        () => 'joined',
        ({ code }) => code,
      )
  expect(await invalid({ pool: { to: 'all', response: 500 } })).toBe('OPTION_INVALID')
  expect(await invalid({ pool: { to: 'all', label: 'first' } })).toBe('OPTION_INVALID')
  expect(await invalid({ filter: 'status:500' })).toBe('OPTION_INVALID')
  expect(await invalid({ filter: '"open' })).toBe('OPTION_INVALID')
})
