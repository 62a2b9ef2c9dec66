// What each output makes of the same events.

import { expect, test } from 'bun:test'
import { Terminal } from '@xterm/headless'
import type { CliEvent, Output, ReadyEvent, Sink } from '../../src/cli/output.ts'
import { JsonOutput } from '../../src/cli/outputs/json.ts'
import { PlainOutput } from '../../src/cli/outputs/plain.ts'
import { TerminalOutput } from '../../src/cli/outputs/terminal.ts'
import { tellReach } from '../../src/cli/sharing/reach.ts'
import { Totals } from '../../src/cli/sharing/totals.ts'
import { paletteFor } from '../../src/cli/terminal/palette.ts'
import { VERSION } from '../../src/version.ts'

class Paper implements Sink {
  text = ''
  columns = 80
  write(text: string): void {
    this.text += text
  }
  /** What stays on a screen: a cleared line is gone. */
  get screen(): readonly string[] {
    const CLEAR = '\r\x1b[2K'
    return this.text.split('\n').map(line => line.split(CLEAR).at(-1) ?? '')
  }
}

const plain = paletteFor(false, {})
const now = () => new Date(2026, 0, 2, 12, 1, 7)
const READY: ReadyEvent = {
  type: 'ready',
  kind: 'http',
  url: 'https://calm-otter.tunnel.example',
  subdomain: 'calm-otter',
  wire: 'streams',
  origin: 'http://localhost:3000',
  server: 'tunnel.example',
  isEmbedded: false,
}
const response = (more: Partial<Extract<CliEvent, { type: 'response' }>> = {}): CliEvent => ({
  type: 'response',
  id: 1,
  method: 'GET',
  path: '/',
  status: 200,
  durationMs: 18,
  bytes: 4_100,
  ...more,
})
const CONNECTED: CliEvent = { type: 'connected', url: READY.url, subdomain: 'calm-otter', wire: 'streams' }

function terminal(columns = 80): { paper: Paper; output: Output } {
  const paper = new Paper()
  paper.columns = columns
  return { paper, output: new TerminalOutput(paper, plain, now) }
}

test('a terminal shows the URL as being checked before it answers, then the URL and a live dot', () => {
  const { paper, output } = terminal()
  output.event({ type: 'connecting', server: 'tunnel.example' })
  expect(paper.screen.at(-1)).toBe('  ◐ connecting to tunnel.example')
  output.event(CONNECTED)
  expect(paper.screen).toEqual(['  ◐ https://calm-otter.tunnel.example  checking'])
  output.event(READY)
  expect(paper.screen).toContain('  Public    https://calm-otter.tunnel.example')
  expect(paper.screen).toContain('  App       http://localhost:3000')
  expect(paper.screen).toContain('  Server    tunnel.example')
  expect(paper.screen.at(-1)).toBe('  ● live')
  output.close()
  expect(paper.screen.at(-1)).toBe('')
})

test('what a certificate waits for is the status line of a terminal, and lines of a log', () => {
  const ordered = (name: string, message: string): CliEvent => ({
    type: 'notice',
    code: 'CERTIFICATE_ORDERED',
    message,
    names: [name],
  })
  const { paper, output } = terminal()
  const log = new Paper()
  const plainOutput = new PlainOutput(new Paper(), log, plain, now)
  const tell = (event: CliEvent) => {
    for (const one of [output, plainOutput]) one.event(event)
  }
  tell({ type: 'listening', url: 'https://a.test', port: 443, domains: ['a.test'] })
  tell(ordered('a.test', 'For a.test: waiting for DNS to have the record.'))
  expect(paper.screen.at(-1)).toBe('  ◐ For a.test: waiting for DNS to have the record.')
  tell(ordered('a.test', 'The authority checks a.test now.'))
  expect(paper.screen.at(-1)).toBe('  ◐ The authority checks a.test now.')
  tell(ordered('b.test', 'The authority checks b.test now.'))
  expect(paper.screen.at(-1)).toBe('  ◐ (1 of 2) The authority checks a.test now.')
  tell({ type: 'notice', code: 'CERTIFICATE_ISSUED', message: 'Certificate for a.test.', names: ['a.test'] })
  expect(paper.screen.at(-1)).toBe('  ◐ The authority checks b.test now.')
  tell({ type: 'error', code: 'ACME_FAILED', message: 'b.test: refused.', names: ['b.test'] })
  expect(paper.screen.slice(-3)).toEqual([
    '  12:01:07  Certificate for a.test.',
    '  12:01:07  ACME_FAILED: b.test: refused.',
    '  ● live',
  ])
  expect(log.text.match(/waiting for DNS|checks [ab]\.test now/g)).toHaveLength(3)
  output.close()
})

