// What throws while a request is booked, or when its wait is over: the visitor gets 500, and nothing of it stays counted.

import { afterEach, expect, mock, spyOn, test } from 'bun:test'
import { Agent } from 'node:http'
import { RequestRecord } from '../../src/server/routing/exchanges.ts'
import { Member } from '../../src/server/tunnels/member.ts'
import { Tunnel } from '../../src/server/tunnels/tunnel.ts'
import { StreamsUpstream } from '../../src/server/upstreams/streams.ts'
import { ask } from '../support/ask.ts'
import { startBehindProxy } from '../support/behind-proxy.ts'
import { eventually, next } from '../support/events.ts'
import { startTunnel } from '../support/tunnel.ts'

afterEach(() => mock.restore())

function thrown(): never {
  throw new Error('thrown')
}

test.each([
  ['before it counts for a member', () => spyOn(Tunnel.prototype, 'choose').mockImplementationOnce(thrown)],
  [
    'once it counts for a member',
    () => spyOn(RequestRecord.prototype, 'servedBy').mockImplementationOnce(thrown),
  ],
])('at its arrival, %s', async (_when, throwOnce) => {
  // Far longer than the test: a request that stays counted keeps the server from its end.
  const server = { drainTimeoutMs: 600_000 }
  await using tunnel = await startTunnel({ fetch: () => new Response('x') }, { server: { limits: server } })
  const { port, host } = tunnel
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const began = spyOn(Member.prototype, 'began')
  const finished = spyOn(Member.prototype, 'finished')
  throwOnce()
  const told = next(tunnel.server, 'error')
  expect(await ask(port, host, { agent })).toMatchObject({ status: 500, code: 'INTERNAL' })
  expect((await told).message).toBe('thrown')
  expect(await ask(port, host, { agent })).toMatchObject({ status: 200, body: 'x' })
  expect(tunnel.server.getStats()).toMatchObject({ requests: 2, pendingResponses: 0 })
  expect(finished.mock.calls.length).toBe(began.mock.calls.length)
  agent.destroy()
})

test.each([
  ['while it is booked', () => spyOn(RequestRecord.prototype, 'servedBy').mockImplementationOnce(thrown)],
  ['while it is sent', () => spyOn(StreamsUpstream.prototype, 'begin').mockImplementationOnce(thrown)],
])('when its client is back, %s: the others that wait are served', async (_when, throwOnce) => {
  await using tunnel = await startBehindProxy({ fetch: () => new Response('x') })
  const { server, client, proxy, port, host } = tunnel
  proxy.isDown = true
  const lost = next(client, 'disconnected')
  proxy.cutAll()
  await lost
  await eventually(() => server.getStats().connections === 0, 'the server to notice')
  const waiting = [ask(port, host), ask(port, host)]
  await eventually(() => server.getStats().pendingResponses === 2, 'both to be held')
  throwOnce()
  const told = next(server, 'error')
  proxy.isDown = false
  const codes = (await Promise.all(waiting)).map(({ status, code }) => code ?? `${status}`)
  expect(codes.toSorted()).toEqual(['200', 'INTERNAL'])
  expect((await told).message).toBe('thrown')
  expect(server.getStats().pendingResponses).toBe(0)
  expect(client.getState()).toBe('connected')
})
