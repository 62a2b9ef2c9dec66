// Floods by HTTP/3: a server in a process of its own, an attacker made of quic-go at another address, and honest visitors beside it.
// Each flood lasts some seconds, so that its effect is seen.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { TunnelClient } from '../../src/index.ts'
import { buildVisitor, GO, Http3Visitor } from '../support/http3.ts'
import { ServerProcess } from '../support/server-process.ts'
import { TEST_CERT, TEST_KEY } from '../support/tls.ts'
import { within } from '../support/within.ts'

const CONNECTIONS = 20
const FLOOD_MS = 1_000
/** Enough visitors leave in this time to hold up a server that hears of it. */
const LEAVING_MS = 3_000
/** Each of a hundred streams may have a quarter of a megabyte on its way. */
const UNREAD_CONNECTIONS = 2
/**
 * Tells a lost response from a slow one: a server that gets a fifteenth of a processor beside the attacker needs 20 s for what it does
 * in 0.7 s.
 */
const ANSWERED_MS = 60_000
/** 70 MB are there without any visitor. */
const MOST_MB = 350

interface Outcome {
  readonly opened: number
  readonly ended: number
  readonly asked: number
}

describe.skipIf(GO === null)('HTTP/3 under (needs Go, for an attacker)', () => {
  let app: Bun.Server<undefined>
  beforeAll(async () => {
    await buildVisitor()
    app = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      idleTimeout: 0,
      async fetch(request) {
        if (request.url.endsWith('/big')) return new Response(new Uint8Array(1_048_576))
        await request.arrayBuffer().catch(() => {})
        return new Response('hello')
      },
    })
  }, 120_000)
  afterAll(() => app.stop(true))

  for (const [kind, what] of Object.entries({
    connections: 'connections that are opened for one request',
    streams: 'as many requests at once as a connection may have',
    resets: 'requests that are given up at once',
    heads: 'heads near the bound',
    'large-heads': 'heads beyond the bound',
    'half-heads': 'heads that do not end',
    slow: 'bodies that come a byte at a time',
    uploads: 'bodies without an end',
    unread: 'answers that nothing reads',
    garbage: 'datagrams that are no QUIC, or only begin as it',
  }))
    test(`${kind}: ${what}`, async () => {
      const options = { http3: true, tls: { cert: TEST_CERT, key: TEST_KEY } }
      await using server = await ServerProcess.start(options, 10_000)
      const client = new TunnelClient({ server: `https://localhost:${server.port}`, verifyServer: false })
      try {
        const shop = await client.http({ port: app.port!, subdomain: 'shop' })
        await client.http({ port: app.port!, subdomain: 'flooded' })
        const host = `${shop.name}.localhost:${server.port}`
        const ask = async () => {
          const url = `https://127.0.0.1:${server.port}/`
          const answer = await within(
            fetch(url, { headers: { host }, tls: { rejectUnauthorized: false } }),
            'an answer by TCP',
            ANSWERED_MS,
          )
          return `${answer.status} ${await answer.text()}`
        }
        await using visitor = await Http3Visitor.start(server.port, host)
        expect((await visitor.ask({})).body).toBe('hello')
        const attacker = [await buildVisitor(), 'flood', `127.0.0.1:${server.port}`]
        const connections = kind === 'unread' ? UNREAD_CONNECTIONS : CONNECTIONS
        const flood = Bun.spawn(
          [
            ...attacker,
            `flooded.localhost:${server.port}`,
            kind,
            `${connections}`,
            `${kind === 'connections' ? LEAVING_MS : FLOOD_MS}`,
          ],
          { stdout: 'pipe' },
        )
        while (flood.exitCode === null) {
          expect(await ask()).toBe('200 hello')
          expect(await within(visitor.ask({}), 'an answer by QUIC', ANSWERED_MS)).toMatchObject({
            body: 'hello',
            error: '',
          })
        }
        // The attacker's own words.
        const seen = JSON.parse(await new Response(flood.stdout).text()) as Outcome
        expect(seen.asked).toBeGreaterThan(connections)
        // Its connections are gone, and say so by ICMP.
        await using next = await Http3Visitor.start(server.port, host)
        expect(await within(next.ask({}), 'an answer afterwards', ANSWERED_MS)).toMatchObject({
          body: 'hello',
          error: '',
        })
        expect(await ask()).toBe('200 hello')
        expect((await server.memory()).peak).toBeLessThan(MOST_MB)
        expect(server.errors).toEqual([])
      } finally {
        await client.disconnect()
      }
    }, 240_000)
})
