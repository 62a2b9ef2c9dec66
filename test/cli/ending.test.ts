// The real bin gets SIGTERM or Ctrl+C under load: no request that was accepted is lost, and it is over in time.

import { expect, test } from 'bun:test'
import { TunnelClient } from '../../src/index.ts'
import { KeptVisitors } from '../support/kept-visitors.ts'
import { closedAfterEach } from '../support/opened.ts'
import { startServer } from '../support/tunnel.ts'
import { within } from '../support/within.ts'
import { start } from './bin.ts'

const { open, defer } = closedAfterEach()

/** `LT_ROUNDS=50` runs the rounds of the promise; the usual run has one of each. */
const ROUNDS = Number(process.env.LT_ROUNDS ?? 2)
const SIGNALS = ['SIGTERM', 'SIGINT'] as const

function app(ms: number): string {
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: () => Bun.sleep(ms).then(() => new Response('x')),
  })
  defer(() => server.stop(true))
  return `${server.port}`
}

test(
  'a client: 40 visitors on kept connections get their answers, and 404 from then on',
  async () => {
    const origin = app(20)
    const server = open(await startServer())
    for (let round = 0; round < ROUNDS; round++) {
      const args = [origin, '--server', `127.0.0.1:${server.port}`, '--subdomain', 'app']
      const run = open(start(args))
      expect(await run.printed(/^(http:\S+)\n/m)).toContain('//app.')
      const isSound = (status: number) => status === 200 || status === 404
      const visitors = new KeptVisitors(server.port, 'app.localhost', 40, isSound)
      await visitors.answers(400)
      run.kill(SIGNALS[round % 2] ?? 'SIGTERM')
      expect(await within(run.exited, 'the end')).toBe(0)
      expect((await visitors.end()).failures).toEqual([])
    }
  },
  ROUNDS * 10_000,
)

test(
  'a server: the same visitors get their answers, the last one on each connection with close',
  async () => {
    const origin = app(20)
    for (let round = 0; round < ROUNDS; round++) {
      const run = open(start(['server', '--host', '127.0.0.1', '--port', '0']))
      const port = Number(await run.printed(/^http:\/\/\S+:(\d+)\n/m))
      const client = open(
        new TunnelClient({
          server: `127.0.0.1:${port}`,
          subdomain: 'app',
          port: Number(origin),
          host: '127.0.0.1',
        }),
      )
      await client.connect()
      const visitors = new KeptVisitors(port, 'app.localhost', 40)
      await visitors.answers(400)
      run.kill(SIGNALS[round % 2] ?? 'SIGTERM')
      expect(await within(run.exited, 'the end')).toBe(0)
      const counts = await visitors.end()
      expect(counts.failures).toEqual([])
      expect(counts.lastWithoutClose).toBe(0)
      await client.disconnect()
    }
  },
  ROUNDS * 10_000,
)
