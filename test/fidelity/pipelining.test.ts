// Many requests on one connection: answered in order, each routed by its own Host, bounded when nobody reads.

import { expect, test } from 'bun:test'
import { TunnelClient } from '../../src/index.ts'
import { get, headerOf, ok, post, rawTunnel, readAnswer, readRequest } from '../support/exchange.ts'
import { type RawConnection, RawOrigin, rawDial } from '../support/raw.ts'
import { startTunnel } from '../support/tunnel.ts'

/** Answers every request on every connection of `origin` with what `answer` makes of it. */
function answering(
  origin: RawOrigin,
  answer: (head: string, body: string) => string,
): { requests: string[] } {
  const seen = { requests: [] as string[] }
  const serve = async (app: RawConnection): Promise<void> => {
    for (;;) {
      const request = await readRequest(app)
      seen.requests.push(request.head)
      await app.send(answer(request.head, request.payload))
    }
  }
  const accept = async (): Promise<void> => {
    for (;;) serve(await origin.accept()).catch(() => {})
  }
  accept().catch(() => {})
  return seen
}

const path = (head: string): string => head.split(' ')[1] ?? ''

test('pipelined requests are answered in order, bodies and all', async () => {
  await using raw = await rawTunnel()
  answering(raw.origin, (head, body) => ok(`${path(head)} ${body}`))
  let requests = ''
  for (let n = 0; n < 50; n++) {
    if (n % 3 === 0) requests += get(raw.host, `/${n}`)
    else if (n % 3 === 1) requests += post(raw.host, `body ${n}`, `/${n}`)
    else
      requests += `PUT /${n} HTTP/1.1\r\nHost: ${raw.host}\r\nTransfer-Encoding: chunked\r\n\r\n6\r\nchunk \r\n2\r\n${n < 10 ? `0${n}` : n}\r\n0\r\n\r\n`
  }
  const visitor = await raw.visit(requests)
  for (let n = 0; n < 50; n++) {
    const body = n % 3 === 0 ? '' : n % 3 === 1 ? `body ${n}` : `chunk ${n < 10 ? `0${n}` : n}`
    expect((await readAnswer(visitor)).payload).toBe(`/${n} ${body}`)
  }
})

test('a connection may change its Host with every request', async () => {
  using first = new RawOrigin()
  using second = new RawOrigin()
  answering(first, head => ok(`first ${headerOf(head, 'host')}`))
  answering(second, head => ok(`second ${headerOf(head, 'host')}`))
  await using tunnel = await startTunnel({ port: first.port })
  await using other = new TunnelClient({
    server: tunnel.server.url,
    port: second.port,
    host: '127.0.0.1',
    subdomain: 'other',
  })
  await other.connect()
  const visitor = await rawDial(tunnel.port)
  const hosts = [
    'app.localhost',
    'other.localhost',
    'APP.localhost:1234',
    'nobody.localhost',
    'localhost',
    'other.localhost',
  ]
  await visitor.send(hosts.map(host => get(host)).join(''))
  const bodies: string[] = []
  for (let n = 0; n < hosts.length; n++) bodies.push((await readAnswer(visitor)).payload)
  expect(bodies[0]).toBe('first app.localhost')
  expect(bodies[1]).toBe('second other.localhost')
  expect(bodies[2]).toBe('first APP.localhost:1234')
  expect(bodies[3]).toContain('TUNNEL_NOT_FOUND')
  expect(bodies[4]).toStartWith('localtunnels ')
  expect(bodies[5]).toBe('second other.localhost')
  visitor.socket.terminate()
})

test('requests that came before FIN are all answered', async () => {
  await using raw = await rawTunnel()
  answering(raw.origin, head => ok(path(head)))
  const visitor = await raw.visit(get(raw.host, '/1') + get(raw.host, '/2') + get(raw.host, '/3'))
  visitor.socket.end()
  const text = await visitor.end()
  expect(text.match(/(?<=\n)\/\d/g)).toEqual(['/1', '/2', '/3'])
  expect(await visitor.closed()).toBeUndefined()
})

test('a visitor that sends FIN behind its request gets the answer, late as it may be within a second', async () => {
  await using raw = await rawTunnel()
  const visitor = await raw.visit(get(raw.host))
  visitor.socket.end()
  const app = await raw.origin.accept()
  await app.until('\r\n\r\n')
  await Bun.sleep(300)
  await app.send(ok('late'))
  const { head, body } = await readAnswer(visitor)
  expect(body).toBe('late')
  expect(headerOf(head, 'connection')).toBe('close')
  expect(await visitor.closed()).toBeUndefined()
})

test('a visitor that pipelines and never reads is served only as much as it takes', async () => {
  await using raw = await rawTunnel()
  const body = 'x'.repeat(100_000)
  const seen = answering(raw.origin, () => ok(body))
  const visitor = await raw.visit()
  visitor.socket.pause()
  // 2,000 answers of 100 KB would be 200 MB.
  await visitor.send(get(raw.host).repeat(2_000))
  let before = -1
  while (before !== seen.requests.length) {
    before = seen.requests.length
    await Bun.sleep(250)
  }
  expect(seen.requests.length).toBeLessThan(200)
  visitor.socket.resume()
  for (let n = 0; n < 2_000; n++) {
    await visitor.until('\r\n\r\n')
    await visitor.exactly(100_000)
  }
}, 60_000)

test('what is pipelined behind a request that waits is read only up to its limit', async () => {
  await using raw = await rawTunnel({ server: { limits: { maxPipelinedBytes: 10_000 } } })
  const visitor = await raw.visit(get(raw.host))
  const app = await raw.origin.accept()
  let sent = 0
  const request = get(raw.host, `/${'p'.repeat(8_000)}`)
  let isStuck = false
  while (!isStuck && sent < 100_000_000) {
    const taken = visitor.socket.write(Buffer.from(request))
    sent += taken
    if (taken === 0)
      isStuck = await Promise.race([
        Bun.sleep(300).then(() => true),
        visitor
          .when(() => false, '')
          .then(
            () => false,
            () => false,
          ),
      ]) // prettier-ignore
  }
  expect(isStuck).toBe(true)
  app.socket.terminate()
}, 60_000)

test('more of them than one turn of the event loop works off are all answered in order, also behind FIN', async () => {
  await using tunnel = await startTunnel({ fetch: async request => new Response(await request.text()) })
  const kinds = [
    get('nobody.localhost'),
    get('localhost', '/health'),
    post(tunnel.host, 'sized'),
    `PUT / HTTP/1.1\r\nHost: ${tunnel.host}\r\nTransfer-Encoding: chunked\r\n\r\n${'1\r\nx\r\n'.repeat(200)}0\r\n\r\n`,
    get('nobody.localhost'),
    get('nobody.localhost'),
    get('nobody.localhost'),
  ]
  const answers = [/^HTTP\/1.1 404 /, /^HTTP\/1.1 200 .*OK$/s, /sized$/, /x{200}$/]
  const visitor = await rawDial(tunnel.port)
  const rounds = 300
  const sent = visitor.send(kinds.join('').repeat(rounds)).then(() => visitor.socket.end())
  for (let round = 0; round < rounds; round++)
    for (let kind = 0; kind < kinds.length; kind++) {
      const { head, payload } = await readAnswer(visitor)
      expect(head + payload).toMatch(answers[kind] ?? answers[0]!)
    }
  await sent
  await visitor.when(() => visitor.hasEnded, 'the end')
})
