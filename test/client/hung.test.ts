// A client process that hangs: its visitors learn so soon, because they wait for it, however their requests travel.

import { expect, test } from 'bun:test'
import { ask } from '../support/ask.ts'
import { get, readAnswer } from '../support/exchange.ts'
import { ClientProcess } from '../support/processes.ts'
import { rawDial } from '../support/raw.ts'
import { startServer } from '../support/tunnel.ts'

// What is not bounded by `hungAfterMs` takes far longer than these tests.
const LIMITS = { pingIntervalMs: 20_000, deadAfterMs: 60_000, hungAfterMs: 800, holdTimeoutMs: 0 }

test.each(['streams', 'json'] as const)(
  '%s wire: a request that waits finds out within hungAfterMs; silence alone is left in peace',
  async wire => {
    using app = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('hello') })
    await using server = await startServer({ limits: { ...LIMITS, streamIdleMs: 1 } })
    await using client = new ClientProcess(`127.0.0.1:${server.port}`, 'app', app.port ?? 0, {
      isJson: wire === 'json',
    })
    await client.event('connected')
    await client.freeze()
    // Nothing tells that nothing happens.
    await Bun.sleep(1_500)
    expect(server.getStats().connections).toBe(1)
    const since = performance.now()
    expect(await ask(server.port, 'app.localhost')).toMatchObject({ status: 502, code: 'CLIENT_GONE' })
    expect(performance.now() - since).toBeLessThan(4_000)
    expect(server.getStats().connections).toBe(0)
  },
)

test('visitors in lanes find out as well', async () => {
  using app = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('hello') })
  await using server = await startServer({ limits: LIMITS })
  await using client = new ClientProcess(`127.0.0.1:${server.port}`, 'app', app.port ?? 0)
  await client.event('connected')
  const visitor = await rawDial(server.port)
  for (let n = 0; n < 200; n++) {
    await visitor.send(get('app.localhost'))
    await readAnswer(visitor)
  }
  await client.freeze()
  const since = performance.now()
  await visitor.send(get('app.localhost'))
  expect((await readAnswer(visitor)).head).toStartWith('HTTP/1.1 502 ')
  expect(performance.now() - since).toBeLessThan(4_000)
})