test('while the certificate of the server is missing, the status line says so, and when the next try comes', () => {
  const failed = (names: readonly string[], retryAt: Date, hasCertificate = false): CliEvent => ({
    type: 'error',
    code: 'ACME_UNREACHABLE',
    message: `${names.join(', ')}: nobody there.`,
    names,
    retryAt: retryAt.toISOString(),
    hasCertificate,
  })
  const inMs = (ms: number) => new Date(now().getTime() + ms)
  const { paper, output } = terminal()
  output.event({ type: 'listening', url: 'https://a.test', port: 443, domains: ['a.test', 'b.test'] })
  // A tunnel's own is ordered again when a visitor asks for it, and a renewal has time.
  output.event(failed(['shop.a.test'], inMs(60_000)))
  output.event(failed(['a.test'], inMs(60_000), true))
  expect(paper.screen.at(-1)).toBe('  ● live')
  output.event(failed(['a.test', '*.a.test'], inMs(60_000)))
  expect(paper.screen.at(-1)).toBe('  ◐ up, no certificate for a.test: next try in 60 s')
  output.event(failed(['b.test', '*.b.test'], inMs(0)))
  expect(paper.screen.at(-1)).toBe('  ◐ (1 of 2) up, no certificate for a.test: next try in 60 s')
  const issued = { type: 'notice', code: 'CERTIFICATE_ISSUED', message: 'Certificate.' } as const
  output.event({ ...issued, names: ['a.test', '*.a.test'] })
  expect(paper.screen.at(-1)).toBe('  ◐ up, no certificate for b.test: trying again')
  output.event({
    type: 'notice',
    code: 'CERTIFICATE_ORDERED',
    message: 'The authority checks b.test now.',
    names: ['b.test', '*.b.test'],
  })
  expect(paper.screen.at(-1)).toBe('  ◐ The authority checks b.test now.')
  output.event({ ...issued, names: ['b.test', '*.b.test'] })
  expect(paper.screen.at(-1)).toBe('  ● live')
  output.close()
})

test('a server prints each error, also when the one before had the same code', () => {
  const LISTENING: CliEvent = { type: 'listening', url: 'http://localhost', port: 80, domains: ['localhost'] }
  const short = (refused: number): CliEvent => ({
    type: 'error',
    code: 'DESCRIPTORS_SHORT',
    message: `refused: ${refused}.`,
  })
  const { paper, output } = terminal()
  const log = new Paper()
  const plainOutput = new PlainOutput(new Paper(), log, plain, now)
  for (const one of [output, plainOutput])
    for (const event of [LISTENING, short(1), short(200)]) one.event(event)
  for (const { text } of [paper, log]) expect(text).toContain('DESCRIPTORS_SHORT: refused: 200.')
  output.close()
})

test('a terminal shows one line per request above the status line', () => {
  const { paper, output } = terminal()
  output.event(READY)
  output.event(response())
  output.event(
    response({
      method: 'POST',
      path: '/api',
      status: 502,
      durationMs: 1_240,
      bytes: 312,
      error: 'ORIGIN_CLOSED',
    }),
  )
  expect(paper.screen.slice(-3)).toEqual([
    '  12:01:07  200  GET    /                                         18 ms   4.1 kB',
    '  12:01:07  502  POST   /api  ORIGIN_CLOSED                       1.2 s    312 B',
    '  ● live  2 requests  1 error',
  ])
  output.close()
})

