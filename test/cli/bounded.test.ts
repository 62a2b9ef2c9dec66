// More events than lines: what is printed, and that nothing is lost from the counts.

import { afterEach, expect, jest, test } from 'bun:test'
import type { CliEvent, Output, Sink } from '../../src/cli/output.ts'
import { BoundedOutput } from '../../src/cli/outputs/bounded.ts'
import { JsonOutput } from '../../src/cli/outputs/json.ts'
import { PlainOutput } from '../../src/cli/outputs/plain.ts'
import { QuietOutput } from '../../src/cli/outputs/quiet.ts'
import { TerminalOutput } from '../../src/cli/outputs/terminal.ts'
import { paletteFor } from '../../src/cli/terminal/palette.ts'
import { connectTunnel } from '../../src/index.ts'
import { ask } from '../support/ask.ts'
import { start } from './bin.ts'

afterEach(() => {
  jest.useRealTimers()
})

const now = () => new Date(2026, 0, 2, 12, 1, 7)
const plain = paletteFor(false, {})
const response = (id: number, more: object = {}): CliEvent => ({
  type: 'response',
  id,
  method: 'GET',
  path: '/',
  status: 200,
  durationMs: 18,
  bytes: 4_100,
  ...more,
})

class Paper implements Sink {
  text = ''
  readonly columns = 80
  write(text: string): void {
    this.text += text
  }
  get lines(): readonly string[] {
    return this.text.split('\n').slice(0, -1)
  }
}

class Events implements Output {
  readonly events: CliEvent[] = []
  event(event: CliEvent): void {
    this.events.push(event)
  }
  block(): void {}
  close(): void {}
}

test('beyond so many lines a second requests are counted, and told when the second is over', () => {
  jest.useFakeTimers()
  const paper = new Paper()
  const output = new BoundedOutput(new PlainOutput(new Paper(), paper, plain, now), 30, false)
  for (let id = 1; id <= 1_264; id++)
    output.event(response(id, id > 1_262 ? { error: 'ORIGIN_REFUSED' } : {}))
  expect(paper.lines.length).toBe(30)
  jest.advanceTimersByTime(1_000)
  expect(paper.lines.length).toBe(31)
  expect(paper.lines.at(-1)).toBe('12:01:07  … and 1,234 more requests, 2 errors')
  output.event(response(2_000))
  expect(paper.lines.length).toBe(32)
})

test('what the server counted joins the line at the end of the second, and comes before the totals', () => {
  jest.useFakeTimers()
  const paper = new Paper()
  const output = new BoundedOutput(new PlainOutput(new Paper(), paper, plain, now), 30, false)
  const more = { type: 'suppressed', started: 0, opened: 0, connections: 0, others: 0 } as const
  for (let id = 1; id <= 31; id++) output.event(response(id))
  output.event({ ...more, requests: 1_200, errors: 24 })
  output.event({ ...more, requests: 3, errors: 0 })
  expect(paper.lines.length).toBe(30)
  jest.advanceTimersByTime(1_000)
  expect(paper.lines.at(-1)).toBe('12:01:07  … and 1,204 more requests, 24 errors')
  output.event({ ...more, requests: 2, errors: 0 })
  output.event({ type: 'totals', requests: 1_236, errors: 24, bytes: 1, durationMs: 2_000 })
  expect(paper.lines.at(-2)).toBe('12:01:07  … and 2 more requests')
  expect(paper.lines.at(-1)).toContain('1236 requests')
})

test('a quiet output shows neither requests nor who comes and goes, but what goes wrong', () => {
  const paper = new Paper()
  const output = new QuietOutput(new PlainOutput(new Paper(), paper, plain, now))
  output.event(response(1))
  output.event({ type: 'connection', subdomain: 'app', wire: 'streams', remoteAddress: '192.0.2.7' })
  output.event({ type: 'error', code: 'ORIGIN_REFUSED', message: 'Nothing listens.' })
  expect(paper.lines.length).toBe(1)
  expect(paper.text).toContain('ORIGIN_REFUSED')
})

for (const isQuiet of [false, true])
  test(`totals are exact however many lines there were${isQuiet ? ', with --quiet' : ''}`, async () => {
    const args = ['server', '--port', '0', '--host', '127.0.0.1', '--log-rate', '5']
    await using server = start([...args, ...(isQuiet ? ['--quiet'] : [])])
    const url = await server.printed(/^http:\S+$/m)
    using app = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch: request => new Response('', { status: request.url.endsWith('/bad') ? 500 : 200 }),
    })
    const share = ['--port', `${app.port}`, '--host', '127.0.0.1', '--server', url, '--subdomain', 'app']
    await using client = start([...share, '--log-rate', '5', ...(isQuiet ? ['--quiet'] : [])])
    await client.printed(/^http:\S+$/m)
    const port = Number(new URL(url).port)
    for (let count = 0; count < 100; count++)
      await ask(port, 'app.localhost', { path: count % 25 === 0 ? '/bad' : '/' })
    client.kill('SIGTERM')
    await client.exited
    server.kill('SIGTERM')
    await server.exited
    for (const { stderr } of [client, server]) {
      expect(stderr).toContain('100 requests, ')
      expect(stderr).toContain(' 4 errors')
      expect(stderr.includes('GET')).toBe(!isQuiet)
    }
  })

