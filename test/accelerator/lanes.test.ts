// Lanes: whatever a visitor in one asks, it gets what any other visitor would get, and nobody loses count.

import { describe, expect, test } from 'bun:test'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { canSplice, spliceCounts } from '../../src/accelerator/threads.ts'
import type { TunnelClientOptions } from '../../src/client/options.ts'
import { accessLog, openInbox, TunnelClient, TunnelServer } from '../../src/index.ts'
import type { TunnelServerEvents, TunnelServerOptions } from '../../src/server/settings/options.ts'
import { dialBun } from '../../src/sockets/bun.ts'
import { eventually } from '../support/events.ts'
import { get, type Message, post, readAnswer, statusOf } from '../support/exchange.ts'
import { ClientProcess } from '../support/processes.ts'
import { FUZZ, Random } from '../support/random.ts'
import { RawConnection, rawDial } from '../support/raw.ts'
import { openDescriptors } from '../support/relay.ts'
import { ANSWER_NAMES, ScriptedApp } from '../support/scripted-app.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { TEST_CERT, TEST_KEY } from '../support/tls.ts'
import { type LiveTunnel, startServer, startTunnel } from '../support/tunnel.ts'
import { within } from '../support/within.ts'

/** Of a POST: what makes it not easy, or refused. */
const ODD_LINES: readonly string[] = [
  'Expect: 100-continue\r\n',
  'Content-Length: 3\r\n',
  'Transfer-Encoding: chunked\r\n',
  'Connection: close\r\n',
]

const lanes = () => spliceCounts().lanes

interface Site extends AsyncDisposable {
  readonly app: ScriptedApp
  readonly tunnel: LiveTunnel
  readonly port: number
  readonly host: string
  /** Closed with it. */
  readonly visitors: RawConnection[]
}

async function site(server: TunnelServerOptions = {}, client: TunnelClientOptions = {}): Promise<Site> {
  const app = new ScriptedApp()
  const tunnel = await startTunnel({ port: app.port, ...client }, { server })
  const visitors: RawConnection[] = []
  return {
    app,
    tunnel,
    port: tunnel.port,
    host: tunnel.host,
    visitors,
    async [Symbol.asyncDispose]() {
      for (const { socket } of visitors) socket.terminate()
      await tunnel[Symbol.asyncDispose]()
      app[Symbol.dispose]()
      await eventually(() => spliceCounts().laneEnds === 0, 'the end of all lanes')
    },
  }
}

async function ask(visitor: RawConnection, request: string): Promise<Message> {
  await visitor.send(request)
  return readFinal(visitor, request.split(' ')[0])
}

/** An answer with the interim ones in front of it. */
async function readFinal(visitor: RawConnection, method?: string): Promise<Message> {
  const answer = await readAnswer(visitor, method)
  if (statusOf(answer.head) >= 200) return answer
  const final = await readFinal(visitor, method)
  return { ...final, head: answer.head + final.head }
}

/** A visitor that has a lane. */
async function inLane({
  port,
  host,
  visitors,
}: Pick<Site, 'port' | 'host' | 'visitors'>): Promise<RawConnection> {
  const before = lanes()
  const visitor = await rawDial(port)
  visitors.push(visitor)
  for (let count = 0; lanes() === before; count++) {
    if (count === 2_000) throw new Error('no lane after 2,000 requests')
    await ask(visitor, get(host, `/text/${count}`))
  }
  // The lane was asked for with the last answer: from here on it serves.
  expect((await ask(visitor, get(host, '/text/served'))).body).toBe('served')
  expect(lanes()).toBe(before + 1)
  return visitor
}

/** What a visitor without a lane gets: on a connection of its own. */
async function plainly({ tunnel }: Site, request: string): Promise<Message> {
  const visitor = await rawDial(tunnel.port)
  const answer = await ask(visitor, request)
  visitor.socket.end()
  return answer
}