test('the event of a webhook stands behind the path, which gives way last', () => {
  const { paper, output } = terminal()
  output.event(READY)
  const hook = { method: 'POST', path: '/webhooks/stripe' }
  output.event(response({ ...hook, event: 'invoice.paid', status: 500 }))
  output.event(response({ ...hook, event: 'customer.subscription.updated' }))
  output.event(response({ ...hook, event: 'push\x1b[2J', error: 'ORIGIN_CLOSED', status: 502 }))
  expect(paper.screen.slice(-4, -1)).toEqual([
    '  12:01:07  500  POST   /webhooks/stripe  invoice.paid            18 ms   4.1 kB',
    '  12:01:07  200  POST   /webhooks/stripe  customer.subscripti…    18 ms   4.1 kB',
    '  12:01:07  502  POST   /webhooks/stripe  ORIGIN_CLOSED           18 ms   4.1 kB',
  ])
  const narrow = terminal(60)
  narrow.output.event(READY)
  narrow.output.event(response({ ...hook, event: 'invoice.paid' }))
  expect(narrow.paper.screen.at(-2)).toBe('  12:01:07  200  POST   /webhooks/stripe      18 ms   4.1 kB')
  output.close()
  narrow.output.close()
})

test('a WebSocket has a line when it opens and one when it is closed; the status counts those that are open', () => {
  const { paper, output } = terminal()
  output.event(READY)
  output.event({ type: 'upgraded', id: 7, method: 'GET', path: '/chat' })
  expect(paper.screen.slice(-2)).toEqual([
    '  12:01:07  101  GET    /chat                                      open',
    '  ● live  1 open',
  ])
  output.event(response({ id: 7, status: 101, path: '/chat', durationMs: 61_000 }))
  expect(paper.screen.slice(-2)).toEqual([
    '  12:01:07  101  GET    /chat                                      61 s   4.1 kB',
    '  ● live  1 request',
  ])
  output.close()
})

test('a visitor that leaves is no error', () => {
  const { paper, output } = terminal()
  output.event(READY)
  output.event(response({ status: 0, bytes: 0, error: 'CANCELLED' }))
  expect(paper.screen.at(-2)).toBe(
    '  12:01:07    —  GET    /  visitor left                           18 ms      0 B',
  )
  output.close()
  const totals = new Totals()
  totals.ended({ id: 1, status: 0, bytes: 0, error: 'CANCELLED' })
  totals.ended({ id: 2, status: 502, bytes: 0, error: 'ORIGIN_REFUSED' })
  expect(totals.event()).toMatchObject({ requests: 2, errors: 1 })
})

test('that visitors do not get through any more, and that they do again, is a notice', () => {
  const told: object[] = []
  const { output } = terminal()
  output.event = said => void told.push(said)
  for (const isReachable of [false, true])
    tellReach({ url: 'https://shop.tunnel.example', isReachable }, output)
  expect(told).toEqual([
    {
      type: 'notice',
      code: 'UNPROVEN',
      message: expect.stringContaining('No request comes back through https://shop.tunnel.example any more'),
    },
    { type: 'notice', code: 'PROVEN', message: 'Visitors reach it again.' },
  ])
})

test('at 40 columns a failed request keeps its path and a sentence its words', () => {
  const { paper, output } = terminal(40)
  output.event({ ...READY, isEmbedded: true })
  output.event(response({ path: '/api/orders/17', status: 502, error: 'ORIGIN_UNREACHABLE' }))
  expect(paper.screen.at(-2)).toBe('  502  GET    /api/orders…  ORIGIN_UNRE…')
  output.event({
    type: 'notice',
    code: 'UNPROVEN',
    message: 'Visitors may not reach it. Run: localtunnels doctor',
  })
  expect(paper.screen.slice(-3, -1)).toEqual(['  Visitors may not reach it. Run:', '  localtunnels doctor'])
  for (const line of paper.screen) expect(Bun.stringWidth(line)).toBeLessThanOrEqual(40)
  output.close()
})

test('services that are granted together line up', () => {
  const { paper, output } = terminal()
  const service = (name: string, url: string): CliEvent => ({
    type: 'service',
    service: name,
    kind: 'http',
    url,
    origin: 'http://localhost:1',
  })
  output.event(service('web', 'https://web.tunnel.example'))
  output.event(service('database', 'tcp://tunnel.example:20017'))
  output.event(service('api', 'https://a.tunnel.example'))
  output.event({ type: 'configured', file: 'localtunnels.toml', services: 3 })
  expect(paper.screen.filter(line => line.includes('→')).map(line => line.indexOf('→'))).toEqual([42, 42, 42])
  output.close()
})

