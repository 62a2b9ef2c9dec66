// What the server and the client report about exchanges: the status the visitor got, its bytes, the code.

import { expect, test } from 'bun:test'
import type { TunnelServerEvents } from '../../src/server/options.ts'
import { get, ok, rawTunnel, readAnswer } from '../support/exchange.ts'
import { rawDial } from '../support/raw.ts'
import { startTunnel } from '../support/tunnel.ts'

test('an exchange is reported with the status that the visitor got', async () => {
  await using raw = await rawTunnel()
  const reports: TunnelServerEvents['request'][] = []
  raw.tunnel.server.on('request', report => void reports.push(report))
  const visitor = await raw.visit(get(raw.host, '/fine'))
  const app = await raw.origin.accept()
  await app.until('\r\n\r\n')
  await app.send(ok('fine'))
  await readAnswer(visitor)
  await visitor.send(get(raw.host, '/broken'))
  await app.until('\r\n\r\n')
  await app.send('nonsense')
  await readAnswer(visitor)
  expect(reports.map(({ method, path, status, error }) => [method, path, status, error])).toEqual([
    ['GET', '/fine', 200, undefined],
    ['GET', '/broken', 502, 'ORIGIN_INVALID'],
  ])
})

test('the client hears of a refused origin with 502 and its code', async () => {
  await using tunnel = await startTunnel({ port: 1 })
  const { promise, resolve } = Promise.withResolvers<{ status: number; error?: string }>()
  tunnel.client.on('error', () => {})
  tunnel.client.on('response', resolve)
  const visitor = await rawDial(tunnel.port)
  await visitor.send(get(tunnel.host))
  await readAnswer(visitor)
  expect(await promise).toMatchObject({ status: 502, error: 'ORIGIN_REFUSED' })
  visitor.socket.terminate()
})
