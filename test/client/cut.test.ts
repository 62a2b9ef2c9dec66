// The carrier cut behind the n-th frame, for every n: nobody hangs, and both ends remember nothing.

import { expect, test } from 'bun:test'
import { ask } from '../support/ask.ts'
import { type BehindProxy, startBehindProxy } from '../support/behind-proxy.ts'
import { eventually, next } from '../support/events.ts'
import type { Cut } from '../support/tcp-proxy.ts'
import { within } from '../support/within.ts'

const BODY = 'b'.repeat(100_000)

const app = async (request: Request): Promise<Response> => {
  const { pathname } = new URL(request.url)
  if (pathname === '/echo') return new Response(await request.text())
  if (pathname === '/large') return new Response('l'.repeat(300_000))
  return new Response('small')
}

/** A bit of everything at once. An answer that arrives is whole and its own. */
async function visits({ port, host }: BehindProxy): Promise<number> {
  const outcomes = await Promise.allSettled([
    ask(port, host, { path: '/echo', method: 'POST', body: BODY }),
    ask(port, host, { path: '/large' }),
    ...Array.from({ length: 4 }, (_, index) => ask(port, host, { path: `/small/${index}` })),
  ])
  for (const outcome of outcomes) {
    // Cut after the head of the answer: the visitor sees a broken connection.
    if (outcome.status === 'rejected') continue
    const { status, body, code } = outcome.value
    if (status === 200) expect([BODY, 'l'.repeat(300_000), 'small']).toContain(body)
    else
      expect([`${status} ${code}`]).toEqual([expect.stringMatching(/^50[23] CLIENT_(?:GONE|RECONNECTING)$/)])
  }
  return outcomes.filter(one => one.status === 'fulfilled' && one.value.status === 200).length
}

test('what is under way when the connection is lost is reported as over, before the loss', async () => {
  await using tunnel = await startBehindProxy({
    fetch: () => new Promise<Response>(() => {}),
    maxBackoffMs: 10,
  })
  const { client, proxy, port, host } = tunnel
  const seen: string[] = []
  client.on('response', ({ path, status, error }) => seen.push(`${path} ${status} ${error}`))
  const lost = Promise.withResolvers<void>()
  client.on('disconnected', () => {
    seen.push('disconnected')
    lost.resolve()
  })
  // A round trip: the server knows by now that reports are wanted.
  expect(await client.probe()).toBe(true)
  const asked = next(client, 'request')
  const answer = ask(port, host, { path: '/slow' })
  await within(asked, 'the request')
  proxy.cutAll('reset')
  await within(lost.promise, 'the loss')
  expect(seen).toEqual(['/slow 0 CARRIER_LOST', 'disconnected'])
  expect(await within(answer, 'the answer')).toMatchObject({ status: 502, code: 'CLIENT_GONE' })
})

test.each<Cut>(['end', 'reset'])(
  '%s behind every frame of a busy session',
  async cut => {
    await using tunnel = await startBehindProxy({ fetch: app, maxBackoffMs: 10 })
    const { server, client, proxy } = tunnel
    proxy.cut = cut
    proxy.frames = 0
    expect(await within(visits(tunnel), 'all answers')).toBe(6)
    const frames = proxy.frames
    expect(frames).toBeGreaterThan(20)
    for (let count = 1; count <= frames; count++) {
      await eventually(() => client.isConnected() && proxy.connectionCount >= 1, 'the client to be there')
      proxy.frames = 0
      proxy.cutAfterFrames = count
      const outcome = within(visits(tunnel), `answers when cut behind frame ${count}`)
      await Promise.race([outcome, eventually(() => proxy.frames >= count, 'the cut').catch(() => {})])
      proxy.cutAfterFrames = Number.POSITIVE_INFINITY
      await outcome
      await eventually(() => server.getStats().pendingResponses === 0, 'the server to forget')
    }
    await eventually(() => client.isConnected(), 'the client to be back')
    expect(await visits(tunnel)).toBe(6)
    expect(server.getStats()).toMatchObject({ connections: 1, activeSubdomains: 1, pendingResponses: 0 })
    await client.disconnect()
    expect(server.getStats()).toMatchObject({ connections: 0, activeSubdomains: 0, pendingResponses: 0 })
    await eventually(() => proxy.connectionCount === 0, 'all carriers to be closed')
  },
  60_000,
)