test('the totals of a UDP tunnel claim no connections', () => {
  const { paper, output } = terminal()
  output.event({ ...READY, kind: 'udp', url: 'udp://tunnel.example:20053' })
  output.event({ type: 'totals', requests: 0, connections: 0, errors: 0, bytes: 0, durationMs: 3_000 })
  expect(paper.screen).toContain('  0 errors, 3.0 s')
  output.close()
})

const VISITOR = { id: 1, tunnel: 'tcp-20017', remoteAddress: '203.0.113.7', remotePort: 50_123 } as const
const visitorGone = (more: Partial<Extract<CliEvent, { type: 'visitorDisconnected' }>> = {}): CliEvent => ({
  type: 'visitorDisconnected',
  ...VISITOR,
  durationMs: 2_113,
  bytesIn: 4_127,
  bytesOut: 12_044,
  ...more,
})

test('a terminal shows one line per connection that is over, and how many are open', () => {
  const { paper, output } = terminal()
  output.event({ ...READY, kind: 'tcp', url: 'tcp://tunnel.example:20017', origin: 'localhost:22' })
  output.event({ type: 'visitorConnected', ...VISITOR })
  output.event({ type: 'visitorConnected', ...VISITOR, id: 2, remoteAddress: '2001:db8::7' })
  expect(paper.screen.at(-1)).toBe('  ● live  2 connections, 2 open')
  output.event(visitorGone())
  output.event(visitorGone({ id: 2, remoteAddress: '2001:db8::7', bytesOut: 0, error: 'ORIGIN_REFUSED' }))
  expect(paper.screen.slice(-3)).toEqual([
    '  12:01:07  203.0.113.7:50123       2.1 s    4.1 kB in     12 kB out',
    '  [2001:db8::7]:50123     2.1 s    4.1 kB in       0 B out  ORIGIN_REFUSED',
    '  ● live  2 connections',
  ])
  output.event({ type: 'totals', requests: 0, connections: 2, errors: 1, bytes: 1, durationMs: 3_000 })
  expect(paper.screen).toContain('  2 connections, 1 error, 3.0 s')
  output.close()
})

test('a connection line never exceeds the width; a server tells whose it was', () => {
  for (const columns of [40, 60, 80]) {
    const { paper, output } = terminal(columns)
    output.event({ type: 'listening', url: 'http://localhost:1', port: 1, domains: ['localhost'] })
    const remoteAddress = `2001:db8::\x1b]0;owned\x07${'f'.repeat(40)}`
    output.event(visitorGone({ remoteAddress, error: 'ORIGIN_UNREACHABLE' }))
    const line = paper.screen.at(-2) ?? ''
    expect(Bun.stringWidth(line)).toBeLessThanOrEqual(columns)
    expect(line).toContain('tcp-20017')
    expect(paper.text).not.toContain('\x1b]0;')
    output.close()
  }
})

test('a request line never exceeds the width and never carries control characters', () => {
  for (const columns of [40, 60, 80]) {
    const { paper, output } = terminal(columns)
    output.event(READY)
    output.event(response({ method: 'PROPPATCH', path: `/\x1b]0;owned\x07\r\n${'x'.repeat(500)}` }))
    const line = paper.screen.at(-2) ?? ''
    expect(Bun.stringWidth(line)).toBeLessThanOrEqual(columns)
    expect(paper.text).not.toContain('\x1b]0;')
    output.close()
  }
})

