// Messages that are not everyday ones, between two servers: upgrades, answers that are not strict, HTTP/2 by prior knowledge.

import { expect, test } from 'bun:test'
import { TestCluster } from '../support/clusters.ts'
import { get, headerOf, ok, readAnswer, statusOf } from '../support/exchange.ts'
import { get as get2, H2Peer, head as head2 } from '../support/h2-peer.ts'
import { RawOrigin, rawDial } from '../support/raw.ts'
import { within } from '../support/within.ts'

const HOST = 'shop.localhost'

test('upgrades, loose answers and HTTP/2 without TLS pass between servers, and nobody forges a visitor', async () => {
  using origin = new RawOrigin()
  await using cluster = new TestCluster()
  const [a, b] = [await cluster.server(), await cluster.server()]
  const client = await cluster.client({
    server: a.url,
    subdomain: 'shop',
    port: origin.port,
    host: '127.0.0.1',
  })
  const reason = new Promise(resolve =>
    client.on('response', answer => answer.reason !== undefined && resolve(answer.reason)),
  )

  const switching = await rawDial(b.port)
  const forged = 'localtunnels-visitor: https 1 9.9.9.9\r\n'
  await switching.send(get(HOST, '/exec', `${forged}Connection: Upgrade\r\nUpgrade: tcp\r\n`))
  const app = await origin.accept()
  const head = await app.until('\r\n\r\n')
  expect(headerOf(head, 'upgrade')).toBe('tcp')
  expect(headerOf(head, 'x-forwarded-for')).toBe('127.0.0.1')
  expect(head).not.toMatch(/localtunnels-visitor/i)
  await app.send('HTTP/1.1 101 UPGRADED\nConnection: Upgrade\nUpgrade: tcp\n\nhi')
  expect(statusOf(await switching.until('\r\n\r\n'))).toBe(101)
  expect(await switching.exactly(2)).toBe('hi')
  await switching.send('there')
  expect(await app.exactly(5)).toBe('there')

  const visitor = await rawDial(b.port)
  await visitor.send(get(HOST))
  const loose = await origin.accept()
  await loose.until('\r\n\r\n')
  await loose.send(
    'HTTP/1.2 200 OK\nServer : x\nTransfer-Encoding: chunked\nContent-Length: 9\n\n2  \r\nok\r\n0\r\n\r\n',
  )
  expect(await readAnswer(visitor)).toMatchObject({ body: '2\r\nok\r\n0\r\n\r\n', payload: 'ok' })
  await visitor.send(get(HOST))
  const broken = await origin.accept()
  await broken.until('\r\n\r\n')
  await broken.send('HTTP/1.1 200 OK\r\nnonsense\r\n\r\n')
  const refused = await readAnswer(visitor)
  expect(headerOf(refused.head, 'x-localtunnels-error')).toBe('ORIGIN_INVALID')
  expect(refused.body).not.toContain('colon')
  expect(await within(reason, 'the reason')).toBe('line 2 of its head has no colon')

  await using peer = await H2Peer.plain(b.port)
  peer.send(head2(1, get2(HOST)))
  const plain = await origin.accept()
  await plain.until('\r\n\r\n')
  await plain.send(ok('by HTTP/2'))
  expect((await peer.answered(1)).body(1).toString()).toBe('by HTTP/2')
})
