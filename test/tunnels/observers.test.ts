// Observers on real servers: what they learn, of which tunnels, and that a failing one changes nothing for a visitor.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { Agent, request } from 'node:http'
import type { Guard, Observer, Outcome, Seen } from '../../src/index.ts'
import { TunnelClient } from '../../src/index.ts'
import { ask } from '../support/ask.ts'
import { eventually } from '../support/events.ts'
import { rawDial } from '../support/raw.ts'
import { startServer, startTunnel } from '../support/tunnel.ts'

let app: Bun.Server<undefined>
beforeAll(() => {
  app = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(asked, server) {
      if (server.upgrade(asked)) return undefined
      await asked.arrayBuffer()
      return new Response('hello', { status: asked.url.endsWith('/missing') ? 404 : 200 })
    },
    websocket: { message: (socket, text) => void socket.send(text) },
  })
})
afterAll(() => app.stop(true))

interface Noted {
  readonly what: 'began' | 'responded' | 'ended'
  readonly seen: Seen
  readonly status?: number
  readonly outcome?: Outcome
}

/** Writes down all that it is told. */
function notebook(tunnels?: readonly string[]): { observer: Observer; notes: Noted[] } {
  const notes: Noted[] = []
  const observer: Observer = {
    name: 'notebook',
    ...(tunnels && { tunnels }),
    began: seen => void notes.push({ what: 'began', seen }),
    responded: (seen, status) => void notes.push({ what: 'responded', seen, status }),
    ended: (seen, outcome) => void notes.push({ what: 'ended', seen, outcome }),
  }
  return { observer, notes }
}

const endsOf = (notes: readonly Noted[]) => notes.filter(({ what }) => what === 'ended')

test('an observer learns of head, answer and end, with address, sizes and times', async () => {
  const { observer, notes } = notebook()
  await using tunnel = await startTunnel({ port: app.port ?? 0 }, { server: { observers: [observer] } })
  await ask(tunnel.port, tunnel.host, { path: '/a?b=c', method: 'POST', body: 'x'.repeat(1_000) })
  await eventually(() => endsOf(notes).length === 1, 'the observers to be told')
  expect(notes.map(({ what }) => what)).toEqual(['began', 'responded', 'ended'])
  const seen = {
    id: 1,
    kind: 'http',
    tunnel: 'app',
    address: '127.0.0.1',
    method: 'POST',
    target: '/a?b=c',
    host: 'app.localhost',
  }
  for (const note of notes) expect(note.seen).toEqual(seen as Seen)
  const outcome = notes[2]?.outcome
  expect(outcome).toMatchObject({ status: 200, client: 1 })
  expect(outcome?.requestBytes).toBeGreaterThan(1_000)
  expect(outcome?.responseBytes).toBeGreaterThan(5)
  const { durationMs = 0, waitMs = 0, appMs = 0 } = outcome ?? {}
  expect(waitMs).toBeLessThanOrEqual(durationMs)
  expect(appMs).toBeGreaterThan(0)
  expect(appMs).toBeLessThanOrEqual(durationMs)
})

test('refusals, failures and hosts without a tunnel are seen with their code', async () => {
  const { observer, notes } = notebook()
  const closed: Guard = { name: 'closed', tunnels: ['app'], admit: () => ({ code: 'ADDRESS_REFUSED' }) }
  await using tunnel = await startTunnel(
    { port: app.port ?? 0 },
    { server: { observers: [observer], guards: [closed] } },
  )
  await ask(tunnel.port, tunnel.host)
  await ask(tunnel.port, 'other.localhost')
  await eventually(() => endsOf(notes).length === 2, 'the observers to be told')
  const [refused, missing] = endsOf(notes)
  expect(refused).toMatchObject({ outcome: { status: 403, code: 'ADDRESS_REFUSED' } })
  expect(missing).toMatchObject({
    seen: { tunnel: '', host: 'other.localhost' },
    outcome: { status: 404, code: 'TUNNEL_NOT_FOUND' },
  })
})