test('the status follows an outage and an app that is not there', () => {
  let time = now().getTime()
  const paper = new Paper()
  const output = new TerminalOutput(paper, plain, () => new Date(time))
  const status = () => paper.screen.at(-1)
  output.event(READY)
  output.event({ type: 'disconnected' })
  // With --exit-on-disconnect nothing follows.
  expect(status()).toBe('  ● live')
  output.event({ type: 'reconnecting', attempt: 1, delayMs: 0 })
  expect(status()).toBe('  ◐ reconnecting')
  time += 12_000
  output.event({ type: 'reconnecting', attempt: 4, delayMs: 900 })
  expect(status()).toBe('  ◐ reconnecting, 12 s')
  output.event(CONNECTED)
  expect(status()).toBe('  ● live')
  output.event({ type: 'origin', origin: ':3000', isUp: false })
  expect(status()).toBe('  ○ nothing on :3000 yet')
  output.event({ type: 'origin', origin: ':3000', isUp: true })
  expect(status()).toBe('  ● live')
  output.close()
})

test('an error that repeats in one outage is said once by the outputs for humans', () => {
  const log = new Paper()
  const { paper, output } = terminal()
  for (const one of [output, new PlainOutput(new Paper(), log, plain, now)]) {
    one.event(READY)
    for (const _try of [1, 2, 3])
      one.event({ type: 'error', code: 'SERVER_UNREACHABLE', message: 'Not there.' })
    one.event(CONNECTED)
    one.event({ type: 'error', code: 'SERVER_UNREACHABLE', message: 'Not there.' })
    one.close()
  }
  for (const text of [paper.text, log.text]) expect(text.split('SERVER_UNREACHABLE')).toHaveLength(3)
})

test('in a pipe stdout has the URL alone, again only when it changed', () => {
  const [out, log] = [new Paper(), new Paper()]
  const output = new PlainOutput(out, log, plain, now)
  output.event({ type: 'connecting', server: 'tunnel.example' })
  output.event(CONNECTED)
  expect(out.text).toBe('')
  output.event(READY)
  output.event(response())
  output.event({ type: 'disconnected' })
  output.event(CONNECTED)
  output.event({ ...CONNECTED, url: 'https://other.tunnel.example' })
  output.event({ type: 'totals', requests: 142, errors: 2, bytes: 1, durationMs: 31 * 60_000 })
  expect(out.text).toBe('https://calm-otter.tunnel.example\nhttps://other.tunnel.example\n')
  expect(log.text).toContain('200  GET      18 ms   4.1 kB  /\n')
  expect(log.text).toEndWith('12:01:07  142 requests, 2 errors, 31 min\n')
})

test('JSON is one object a line with type and time first', () => {
  const out = new Paper()
  const output = new JsonOutput(out, () => new Date(0))
  output.event(response({ path: '/\n' }))
  output.event({ type: 'reconnecting', attempt: 1, delayMs: 0 })
  expect(out.text.split('\n')).toEqual([
    '{"type":"response","time":"1970-01-01T00:00:00.000Z","id":1,"method":"GET","path":"/\\n","status":200,"durationMs":18,"bytes":4100}',
    '{"type":"reconnecting","time":"1970-01-01T00:00:00.000Z","attempt":1,"delayMs":0}',
    '',
  ])
})

test('colours follow NO_COLOR, then FORCE_COLOR, then the terminal', () => {
  const isColoured = (isTerminal: boolean, environment: Record<string, string>) =>
    paletteFor(isTerminal, environment).red('x') !== 'x'
  expect(isColoured(true, {})).toBe(true)
  expect(isColoured(true, { NO_COLOR: '1' })).toBe(false)
  expect(isColoured(true, { NO_COLOR: '' })).toBe(true)
  expect(isColoured(true, { TERM: 'dumb' })).toBe(false)
  expect(isColoured(false, {})).toBe(false)
  expect(isColoured(false, { FORCE_COLOR: '1' })).toBe(true)
  expect(isColoured(true, { FORCE_COLOR: '1', NO_COLOR: '1' })).toBe(false)
})

test('JSON of foreign text has nothing that a terminal would act on', () => {
  const out = new Paper()
  const output = new JsonOutput(out, () => new Date(0))
  output.event({ type: 'error', code: 'INTERNAL', message: '\u009b2J\u202e\u2028' })
  expect(out.text.trimEnd()).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
  expect(JSON.parse(out.text).message).toBe('\u009b2J\u202e\u2028')
})

