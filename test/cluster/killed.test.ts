// The command line as operators run it: three servers and a Redis in processes of their own, of which one server is killed.

import { afterAll, expect } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TunnelClient } from '../../src/index.ts'
import { ask } from '../support/ask.ts'
import { ClusterServer, TOKEN } from '../support/cluster-server.ts'
import { next } from '../support/events.ts'
import { testWith } from '../support/needs.ts'
import { freePort } from '../support/ports.ts'
import { RawOrigin, rawDial } from '../support/raw.ts'
import { Redis } from '../support/redis.ts'
import { within } from '../support/within.ts'

const state = mkdtempSync(join(tmpdir(), 'localtunnels-killed-'))
afterAll(() => rmSync(state, { recursive: true, force: true }))

testWith(
  ['redis-server'],
  'a server is killed: its client is at another one with its name, and visitors of a third see no failure',
  async () => {
    await using redis = await Redis.start('redis-server')
    await using a = await ClusterServer.start({ redis: redis.url, state })
    await using b = await ClusterServer.start({ redis: redis.url, state })
    await using c = await ClusterServer.start({ redis: redis.url, state })
    const lines = (await c.nodes()).trimEnd().split('\n')
    expect(lines).toHaveLength(4)
    expect(lines.filter(line => line.includes('this one'))).toEqual([
      expect.stringContaining(`http://127.0.0.1:${c.port}`),
    ])

    const client = new TunnelClient({
      server: [a.url, b.url],
      token: TOKEN,
      subdomain: 'shop',
      exact: true,
      fetch: () => new Response('hello'),
    })
    await client.connect()
    try {
      expect((await ask(c.port, 'shop.localhost')).body).toBe('hello')
      const again = next(client, 'connected')
      await a.kill()
      const killedAt = performance.now()
      // It waits for the client, and then goes where it is.
      const waiting = ask(c.port, 'shop.localhost')
      const { url } = await within(again, 'the client to connect elsewhere')
      expect(url).toContain(`:${b.port}`)
      expect((await waiting).body).toBe('hello')
      // Two seconds are promised; a busy machine gets ten times as long.
      expect(performance.now() - killedAt).toBeLessThan(20_000)
      for (const { port } of [b, c]) expect((await ask(port, 'shop.localhost')).body).toBe('hello')
      if (process.env.LT_VERBOSE)
        console.log(`elsewhere after ${Math.round(performance.now() - killedAt)} ms`)
    } finally {
      await client.disconnect()
    }
  },
  60_000,
)

testWith(
  ['redis-server'],
  'a server is killed: the TCP port of its client is reached at the others, where visitors wait meanwhile',
  async () => {
    using origin = new RawOrigin()
    await using redis = await Redis.start('redis-server')
    const port = freePort()
    const flags = ['--tcp-ports', `${port}`]
    const at = (host: string) => ClusterServer.start({ redis: redis.url, state, host, flags })
    await using a = await at('127.0.0.1')
    await using b = await at('127.0.0.2')
    await using _c = await at('127.0.0.3')
    const client = new TunnelClient({ server: [a.url, b.url], token: TOKEN })
    await client.tcp({ port: origin.port, host: '127.0.0.1', remotePort: port })
    try {
      let before = await rawDial(port, '127.0.0.3').catch(() => undefined)
      while (before === undefined) before = await rawDial(port, '127.0.0.3').catch(() => undefined)
      await origin.accept()
      await a.kill()
      const killedAt = performance.now()
      const waiting = await rawDial(port, '127.0.0.3')
      const app = await within(origin.accept(), 'the visitor that waits')
      await app.send('hello')
      await waiting.until('hello')
      if (process.env.LT_VERBOSE)
        console.log(`elsewhere after ${Math.round(performance.now() - killedAt)} ms`)
      // What was under way at the killed server was cut, and does not look like an end.
      expect(await before.closed()).toBeInstanceOf(Error)
      ;(await rawDial(port, '127.0.0.2')).socket.terminate()
    } finally {
      await client.disconnect()
    }
  },
  60_000,
)