describe.skipIf(!canSplice())('in a lane', () => {
  test('every answer is that of its request, and each is counted', async () => {
    await using here = await site()
    const { app, tunnel } = here
    const visitor = await inLane(here)
    const before = tunnel.server.getStats()
    const asked = app.asked.length
    for (let count = 0; count < 500; count++) {
      const { head, body } = await ask(visitor, get(tunnel.host, `/text/${count}`))
      expect(statusOf(head)).toBe(200)
      expect(body).toBe(String(count))
    }
    expect(lanes()).toBe(1)
    expect(app.asked.slice(asked)).toEqual(
      Array.from({ length: 500 }, (_, count) => `GET /text/${count} HTTP/1.1`),
    )
    const after = tunnel.server.getStats()
    expect(after.requests - before.requests).toBe(500)
    expect(after.pendingResponses).toBe(0)
    const requestBytes = Array.from({ length: 500 }, (_, count) => get(tunnel.host, `/text/${count}`).length)
    expect(after.bytesIn - before.bytesIn).toBe(requestBytes.reduce((sum, bytes) => sum + bytes, 0))
    visitor.socket.end()
    await visitor.closed()
    await eventually(() => lanes() === 0, 'the end of the lane')
    expect(tunnel.server.getStats()).toMatchObject({ requests: after.requests, bytesOut: after.bytesOut })
  })

  test('visitors get one behind downloads, whose streams are on links', async () => {
    const DOWNLOAD_BYTES = 4_000_000
    using app = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch: ({ url }) =>
        new Response(url.endsWith('/big') ? new Uint8Array(DOWNLOAD_BYTES) : url.split('/').at(-1)),
    })
    await using tunnel = await startTunnel({ port: app.port ?? 0 })
    const { port, host } = tunnel
    const visitors: RawConnection[] = []
    for (let round = 0; round < 2; round++) {
      const downloads = Array.from({ length: 8 }, async () => {
        const visitor = await rawDial(port)
        const { body } = await ask(visitor, get(host, '/big'))
        visitor.socket.end()
        return body.length
      })
      expect(await Promise.all(downloads)).toEqual(Array.from({ length: 8 }, () => DOWNLOAD_BYTES))
      const visitor = await inLane({ port, host, visitors })
      visitor.socket.terminate()
      await eventually(() => lanes() === 0, 'the end of the lane')
    }
  })

  test('the app sees what it sees without one', async () => {
    await using here = await site({ trustedProxies: ['127.0.0.1'] }, { hostHeader: 'rewrite', rewrite: [] })
    const visitor = await inLane(here)
    const lines =
      'X-Forwarded-For: 192.0.2.7\r\nOrigin: http://app.localhost\r\nConnection: x-mine\r\nX-Mine: 1\r\nTE: trailers\r\nUser-Agent: test\r\nCookie: a=b\r\n'
    const request = get(here.tunnel.host, '/echo', lines)
    const answer = await ask(visitor, request)
    expect(lanes()).toBe(1)
    expect(answer).toEqual(await plainly(here, request))
    expect(answer.body).toContain('X-Forwarded-For: 192.0.2.7, 127.0.0.1')
    expect(answer.body).not.toContain('X-Mine')
  })

  test('the visitor gets what it gets without one, however the app answers', async () => {
    await using here = await site()
    let visitor = await inLane(here)
    for (const name of ANSWER_NAMES) {
      const request = get(here.tunnel.host, `/${name}/1234`)
      const [answer, expected] = [await ask(visitor, request), await plainly(here, request)]
      expect([name, answer]).toEqual([name, expected])
      if (visitor.hasEnded || lanes() === 0) visitor = await inLane(here)
    }
  }, 60_000)

  test('whatever is not easy is served by the program, byte for byte', async () => {
    await using here = await site()
    const { host } = here.tunnel
    const long = `X-Long: ${'y'.repeat(20_000)}\r\n`
    const requests: readonly (readonly string[])[] = [
      [`HEAD /text/a HTTP/1.1\r\nHost: ${host}\r\n\r\n`],
      [post(host, 'x'.repeat(20_000), '/echo')],
      [post(host, 'body', '/echo').slice(0, -2), 'd', 'y'],
      [get(host, '/echo').slice(0, 7), get(host, '/echo').slice(7)],
      [post(host, 'body', '/echo', 'Expect: 100-continue\r\n')],
      [post(host, 'body', '/echo').replace('HTTP/1.1', 'HTTP/1.0')],
      [post(host, 'body', '/echo', 'Content-Length: 4\r\n')],
      [`${post(host, '0\r\n\r\n', '/echo', 'Transfer-Encoding: chunked\r\n')}`],
      [get(host, '/text/a', 'Expect: 100-continue\r\n')],
      [get(host, '/text/a', 'Connection: close\r\n')],
      [get(host, '/text/a', 'Connection: upgrade\r\nUpgrade: tcp\r\n')],
      [get(host, '/echo').replace('HTTP/1.1', 'HTTP/1.0')],
      [get(host, `http://${host}/echo`)],
      ['\r\n', get(host, '/text/a')],
      [get('nobody.localhost', '/text/a')],
      [get('localhost', '/api/status')],
      [get(`${host}:1`, '/echo')],
      [get(host, '/echo', 'Host: other.localhost\r\n')],
      [get(host, '/echo', 'Content-Length: 1\r\nTransfer-Encoding: chunked\r\n')],
      ['GET /\0 HTTP/1.1\r\n\r\n'],
      [get(host, '/echo', long)],
    ]
    for (const pieces of requests) {
      const visitor = await inLane(here)
      const fresh = await rawDial(here.tunnel.port)
      const answers: Message[] = []
      for (const asking of [visitor, fresh]) {
        for (const [index, piece] of pieces.entries()) {
          await asking.send(piece)
          // So that the pieces arrive one by one.
          if (index + 1 < pieces.length) await Bun.sleep(5)
        }
        answers.push(await readFinal(asking, pieces[0]!.split(' ')[0]))
      }
      expect([pieces, lanes()]).toEqual([pieces, 0])
      const [inLaneAnswer, freshAnswer] = answers.map(answer => timeless(answer))
      expect([pieces, inLaneAnswer]).toEqual([pieces, freshAnswer])
      visitor.socket.end()
      fresh.socket.end()
      await eventually(() => lanes() === 0, 'the end of the lane')
    }
  }, 60_000)

  test('a body that came whole reaches the app as it is, and nothing behind it is taken for a request', async () => {
    await using here = await site()
    const { host } = here.tunnel
    const visitor = await inLane(here)
    for (const body of ['body', get(host, '/smuggled'), '0\r\n\r\n', 'x'.repeat(15_000), '']) {
      const request = post(host, body, '/echo')
      const { body: seen } = await ask(visitor, request)
      expect(seen).toEndWith(`\r\n\r\n${body}`)
      expect(seen).toBe((await plainly(here, request)).body)
    }
    expect(lanes()).toBe(1)
    // Together: the first one's body ends where its length says.
    await visitor.send(post(host, 'one', '/echo') + get(host, '/text/two') + post(host, 'three', '/echo'))
    expect((await readAnswer(visitor)).body).toEndWith('\r\n\r\none')
    expect((await readAnswer(visitor)).body).toBe('two')
    expect((await readAnswer(visitor)).body).toEndWith('\r\n\r\nthree')
    expect(here.app.asked.filter(line => line.includes('smuggled'))).toEqual([])
  })

  test('requests that come together are answered in their order', async () => {
    await using here = await site()
    const visitor = await inLane(here)
    const paths = Array.from({ length: 20 }, (_, count) => `/text/n${count}`)
    await visitor.send(paths.map(path => get(here.tunnel.host, path)).join(''))
    for (const path of paths) expect(path).toEndWith((await readAnswer(visitor)).body)
    expect((await ask(visitor, get(here.tunnel.host, '/text/on'))).body).toBe('on')
  })

  test('a request that does not wait for the last answer is served behind it', async () => {
    await using here = await site()
    const { app, tunnel } = here
    const visitor = await inLane(here)
    const goOn = Promise.withResolvers<void>()
    app.pause = () => goOn.promise
    await visitor.send(get(tunnel.host, '/text/first'))
    await eventually(() => app.asked.at(-1) === 'GET /text/first HTTP/1.1', 'the first request')
    await visitor.send(get(tunnel.host, '/text/second'))
    goOn.resolve()
    expect((await readAnswer(visitor)).body).toBe('first')
    expect((await readAnswer(visitor)).body).toBe('second')
    expect(lanes()).toBe(1)
  })

  test('a visitor that reads nothing gets every byte in the end', async () => {
    await using here = await site()
    const { app, tunnel } = here
    const visitor = await inLane(here)
    visitor.socket.pause()
    let answers = 0
    // One by one, until an answer does not fit any more.
    for (const { length } = app.asked; lanes() === 1; answers++) {
      await visitor.send(get(tunnel.host, '/size/30000'))
      await eventually(() => app.asked.length > length + answers || lanes() === 0, 'the app to be asked')
    }
    visitor.socket.resume()
    for (let count = 0; count < answers; count++)
      expect((await readAnswer(visitor)).body).toBe('x'.repeat(30_000))
    expect((await ask(visitor, get(tunnel.host, '/text/on'))).body).toBe('on')
  }, 60_000)

  test('a site of short and long answers stays in its lane', async () => {
    await using here = await site()
    // Of a busy machine a piece may be late, which ends the lane: so there are some tries.
    for (let attempt = 1; ; attempt++) {
      const visitor = await inLane(here)
      const before = here.app.asked.length
      for (let count = 0; count < 100; count++) {
        const size = count % 10 === 5 ? 100_000 + count : count
        expect((await ask(visitor, get(here.host, `/size/${size}`))).body === 'x'.repeat(size)).toBe(true)
      }
      expect(here.app.asked.length).toBe(before + 100)
      if (lanes() === 1) break
      expect(attempt).toBeLessThan(10)
      visitor.socket.end()
      await eventually(() => lanes() === 0, 'the end of that one')
    }
  }, 60_000)

  test('a long answer that the app cuts off is none that the visitor takes for whole', async () => {
    for (const how of ['half', 'torn']) {
      await using here = await site()
      const visitor = await inLane(here)
      const at = visitor.text.length
      await visitor.send(get(here.host, `/${how}/100000`))
      await visitor.when(
        () => visitor.isClosed || visitor.hasEnded || visitor.text.slice(at).includes(' 502 '),
        'the end',
      )
      const answer = visitor.text.slice(at)
      expect(answer.length).toBeLessThan(51_000)
      if (how === 'half') expect(answer).toEndWith('x'.repeat(50_000))
      expect(here.app.asked.filter(line => line.includes(how)).length).toBeGreaterThan(0)
    }
  })

  test('an app that takes its time is waited for, and not for longer than without one', async () => {
    await using here = await site({ limits: { originTimeoutMs: 2_500 } })
    const { app, tunnel } = here
    const visitor = await inLane(here)
    app.pause = () => eventually(() => lanes() === 0, 'the end of the lane')
    const { body } = await ask(visitor, get(tunnel.host, '/text/late'))
    expect(body).toBe('late')
    expect(app.asked.filter(line => line.includes('late'))).toHaveLength(1)
    app.pause = undefined
    visitor.socket.end()
    const other = await inLane(here)
    app.pause = () => new Promise(() => {})
    expect(statusOf((await ask(other, get(tunnel.host, '/text/never'))).head)).toBe(504)
  }, 60_000)

  test('an app that closes its idle connection is asked on another one', async () => {
    await using here = await site()
    const { app, tunnel } = here
    for (const end of ['end', 'terminate'] as const) {
      const visitor = await inLane(here)
      for (const connection of app.connections) connection.socket[end]()
      for (let count = 0; count < 50; count++)
        expect((await ask(visitor, get(tunnel.host, `/text/${count}`))).body).toBe(String(count))
      visitor.socket.end()
      // It has a lane again by now.
      await eventually(() => lanes() === 0, 'the end of that one')
    }
  }, 60_000)

  test('an app that closes without an answer is asked once more, as it is without one', async () => {
    await using here = await site()
    const { app, tunnel } = here
    const visitor = await inLane(here)
    const asked = app.asked.length
    app.dropsNext = 1
    expect((await ask(visitor, get(tunnel.host, '/text/again'))).body).toBe('again')
    expect(app.asked.slice(asked)).toEqual(Array(2).fill('GET /text/again HTTP/1.1'))
  })

  test('a POST that the app has is never sent again, however its way ends', async () => {
    for (const end of [
      'the app',
      'the app, by FIN',
      'the app, late',
      'the trunk',
      'every connection',
    ] as const) {
      using app = new ScriptedApp()
      await using server = await startServer()
      using network = new TcpProxy(server.port)
      await using client = new TunnelClient({
        server: `http://127.0.0.1:${network.port}`,
        subdomain: 'app',
        port: app.port,
      })
      await client.connect()
      const visitors: RawConnection[] = []
      const visitor = await inLane({ port: server.port, host: 'app.localhost', visitors })
      const asked = app.asked.length
      const reached = Promise.withResolvers<void>()
      if (end === 'the app') app.dropsNext = 1
      const path = end === 'the app, by FIN' ? '/silent' : '/echo'
      if (path === '/echo')
        app.pause = () => {
          reached.resolve()
          return new Promise(() => {})
        }
      await visitor.send(post('app.localhost', 'body', path))
      if (!['the app', 'the app, by FIN'].includes(end)) await reached.promise
      if (end === 'the app, late') {
        await eventually(() => lanes() === 0, 'the end of the lane')
        for (const { socket } of app.connections) socket.terminate()
      }
      if (end === 'the trunk') network.cutAll('reset', 1)
      if (end === 'every connection') network.cutAll('reset')
      const { head } = await readFinal(visitor)
      expect([end, statusOf(head)]).toEqual([end, 502])
      await visitor.end()
      expect(app.asked.slice(asked)).toEqual([`POST ${path} HTTP/1.1`])
      visitor.socket.terminate()
    }
  }, 60_000)

  test('a POST that a lane begins and the program ends reaches the app once, and so does its body', async () => {
    await using here = await site()
    const { app, tunnel } = here
    for (const name of [...ANSWER_NAMES, 'echo']) {
      const visitor = await inLane(here)
      const isLate = name === 'echo'
      if (isLate) app.pause = () => eventually(() => lanes() === 0, 'the end of the lane')
      const request = post(tunnel.host, 'body', `/${name}/1234`)
      const asked = app.asked.length
      const answer = await ask(visitor, request)
      expect([name, app.asked.slice(asked)]).toEqual([name, [`POST /${name}/1234 HTTP/1.1`]])
      app.pause = undefined
      expect([name, answer]).toEqual([name, await plainly(here, request)])
      // What was sent twice would be the beginning of a request.
      if (!visitor.hasEnded) await ask(visitor, get(tunnel.host, '/text/behind'))
      for (let count = 0; count < 4; count++) await plainly(here, get(tunnel.host, '/text/behind'))
      expect(app.asked.filter(line => !/^(GET|POST) \//.test(line))).toEqual([])
      visitor.socket.end()
      await eventually(() => lanes() === 0, 'the end of the lane')
    }
  }, 60_000)

  test('where lanes are for GETs, a POST among them has its own line in the log, and bodies get no lanes', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'localtunnels-lanes-'))
    const file = join(folder, 'access.log')
    const log = accessLog({ file })
    {
      await using here = await site({ observers: [log] })
      const { host } = here.tunnel
      const visitor = await inLane(here)
      await ask(visitor, post(host, 'body', '/echo/posted'))
      const other = await rawDial(here.port)
      here.visitors.push(other)
      await eventually(() => lanes() === 0, 'the end of the lane')
      for (let count = 0; count < 500; count++) {
        await ask(other, post(host, 'body', '/text/a'))
        await ask(other, get(host, '/text/a'))
        expect(lanes()).toBe(0)
      }
    }
    await log.close()
    const lines = (await Bun.file(file).text()).trimEnd().split('\n')
    const posted = lines.map(line => JSON.parse(line)).filter(({ path }) => path === '/echo/posted')
    expect(posted).toMatchObject([{ method: 'POST', status: 200 }])
    await rm(folder, { recursive: true })
  })

  test('no visitor of a tunnel with an inbox says of its own request that it waited', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'localtunnels-lanes-'))
    const store = await openInbox(join(folder, 'inbox.db'))
    const token = 'own-token-1234567890'
    {
      const inbox = { paths: ['/hooks/*'] }
      await using here = await site({ tokens: [token], inbox: { store } }, { token, inbox })
      const visitor = await rawDial(here.port)
      here.visitors.push(visitor)
      // A lane would have begun long before.
      for (let count = 0; count < 300; count++) {
        const request = get(here.host, '/echo', 'X-Localtunnels-Delivery: 9\r\nX-Own: 1\r\n')
        const { body } = await ask(visitor, request)
        expect([body.includes('X-Own: 1'), body.includes('X-Localtunnels-Delivery')]).toEqual([true, false])
      }
    }
    store.close()
    await rm(folder, { recursive: true })
  })

  test('a POST of which the app got nothing is sent on another connection', async () => {
    await using here = await site()
    const { app, tunnel } = here
    const visitor = await inLane(here)
    for (const { socket } of app.connections) socket.end()
    // Until the client knows, the request may still reach the app.
    await eventually(() => lanes() === 0, 'the end of the lane')
    const { head, body } = await ask(visitor, post(tunnel.host, 'body', '/echo'))
    expect([statusOf(head), body.endsWith('\r\n\r\nbody')]).toEqual([200, true])
  })

  test('a tunnel that is given back is not there for the next request', async () => {
    await using here = await site()
    const visitor = await inLane(here)
    await here.tunnel.client.disconnect()
    const { head } = await ask(visitor, get(here.tunnel.host, '/text/a'))
    expect(statusOf(head)).toBe(404)
    expect(lanes()).toBe(0)
  })

  test('a client that was killed is waited for, as it is without one', async () => {
    const app = new ScriptedApp()
    const server = await startServer({ limits: { holdTimeoutMs: 250 } })
    await using client = new ClientProcess(`http://127.0.0.1:${server.port}`, 'app', app.port)
    await client.event('connected')
    const visitors: RawConnection[] = []
    const visitor = await inLane({ port: server.port, host: 'app.localhost', visitors })
    client.kill('SIGKILL')
    await eventually(() => server.getStats().connections === 0, 'the server to notice')
    const { head, body } = await ask(visitor, get('app.localhost', '/text/a'))
    expect(statusOf(head)).toBe(503)
    expect(body).toContain('CLIENT_RECONNECTING')
    visitor.socket.terminate()
    await server.stop()
    app[Symbol.dispose]()
  })

  test('a visitor over TLS, which cannot be in one, opens no link', async () => {
    using app = new ScriptedApp()
    const tls = { cert: TEST_CERT, key: TEST_KEY }
    const server = new TunnelServer({ port: 0, host: '127.0.0.1', domains: ['localhost'], tls })
    await server.start()
    const client = new TunnelClient({
      server: `https://localhost:${server.port}`,
      ca: TEST_CERT,
      port: app.port,
      subdomain: 'app',
    })
    await client.connect()
    const visitor = new RawConnection()
    const address = { host: '127.0.0.1', port: server.port, tls: { verify: false } }
    visitor.socket = await dialBun(address, visitor.handler)
    const talk = async (times: number) => {
      for (let count = 0; count < times; count++)
        expect((await ask(visitor, get('app.localhost', `/text/${count}`))).body).toBe(String(count))
    }
    await talk(1)
    const before = openDescriptors()
    await talk(300)
    // A link would be two of this process: both ends of it are here. One may come from elsewhere in the process.
    expect(openDescriptors()).toBeLessThan(before + 2)
    visitor.socket.terminate()
    await client.disconnect()
    await server.stop()
  })

  test('whoever wants to hear of each request hears of the next one, and all of them', async () => {
    await using here = await site()
    const { client, host, server } = here.tunnel
    for (const listening of [server, client]) {
      const visitor = await inLane(here)
      const heard: Omit<TunnelServerEvents['request'], 'subdomain'>[] = []
      const stop =
        listening === server
          ? server.on('request', event => heard.push(event))
          : client.on('response', event => heard.push(event))
      // The client has to tell the server first.
      if (listening === client) await eventually(() => lanes() === 0, 'the end of the lane')
      const paths = Array.from({ length: 100 }, (_, count) => `/text/${'n'.repeat(count)}`)
      for (const path of paths) await ask(visitor, get(host, path))
      await eventually(() => heard.length >= paths.length, 'all of them')
      expect(lanes()).toBe(1)
      expect(heard.map(({ path }) => path)).toEqual(paths)
      await plainly(here, get(host, paths[99]!))
      await eventually(() => heard.length > paths.length, 'the one without a lane')
      const [told, plain] = heard.slice(-2)
      const { durationMs, id: _, ...fields } = { id: 0, ...told }
      expect(plain).toMatchObject(fields)
      expect(durationMs).toBeGreaterThan(0)
      stop()
      visitor.socket.end()
      await eventually(() => lanes() === 0, 'the end of the lane')
    }
  })

  test('the client hears of the request and of its answer', async () => {
    await using here = await site({}, { wildcard: true })
    const { client, host } = here.tunnel
    const log: string[] = []
    client.on('request', ({ id, host: below, method, path }) => log.push(`${id} ${below} ${method} ${path}`))
    client.on('response', ({ id, host: below, status, bytes }) =>
      log.push(`${id} ${below} ${status} ${bytes}`),
    )
    const visitor = await inLane({ ...here, host: `below.${host}` })
    await eventually(() => log.at(-2)?.endsWith('/text/served') === true, 'the last one before')
    log.length = 0
    const { head, body } = await ask(visitor, get(`below.${host}`, '/text/hello'))
    await eventually(() => log.length === 2, 'both events')
    const id = log[0]!.split(' ')[0]
    expect(log).toEqual([
      `${id} below.${host} GET /text/hello`,
      `${id} below.${host} 200 ${head.length + body.length}`,
    ])
    expect(lanes()).toBe(1)
  })

  test('what a lane begins and the program ends is told once, in its order', async () => {
    await using here = await site()
    const { app, tunnel } = here
    const heard: string[] = []
    tunnel.server.on('request', ({ method, path, status }) => heard.push(`${method} ${path} ${status}`))
    const asked: string[] = []
    for (const name of ANSWER_NAMES) {
      const visitor = await inLane(here)
      await eventually(() => heard.at(-1) === 'GET /text/served 200', 'the last one before')
      heard.length = 0
      asked.length = 0
      for (const path of ['/text/before', `/${name}/1234`, '/text/behind']) {
        if (visitor.hasEnded) break
        const { head } = await ask(visitor, get(tunnel.host, path))
        // Behind interim ones.
        asked.push(`GET ${path} ${statusOf(head.slice(head.lastIndexOf('HTTP/1.1 ')))}`)
      }
      await eventually(() => heard.length >= asked.length, 'all of them')
      expect(heard).toEqual(asked)
      visitor.socket.end()
      await eventually(() => lanes() === 0, 'the end of the lane')
    }
    const visitor = await inLane(here)
    await eventually(() => heard.at(-1) === 'GET /text/served 200', 'the last one before')
    heard.length = 0
    const goOn = Promise.withResolvers<void>()
    app.pause = () => goOn.promise
    await visitor.send(get(tunnel.host, '/text/slow'))
    await eventually(() => lanes() === 0, 'an end for want of an answer')
    goOn.resolve()
    expect((await readAnswer(visitor)).body).toBe('slow')
    await eventually(() => heard.length >= 1, 'the event')
    expect(heard).toEqual(['GET /text/slow 200'])
  }, 60_000)

  test('new options hold for the next request', async () => {
    await using here = await site()
    const { host, server } = here.tunnel
    const visitor = await inLane(here)
    const request = get(host, '/echo', 'X-Forwarded-For: 192.0.2.7\r\n')
    expect((await ask(visitor, request)).body).not.toContain('192.0.2.7')
    expect(lanes()).toBe(1)
    await server.reload({ trustedProxies: ['127.0.0.1'] })
    expect((await ask(visitor, request)).body).toContain('X-Forwarded-For: 192.0.2.7, 127.0.0.1')
  })

  test('a guard of the server is asked about the next request, and about each from then on', async () => {
    await using here = await site()
    const visitor = await inLane(here)
    let asked = 0
    const guard = {
      name: 'count',
      admit: () => {
        asked++
        return undefined
      },
    }
    await here.tunnel.server.reload({ host: '127.0.0.1', guards: [guard] })
    await eventually(() => lanes() === 0, 'the end of the lane')
    for (let count = 1; count <= 200; count++) {
      expect((await ask(visitor, get(here.host, '/text/guarded'))).body).toBe('guarded')
      expect([asked, lanes()]).toEqual([count, 0])
    }
  })

  test('a visitor that leaves, by FIN or RST, leaves nothing behind', async () => {
    await using here = await site()
    await inLane(here).then(visitor => visitor.socket.end())
    await eventually(() => lanes() === 0, 'the end of the lane')
    const before = openDescriptors()
    for (let count = 0; count < 20; count++) {
      const visitor = await inLane(here)
      if (count % 3 === 0) await visitor.send(get(here.tunnel.host, '/text/unread'))
      visitor.socket[count % 2 === 0 ? 'end' : 'terminate']()
      await eventually(() => lanes() === 0, 'the end of the lane')
    }
    await eventually(() => openDescriptors() <= before + 4, 'closed descriptors')
  }, 60_000)

  test('a silent visitor goes back to the program within a second, and on from there', async () => {
    await using here = await site({ limits: { idleTimeoutMs: 1_000 } })
    const visitor = await inLane(here)
    await eventually(() => lanes() === 0, 'the end of the lane')
    expect((await ask(visitor, get(here.tunnel.host, '/text/on'))).body).toBe('on')
    await within(visitor.closed(), 'the idle connection to close')
  })

  test('a server that stops lets the request under way finish, and closes the idle visitor', async () => {
    const here = await site()
    const { app, tunnel } = here
    const idle = await inLane(here)
    await within(tunnel.server.stop(), 'the server to stop')
    await idle.end()
    idle.socket.end()
    await idle.closed()
    await here[Symbol.asyncDispose]()
    await using there = await site()
    const visitor = await inLane(there)
    const reached = Promise.withResolvers<void>()
    const goOn = Promise.withResolvers<void>()
    there.app.pause = () => {
      reached.resolve()
      return goOn.promise
    }
    await visitor.send(get(there.tunnel.host, '/text/last'))
    await reached.promise
    const stopping = there.tunnel.server.stop()
    goOn.resolve()
    expect((await readAnswer(visitor)).body).toBe('last')
    await within(stopping, 'the server to stop')
    expect(app.asked.length).toBeGreaterThan(0)
  })

  test('who waits for nothing but more of an answer keeps nobody from having one', async () => {
    await using here = await site()
    const listeners = await Promise.all(Array.from({ length: 8 }, () => rawDial(here.port)))
    here.visitors.push(...listeners)
    for (const listener of listeners) {
      await listener.send(get(here.host, '/endless/a'))
      await listener.until('\r\n\r\n')
    }
    const visitor = await inLane(here)
    expect((await ask(visitor, get(here.host, '/text/on'))).body).toBe('on')
  })

  test('many at once share a trunk, and each gets its own answers', async () => {
    await using here = await site()
    await Promise.all(
      Array.from({ length: 60 }, async (_, number) => {
        const visitor = await rawDial(here.port)
        here.visitors.push(visitor)
        for (let count = 0; count < 200; count++) {
          const text = `${number}-${count}`
          expect((await ask(visitor, get(here.host, `/text/${text}`))).body).toBe(text)
        }
      }),
    )
    expect(lanes()).toBe(60)
  }, 60_000)

  test('random sizes, on visitors that read when they like: each gets its own answers, whole', async () => {
    await using here = await site()
    const random = new Random(6)
    let inLanes = 0
    await Promise.all(
      Array.from({ length: 8 }, async () => {
        const visitor = await rawDial(here.port)
        here.visitors.push(visitor)
        for (let count = 0; count < FUZZ * 150; count++) {
          const size = random.below(random.pick([100, 100, 5_000, 5_000, 5_000, 110_000]))
          const isSlow = random.chance(0.1)
          if (isSlow) visitor.socket.pause()
          await visitor.send(get(here.host, `/size/${size}`))
          if (isSlow) await Bun.sleep(random.below(3))
          visitor.socket.resume()
          const { head, body } = await readAnswer(visitor)
          expect([statusOf(head), body.length, /^x*$/.test(body)]).toEqual([200, size, true])
          inLanes += lanes()
        }
      }),
    )
    expect(inLanes).toBeGreaterThan(FUZZ * 100)
  }, 60_000)

  test('random requests in random pieces: what a plain visitor gets, gets this one', async () => {
    await using here = await site()
    const { host } = here.tunnel
    const random = new Random(5)
    let visitor = await inLane(here)
    let inLanes = 0
    for (let count = 0; count < FUZZ * 150; count++) {
      const name = random.chance(0.8) ? 'text' : random.pick(ANSWER_NAMES)
      const path = `/${name}/${random.below(5_000)}`
      const kind = random.below(12)
      const lines = random.chance(0.1) ? random.pick(ODD_LINES) : ''
      const body = random.chance(0.2) ? get(host, '/smuggled') : 'b'.repeat(random.below(3_000))
      const request = kind < 3 ? post(host, body, path, lines) : get(host, path)
      const cut = random.chance(0.1) ? random.below(request.length) : 0
      if (cut > 0) {
        await visitor.send(request.slice(0, cut))
        await Bun.sleep(random.below(2))
      }
      await visitor.send(request.slice(cut))
      const answer = await readFinal(visitor)
      expect([path, answer]).toEqual([path, await plainly(here, request)])
      inLanes += lanes()
      if (visitor.hasEnded || (lanes() === 0 && random.chance(0.2))) {
        visitor.socket.terminate()
        visitor = await inLane(here)
      }
    }
    expect(inLanes).toBeGreaterThan(FUZZ * 30)
  }, 120_000)
})

/** What the status says of the server now is no part of it. */
function timeless({ head, body, payload }: Message): Message {
  const plain = (text: string) =>
    text.replace(/"uptime[^}]*|"uptime\w*":[^,}]*|"requests":\d+|"bytes\w+":\d+/g, '')
  return { head, body: plain(body), payload: plain(payload) }
}