test('on a terminal what happened has a time, and an outage has an end', () => {
  const { paper, output } = terminal()
  output.event({ type: 'connecting', server: 'tunnel.example' })
  output.event({ type: 'error', code: 'SERVER_UNREACHABLE', message: 'Nobody there.' })
  output.event({ type: 'reconnecting', attempt: 2, delayMs: 1 })
  output.event(CONNECTED)
  output.event(READY)
  expect(paper.screen).toContain('  12:01:07  SERVER_UNREACHABLE: Nobody there.')
  expect(paper.screen).toContain('  12:01:07  connected after 0 ms')
  output.event({ type: 'disconnected', code: 'CARRIER_LOST', message: 'gone' })
  output.event({ type: 'reconnecting', attempt: 1, delayMs: 0 })
  output.event({ type: 'notice', code: 'X', message: 'Something is so.' })
  output.event(CONNECTED)
  expect(paper.screen).toContain('  12:01:07  Something is so.')
  expect(paper.screen).toContain('  12:01:07  connected again after 0 ms')
  output.close()
})

test('a Ctrl+C that the terminal echoed is not left in front of the prompt', () => {
  const { paper, output } = terminal()
  output.event(READY)
  output.event({ type: 'draining', requests: 1 })
  paper.write('^C')
  output.close()
  expect(paper.screen.at(-1)).toBe('')
})

test('a file of which a service was refused says how many there are', () => {
  const { paper, output } = terminal()
  output.event({ type: 'configured', file: 'localtunnels.toml', services: 2, refused: 1 })
  expect(paper.screen).toContain('  localtunnels.toml: 2 of 3 services')
  output.close()
})

/** The lines of a real terminal's screen. */
async function shownOn(
  columns: number,
  tell: (output: Output, setTime: (ms: number) => void) => void,
): Promise<string[]> {
  const screen = new Terminal({ cols: columns, rows: 24, allowProposedApi: true, convertEol: true })
  let ms = now().getTime()
  const output = new TerminalOutput({ columns, write: text => screen.write(text) }, plain, () => new Date(ms))
  tell(output, time => {
    ms = time
  })
  await new Promise<void>(resolve => screen.write('', resolve))
  const lines = Array.from({ length: screen.buffer.active.length }, (_, row) =>
    (screen.buffer.active.getLine(row)?.translateToString(true) ?? '').trimEnd(),
  )
  output.close()
  return lines.slice(0, lines.findLastIndex(line => line !== '') + 1)
}

const KEYS = [
  ['o', 'open'],
  ['c', 'copy'],
  ['q', 'QR'],
  ['i', 'inspect'],
  ['r', 'replay'],
  ['h', 'help'],
] as const
const PAGE = `http://127.0.0.1:4040/#${'k'.repeat(43)}`

test('the keys stay below the status, and what happens comes above both', async () => {
  const tell = (output: Output) => {
    output.offer?.(KEYS)
    output.event(CONNECTED)
    output.event({ ...READY, inspector: PAGE })
    for (let id = 1; id <= 10; id++)
      output.event(response({ id, durationMs: id * 10, path: `/${'long/'.repeat(20)}` }))
    output.event(response({ id: 11, status: 500, path: '/hooks' }))
  }
  const wide = await shownOn(80, tell)
  expect(wide.slice(0, 8)).toEqual([
    '',
    `  localtunnels ${VERSION}`,
    '',
    '  Public    https://calm-otter.tunnel.example',
    '  App       http://localhost:3000',
    `  Inspect   ${PAGE}`,
    '  Server    tunnel.example',
    '',
  ])
  expect(wide.slice(-4)).toEqual([
    '  12:01:07  200  GET    /long/long/long/long/long/long/long/l…   100 ms   4.1 kB',
    '  12:01:07  500  GET    /hooks                                    18 ms   4.1 kB',
    '  ● live  11 requests  1 error                                       p95 100 ms',
    '  o open  c copy  q QR  i inspect  r replay  h help  Ctrl+C quit',
  ])
  expect(wide).toHaveLength(21)
  const narrow = await shownOn(60, tell)
  // In two lines it would be no link.
  expect(narrow).toContain('  Inspect   http://127.0.0.1:4040, i opens it')
  expect(narrow.slice(-2)).toEqual([
    '  ● live  11 requests  1 error                   p95 100 ms',
    '  o open  c copy  q QR  i inspect  r replay  h help',
  ])
  expect(narrow).toHaveLength(21)
})