test('the status line of a terminal counts those without a line', () => {
  jest.useFakeTimers()
  const paper = new Paper()
  const output = new BoundedOutput(new TerminalOutput(paper, plain, now), 30, false)
  output.event({ type: 'listening', url: 'http://localhost', port: 80, domains: ['localhost'] })
  for (let id = 1; id <= 100; id++) {
    output.event({
      type: 'visitorConnected',
      id,
      tunnel: 'tcp-20000',
      remoteAddress: '1.2.3.4',
      remotePort: id,
    })
    output.event(response(id))
  }
  jest.advanceTimersByTime(1_000)
  expect(paper.text).toContain('… and 70 more requests')
  expect(paper.text).toMatch(/● live {2}100 requests, 100 connections, 100 open +p95 18 ms$/)
  output.close()
})

test('what was counted has its line before the end, and events that visitors cannot cause are never counted', () => {
  const inner = new Events()
  const output = new BoundedOutput(inner, 1, false)
  for (let id = 1; id <= 3; id++) output.event(response(id))
  output.event({ type: 'notice', code: 'RELOADED', message: 'in force' })
  output.close()
  expect(inner.events.map(({ type }) => type)).toEqual(['response', 'notice', 'suppressed'])
  expect(inner.events.at(-1)).toMatchObject({ requests: 2, connections: 0, errors: 0, others: 0 })
})

test('a WebSocket with a line for its opening has one for its end', () => {
  const inner = new Events()
  const output = new BoundedOutput(inner, 1, false)
  output.event({ type: 'upgraded', id: 1, method: 'GET', path: '/' })
  for (const id of [2, 1, 1]) output.event(response(id))
  expect(inner.events.map(({ type }) => type)).toEqual(['upgraded', 'response'])
  output.close()
  expect(inner.events.at(-1)).toMatchObject({ type: 'suppressed', requests: 2 })
})

test('a lost connection takes its WebSockets along: the next one counts its requests from 1 again', () => {
  const inner = new Events()
  const output = new BoundedOutput(inner, 1, false)
  output.event({ type: 'upgraded', id: 1, method: 'GET', path: '/' })
  output.event({ type: 'disconnected', code: 'CARRIER_LOST' })
  output.event(response(1))
  expect(inner.events.map(({ type }) => type)).toEqual(['upgraded', 'disconnected'])
  output.close()
  expect(inner.events.at(-1)).toMatchObject({ type: 'suppressed', requests: 1 })
})

test('no line is longer than a thousand columns, and JSON cuts what visitors make up', () => {
  const [paper, json] = [new Paper(), new Paper()]
  const path = `/${'x'.repeat(16_000)}`
  const method = 'M'.repeat(5_000)
  new PlainOutput(new Paper(), paper, plain, now).event(response(1, { path, method }))
  expect(paper.lines[0]?.length).toBeLessThanOrEqual(1_000)
  expect(paper.lines[0]).toEndWith('x…')
  new JsonOutput(json, now).event(response(1, { path, method }))
  const event = JSON.parse(json.text)
  expect(event.path).toBe(`${path.slice(0, 2_048)}…`)
  expect(event.method).toBe(`${method.slice(0, 64)}…`)
})

test('`localtunnels server` in a pipe prints no more than --log-rate lines a second, and counts the rest', async () => {
  await using run = start(['server', '--port', '0', '--host', '127.0.0.1', '--log-rate', '5'])
  const server = await run.printed(/^http:\S+$/m)
  const tunnel = await connectTunnel({ server, subdomain: 'app', fetch: () => new Response('hello') })
  const path = `/${'x'.repeat(10_000)}`
  for (let count = 0; count < 100; count++) await ask(Number(new URL(server).port), 'app.localhost', { path })
  await tunnel.disconnect()
  run.kill('SIGTERM')
  await run.exited
  const lines = run.stderr.split('\n').filter(line => line.includes('/xxx'))
  const counted = [...run.stderr.matchAll(/… and (\d+) more requests?/g)].map(([, number]) => Number(number))
  expect(lines.length + counted.reduce((sum, number) => sum + number, 0)).toBe(100)
  expect(counted.length).toBeGreaterThan(0)
  for (const line of run.stderr.split('\n')) expect(line.length).toBeLessThanOrEqual(1_000)
  expect(run.stderr).toContain('100 requests')
})