test('an observer for some tunnels is told of no other', async () => {
  const { observer, notes } = notebook(['team-*'])
  await using server = await startServer({ observers: [observer] })
  await using client = new TunnelClient({ server: `http://127.0.0.1:${server.port}` })
  await client.http({ port: app.port ?? 0, subdomain: 'team-shop' })
  await client.http({ port: app.port ?? 0, subdomain: 'shop' })
  await ask(server.port, 'shop.localhost')
  await ask(server.port, 'team-shop.localhost')
  await eventually(() => endsOf(notes).length === 1, 'the observers to be told')
  expect(notes.every(({ seen }) => seen.tunnel === 'team-shop')).toBe(true)
  expect(() => startServer({ observers: [{ name: 'odd', tunnels: ['a b'] }] })).toThrow('observers.tunnels')
})

test('what observers throw or reject with is an event, and no visitor notices', async () => {
  const failing: Observer = {
    name: 'failing',
    began() {
      throw new Error('at the head')
    },
    // An async function fits the type.
    ended: async () => {
      throw new Error('at the end')
    },
  }
  const { observer, notes } = notebook()
  await using tunnel = await startTunnel(
    { port: app.port ?? 0 },
    { server: { observers: [failing, observer] } },
  )
  const faults: string[] = []
  tunnel.server.on('error', error => faults.push(error.message))
  for (let count = 0; count < 20; count++)
    expect(await ask(tunnel.port, tunnel.host)).toMatchObject({ status: 200 })
  await eventually(() => endsOf(notes).length === 20, 'the observers to be told')
  expect(faults[0]).toContain('The observer "failing" failed: Error: at the head.')
  // However many visitors come, the first is an event, and the others are counted.
  expect(faults).toHaveLength(1)
  await tunnel.server.stop()
  expect(faults).toHaveLength(2)
  expect(faults[1]).toContain('at the end. Failures since the last report: 39.')
})

test('every request of one connection is seen, also where a lane serves it', async () => {
  const { observer, notes } = notebook()
  await using tunnel = await startTunnel({ port: app.port ?? 0 }, { server: { observers: [observer] } })
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  for (let count = 0; count < 300; count++)
    await new Promise((resolve, reject) =>
      request(
        { host: '127.0.0.1', port: tunnel.port, path: `/${count}`, agent, headers: { host: tunnel.host } },
        answer => answer.resume().on('end', resolve),
      )
        .on('error', reject)
        .end(),
    )
  agent.destroy()
  await eventually(() => endsOf(notes).length === 300, 'the observers to be told')
  expect(notes).toHaveLength(900)
  expect(new Set(endsOf(notes).map(({ seen }) => seen.target)).size).toBe(300)
  expect(endsOf(notes).every(({ outcome }) => (outcome?.requestBytes ?? 0) > 20)).toBe(true)
})

test('WebSockets and TCP connections are seen from their beginning to their end', async () => {
  const { observer, notes } = notebook()
  await using tunnel = await startTunnel({ port: app.port ?? 0 }, { server: { observers: [observer] } })
  const visitor = await rawDial(tunnel.port)
  await visitor.send(
    `GET /ws HTTP/1.1\r\nHost: ${tunnel.host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n` +
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n',
  )
  await visitor.until('\r\n\r\n')
  expect(notes.map(({ what, status }) => status ?? what)).toEqual(['began', 101])
  visitor.socket.terminate()
  await eventually(() => endsOf(notes).length === 1, 'the observers to be told')
  expect(endsOf(notes)[0]).toMatchObject({ outcome: { status: 101 } })

  const raw = await tunnel.client.tcp({ port: app.port ?? 0 })
  const caller = await rawDial(Number(new URL(raw.url).port))
  await caller.send('GET / HTTP/1.1\r\nHost: any\r\nConnection: close\r\n\r\n')
  await caller.until('hello')
  caller.socket.terminate()
  await eventually(() => endsOf(notes).length === 2, 'the observers to be told')
  expect(endsOf(notes)[1]).toMatchObject({ seen: { kind: 'tcp', method: '', tunnel: raw.name } })
  expect(endsOf(notes)[1]?.outcome?.responseBytes).toBeGreaterThan(20)
})
