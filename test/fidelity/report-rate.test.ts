// More requests than are reported one by one: the others are counted, exactly, at the server and at the client.

import { expect, test } from 'bun:test'
import { canSplice, spliceCounts } from '../../src/accelerator/threads.ts'
import type { TunnelClientOptions } from '../../src/client/options.ts'
import { TunnelClient, TunnelServer } from '../../src/index.ts'
import type { Bounds } from '../../src/server/settings/bounds.ts'
import { ask } from '../support/ask.ts'
import { eventually } from '../support/events.ts'
import { get, readAnswer } from '../support/exchange.ts'
import { rawDial } from '../support/raw.ts'
import { ScriptedApp } from '../support/scripted-app.ts'
import { type LiveTunnel, startTunnel } from '../support/tunnel.ts'

const RATE = 5

class Books {
  begun = 0
  readonly alone: { readonly status: number; readonly path: string }[] = []
  counted = 0
  errors = 0
  bytes = 0
  underWay = 0

  constructor({ server, client }: LiveTunnel, which: 'server' | 'client') {
    const count = (counts: { requests: number; errors: number; bytes: number; inFlight?: number }) => {
      this.counted += counts.requests
      this.errors += counts.errors
      this.bytes += counts.bytes
      this.underWay = counts.inFlight ?? 0
    }
    const take = (event: { status: number; path: string; bytes: number; error?: string }) => {
      this.alone.push(event)
      this.bytes += event.bytes
      if (event.status >= 500 || (event.error !== undefined && event.error !== 'CANCELLED')) this.errors++
    }
    if (which === 'server') {
      server.on('request', take)
      server.on('requests', count)
    } else {
      client.on('request', () => void this.begun++)
      client.on('response', take)
      client.on('requests', count)
    }
  }

  get all(): number {
    return this.alone.length + this.counted
  }
}

const bothBooks = (tunnel: LiveTunnel) => [new Books(tunnel, 'server'), new Books(tunnel, 'client')] as const

const limited = (more: TunnelClientOptions = {}, limits: Partial<Bounds> = {}) =>
  startTunnel(
    {
      fetch: request => new Response('x', { status: request.url.endsWith('/bad') ? 503 : 200 }),
      reportRate: RATE,
      ...more,
    },
    { server: { reportRate: RATE, limits } },
  )

test('requests beyond the rate are counted, and nothing is lost or counted twice', async () => {
  await using tunnel = await limited()
  const books = bothBooks(tunnel)
  for (let count = 0; count < 60; count++)
    await ask(tunnel.port, tunnel.host, { path: count % 10 === 0 ? '/bad' : '/' })
  await eventually(() => books.every(({ all }) => all === 60), 'all sixty')
  for (const { alone, counted, errors, underWay } of books) {
    expect(alone.length).toBeGreaterThanOrEqual(RATE)
    expect(counted).toBeGreaterThan(0)
    expect([errors, underWay]).toEqual([6, 0])
  }
  expect(books[1].begun).toBe(books[1].alone.length)
  expect(books[0].bytes).toBe(books[1].bytes)
})

test('below the rate each is reported by itself', async () => {
  await using tunnel = await limited()
  const books = bothBooks(tunnel)
  for (let count = 0; count < RATE; count++) await ask(tunnel.port, tunnel.host, { path: `/${count}` })
  await eventually(() => books.every(({ all }) => all === RATE), 'all five')
  for (const { alone, counted } of books) {
    expect(alone.map(({ path }) => path)).toEqual(['/0', '/1', '/2', '/3', '/4'])
    expect(counted).toBe(0)
  }
})

test('without a rate each is reported by itself, however many there are', async () => {
  await using tunnel = await limited({ reportRate: 0 })
  const books = new Books(tunnel, 'client')
  for (let count = 0; count < 60; count++) await ask(tunnel.port, tunnel.host)
  await eventually(() => books.alone.length === 60, 'all sixty')
  expect(books.counted).toBe(0)
})

test('requests under way are among the counts, and end with the connection', async () => {
  const asked: (() => void)[] = []
  const fetch = () => new Promise<Response>(resolve => void asked.push(() => resolve(new Response('late'))))
  await using tunnel = await limited({ fetch, reconnect: false, reportRate: 1 }, { drainTimeoutMs: 50 })
  const books = new Books(tunnel, 'client')
  const visitors = Array.from({ length: 20 }, () => ask(tunnel.port, tunnel.host).catch(() => undefined))
  await eventually(() => asked.length === 20 && books.underWay > 0, 'requests under way')
  expect(books.begun + books.underWay).toBe(20)
  for (const answer of asked.slice(0, 10)) answer()
  await eventually(() => books.all === 10, 'ten answers')
  await tunnel.server.stop()
  await eventually(() => books.all === 20, 'the ends of the others')
  await Promise.all(visitors)
  expect(books.underWay).toBe(0)
})

test('what is counted is passed on before close() and stop() are over', async () => {
  await using tunnel = await limited()
  const books = bothBooks(tunnel)
  for (let count = 0; count < 40; count++) await ask(tunnel.port, tunnel.host)
  await tunnel.client.close()
  expect(books[1].all).toBe(40)
  await tunnel.server.stop()
  expect(books[0].all).toBe(40)
})

test.skipIf(!canSplice())('requests that lanes serve are counted as exactly', async () => {
  using app = new ScriptedApp()
  await using tunnel = await startTunnel(
    { port: app.port, reportRate: RATE },
    { server: { reportRate: RATE } },
  )
  const books = bothBooks(tunnel)
  const visitor = await rawDial(tunnel.port)
  let asked = 0
  const askOnce = async () => {
    await visitor.send(get(tunnel.host, `/text/${asked++}`))
    await readAnswer(visitor)
  }
  while (spliceCounts().lanes === 0) await askOnce()
  for (let count = 0; count < 500; count++) await askOnce()
  // While the lane goes on.
  await eventually(() => books.every(({ all }) => all === asked), 'all of them')
  for (const { alone, counted, errors } of books) {
    expect(alone.length).toBeGreaterThanOrEqual(RATE)
    expect(counted).toBeGreaterThan(100)
    expect(errors).toBe(0)
  }
  visitor.socket.terminate()
  await eventually(() => spliceCounts().laneEnds === 0, 'the end of the lane')
  expect(books.map(({ all }) => all)).toEqual([asked, asked])
})

test('a rate that is no whole number is refused', () => {
  for (const reportRate of [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY]) {
    expect(() => new TunnelServer({ reportRate })).toThrow('reportRate')
    expect(() => new TunnelClient({ server: 'localhost', port: 1, reportRate })).toThrow('reportRate')
  }
})