test('services fit 80 and 60 columns, and a URL stays whole', async () => {
  const services = [
    ['shop', 'https://shop.tunnel.example', 'http://localhost:3000'],
    ['chat-preview-22', 'https://chat-preview-22.tunnel.example', 'http://localhost:5000'],
    ['db', 'tcp://tunnel.example:15432', 'localhost:5432'],
  ] as const
  const tell = (output: Output) => {
    for (const [service, url, origin] of services)
      output.event({ type: 'service', service, kind: 'http', url, origin })
    output.event({ type: 'configured', file: 'lt.toml', services: 3, inspector: PAGE })
    output.event(response({ service: 'chat-preview-22', path: '/rooms' }))
  }
  expect((await shownOn(80, tell)).slice(3, 10)).toEqual([
    '  ● shop             https://shop.tunnel.example             → :3000',
    '  ● chat-preview-22  https://chat-preview-22.tunnel.example  → :5000',
    '  ● db               tcp://tunnel.example:15432              → localhost:5432',
    '',
    '  lt.toml: 3 services',
    `  Inspect   ${PAGE}`,
    '',
  ])
  const narrow = await shownOn(60, tell)
  expect(narrow.slice(3, 6)).toEqual([
    '  ● shop  → http://localhost:3000',
    '    https://shop.tunnel.example',
    '  ● chat-preview-22  → http://localhost:5000',
  ])
  expect(narrow.at(-2)).toBe('  12:01:07  chat-preview-22  200  GET    /rooms        18 ms')
})

test('each service has its state: in its line from the beginning, and in the status line', async () => {
  const tell = (output: Output) => {
    for (const service of ['shop', 'db', 'api']) {
      const url = `https://${service}.tunnel.example`
      output.event({ type: 'service', service, kind: 'http', url, origin: ':3000' })
      if (service !== 'shop') output.event({ type: 'origin', service, origin: ':3000', isUp: false })
    }
    output.event({ type: 'configured', file: 'lt.toml', services: 3 })
  }
  const screen = await shownOn(80, tell)
  expect(screen.slice(3, 6)).toEqual([
    '  ● shop  https://shop.tunnel.example  → :3000',
    '  ○ db    https://db.tunnel.example    → :3000  app down',
    '  ○ api   https://api.tunnel.example   → :3000  app down',
  ])
  expect(screen).toContain('  ○ 1 of 3 live  db, api down')
})

test('the head has the round trip, and the status line says for a while that the URL was copied', async () => {
  const begin = now().getTime()
  const tell = (output: Output) => {
    output.event({ ...READY, server: 'https://tunnel.example', roundTripMs: 14.2 })
    output.event({ type: 'notice', code: 'COPIED', message: 'copied to the clipboard' })
  }
  const screen = await shownOn(80, tell)
  expect(screen).toContain('  Server    tunnel.example, 14 ms away')
  expect(screen.join('\n')).toMatch(/● live {2,}copied to the clipboard/)
  const later = await shownOn(80, (output, setTime) => {
    tell(output)
    setTime(begin + 5_000)
    output.event(response())
  })
  expect(later.join('\n')).not.toContain('copied')
})

test('that the app went and came back are lines, and the status says for how long it is away', async () => {
  const begin = now().getTime()
  const away: CliEvent = { type: 'origin', origin: ':3000', isUp: false }
  const tell = (output: Output, setTime: (ms: number) => void) => {
    output.event(READY)
    output.event(away)
    setTime(begin + 12_000)
    output.event(response())
  }
  expect((await shownOn(80, tell)).slice(-3)).toEqual([
    '  12:01:07  nothing listens on :3000',
    expect.stringContaining('  12:01:19  200  GET    /'),
    '  ○ nothing on :3000 yet, 12 s',
  ])
  const back = await shownOn(80, (output, setTime) => {
    tell(output, setTime)
    output.event({ ...away, isUp: true })
  })
  expect(back.slice(-2)).toEqual(['  12:01:19  the app on :3000 is back after 12 s', '  ● live  1 request'])
})
