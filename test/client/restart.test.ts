// A server that restarts: its clients are back soon, all of them, however long they have been asking by then.

import { expect, test } from 'bun:test'
import { pauseBefore } from '../../src/client/carriers/tries.ts'
import { TunnelClient, TunnelServer } from '../../src/index.ts'
import { ask } from '../support/ask.ts'
import { eventually } from '../support/events.ts'
import { startServer } from '../support/tunnel.ts'

const CLIENTS = 50

// Some 3 s pass until each has asked five times in vain.
test('fifty clients are back within two seconds of the start, each under its name', async () => {
  const first = await startServer({ limits: { drainTimeoutMs: 50 } })
  const { port } = first
  const attempts = Array.from({ length: CLIENTS }, () => 0)
  const clients = attempts.map((_, index) => {
    const client = new TunnelClient({
      server: `127.0.0.1:${port}`,
      subdomain: `app${index}`,
      fetch: () => new Response(`${index}`),
    })
    client.on('error', () => {})
    client.on('reconnecting', ({ attempt }) => {
      attempts[index] = attempt
    })
    return client
  })
  await Promise.all(clients.map(client => client.connect()))
  await first.stop()
  await eventually(() => Math.min(...attempts) >= 5, 'five tries of each')
  const second = new TunnelServer({ port, host: '127.0.0.1' })
  const since = performance.now()
  await second.start()
  await eventually(() => clients.every(client => client.isConnected()), 'all to be back')
  const elapsed = performance.now() - since
  expect(elapsed).toBeLessThan(2_000)
  expect(clients.map(client => client.getSubdomain())).toEqual(attempts.map((_, index) => `app${index}`))
  expect((await ask(port, 'app49.localhost')).body).toBe('49')
  await Promise.all(clients.map(client => client.disconnect()))
  await second.stop()
}, 60_000)

test('tries follow within a second for half a minute, then within maxBackoffMs', () => {
  const longest = (attempt: number, max = 5_000) => pauseBefore(attempt, max, () => 0.999_999)
  expect([1, 2, 3, 4, 5, 59, 60, 61, 62, 63, 64, 1_000].map(attempt => longest(attempt))).toEqual([
    0, 249, 499, 999, 999, 999, 999, 999, 1_999, 3_999, 4_999, 4_999,
  ])
  expect([2, 60, 61, 100].map(attempt => longest(attempt, 100))).toEqual([99, 99, 99, 99])
  expect(pauseBefore(30, 5_000, () => 0)).toBe(0)
})
