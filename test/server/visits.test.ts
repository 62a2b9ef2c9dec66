// Visits on a channel that is no HTTP/1.1 connection, as the streams of an HTTP/2 connection will be: several at once.

import { beforeEach, expect, test } from 'bun:test'
import { parseRequestHead, RequestHead } from '../../src/http/head.ts'
import { installEvents } from '../../src/parts/events/install.ts'
import { DeliveryVisit } from '../../src/parts/inbox/delivery-visit.ts'
import { ServerContext } from '../../src/server/context/server-context.ts'
import type { VisitChannel } from '../../src/server/contracts/channel.ts'
import type { Exchange, TunnelUpstream, Visit } from '../../src/server/contracts/upstream.ts'
import { HttpVisit } from '../../src/server/fronts/http-visit.ts'
import { Quotas } from '../../src/server/limits/quotas.ts'
import { VisitorHop } from '../../src/server/limits/visitor-hop.ts'
import { Exchanges } from '../../src/server/routing/exchanges.ts'
import { Serving } from '../../src/server/routing/serving.ts'
import { StartupHold } from '../../src/server/routing/startup-hold.ts'
import { ANYTHING } from '../../src/server/settings/policy.ts'
import { serverSettings } from '../../src/server/settings/settings.ts'
import type { Member } from '../../src/server/tunnels/member.ts'
import { DEFAULT_BOUNDS } from '../support/bounded-server.ts'

const LIMITS = { ...DEFAULT_BOUNDS, maxHeadBytes: 4_096 }

/** Keeps every exchange that it is given. */
class KeptUpstream implements TunnelUpstream {
  readonly wire = 'streams'
  readonly kept: { readonly visit: Visit; readonly seen: string[] }[] = []

  get inFlight(): number {
    return this.kept.length
  }

  begin(visit: Visit): Exchange {
    const seen = [visit.head.target]
    this.kept.push({ visit, seen })
    return {
      body: bytes => seen.push(Buffer.from(bytes).toString('latin1')),
      bodyEnded: () => seen.push('end'),
      drained: () => seen.push('drained'),
      abandoned: () => seen.push('abandoned'),
    }
  }

  open(): 'KIND_REFUSED' {
    return 'KIND_REFUSED'
  }
}

/** One stream of a connection: it has a window, and takes no answer beyond it. */
class StreamChannel implements VisitChannel {
  readonly visitor: VisitorHop
  readonly input = {
    pause: () => this.events.push('pause'),
    resume: () => {},
    proceed: (first: () => void) => first(),
  }
  readonly output = {
    write: (bytes: Uint8Array, start: number, end: number) => {
      this.text += Buffer.from(bytes.subarray(start, end)).toString('latin1')
      return this.text.length < this.window
    },
    end: () => {},
  }
  readonly keepsAlive = true
  readonly events: string[] = []
  text = ''
  readonly request: { isComplete: boolean; requestBytes: number }
  readonly visit: HttpVisit
  readonly window: number

  constructor(rig: Rig, request: string, isComplete = true, window = Number.POSITIVE_INFINITY) {
    this.window = window
    this.request = { isComplete, requestBytes: request.length }
    this.visitor = new VisitorHop(
      { proto: 'https', isTrusted: () => false, hstsLine: () => undefined },
      '192.0.2.1',
    )
    const head = new RequestHead()
    const bytes = Buffer.from(request, 'latin1')
    expect(parseRequestHead(head, bytes, 0, bytes.length, LIMITS)).toBe(bytes.length)
    this.visit = new HttpVisit(head, this, rig.serving)
    this.visit.begin()
  }

  isRefused(): boolean {
    return false
  }

  charge(): void {
    this.events.push('charge')
  }

  switched(): void {
    this.events.push('switched')
  }

  over(goesOn: boolean): void {
    this.events.push(`over ${goesOn}`)
  }

  terminate(): void {
    this.events.push('terminate')
  }
}

class Rig {
  readonly reports: string[] = []
  readonly context: ServerContext = new ServerContext(serverSettings({ domains: ['localhost'] }), {
    emit: (event, payload) => {
      const { path, status, error = '' } = payload as { path?: string; status?: number; error?: string }
      this.reports.push(`${event} ${path} ${status} ${error}`.trim())
    },
  })
  readonly upstream: KeptUpstream = new KeptUpstream()
  readonly serving: Serving
  readonly member: Member

  constructor() {
    const { context: room } = this
    room.state = 'running'
    // Nothing is asked of the control host.
    const control = {} as ConstructorParameters<typeof Serving>[3]
    room.isHeard = true
    room.parts.use([installEvents(room)])
    this.serving = new Serving(room, new Exchanges(room), new StartupHold(room), control)
    const holder = new Quotas(() => room.limits).of(ANYTHING, '192.0.2.9')
    const member = room.tunnels.claim('http', 'app', { holder })
    if (typeof member === 'string') throw new Error(member)
    this.member = member
  }

  /** The client is there. */
  attach(): void {
    this.member.upstream = this.upstream
    this.member.tunnel.release(this.member)
  }
}

const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: app.localhost\r\n\r\n`
const OK = Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')

let rig: Rig
beforeEach(() => {
  rig = new Rig()
})

test('several run at once, each is answered, reported and counted by itself', () => {
  rig.attach()
  const [one, two] = [new StreamChannel(rig, get('/1')), new StreamChannel(rig, get('/2'))]
  expect(rig.context.counters.pending).toBe(2)
  for (const { visit } of rig.upstream.kept.toReversed()) {
    visit.answered(200)
    visit.write(OK)
    visit.done(true)
  }
  expect(rig.upstream.kept.map(({ seen }) => seen)).toEqual([
    ['/1', 'end'],
    ['/2', 'end'],
  ])
  expect([one.events, two.events]).toEqual([['over true'], ['over true']])
  expect(rig.reports).toEqual(['request /2 200', 'request /1 200'])
  const { pending, requests, bytesOut } = rig.context.counters
  expect([pending, requests, bytesOut]).toEqual([0, 2, 2 * OK.length])
})

test('a held one begins when the client is there; one that left meanwhile does not', () => {
  // It proves a secret, so its name outlives its connection.
  rig.member.secretFor(undefined)
  const [held, left] = [new StreamChannel(rig, get('/held')), new StreamChannel(rig, get('/left'))]
  expect(held.events).toEqual(['pause'])
  left.visit.abandon()
  rig.attach()
  expect(rig.upstream.kept.map(({ seen }) => seen)).toEqual([['/held', 'end']])
  expect(rig.reports).toEqual(['request /left 0 CANCELLED'])
})

test('the page of a refusal is the answer, and after the head of one the stream is cut', () => {
  rig.attach()
  const unknown = new StreamChannel(rig, 'GET / HTTP/1.1\r\nHost: other.localhost\r\n\r\n')
  expect(unknown.text).toStartWith('HTTP/1.1 404 ')
  expect(unknown.events).toEqual(['over true'])
  const broken = new StreamChannel(rig, get('/broken'))
  const [{ visit } = {}] = rig.upstream.kept
  visit?.answered(200)
  visit?.write(OK, 0, 20)
  visit?.fail('ORIGIN_CLOSED')
  expect(broken.events).toEqual(['terminate'])
  expect(rig.reports).toEqual(['request /broken 200 ORIGIN_CLOSED'])
})

test('a full window is told to the upstream, and what waits is charged', () => {
  rig.attach()
  const upload = 'POST /up HTTP/1.1\r\nHost: app.localhost\r\nContent-Length: 3\r\n\r\n'
  const full = new StreamChannel(rig, upload, false, 10)
  full.visit.body(Buffer.from('abc'))
  full.visit.bodyEnded()
  const [{ visit, seen } = {}] = rig.upstream.kept
  visit?.answered(200)
  expect(visit?.write(OK)).toBe(false)
  expect(full.events).toEqual(['charge'])
  full.visit.drained()
  full.visit.breakOff('BODY_TOO_LARGE')
  expect(seen).toEqual(['/up', 'abc', 'end', 'drained', 'abandoned'])
  expect(full.events).toEqual(['charge', 'terminate'])
})

test('a kept webhook whose name another owner has by now was not delivered: its client is away', async () => {
  rig.attach()
  const webhook = {
    id: 1,
    name: 'app',
    owner: 'owner',
    path: '/hook',
    address: '192.0.2.1',
    sender: '',
    head: 'POST /hook HTTP/1.1\r\nHost: app.localhost\r\n',
    body: Buffer.from('x'),
    attempts: 0,
    receivedMs: 0,
    key: 'key',
  }
  const delivered = await new DeliveryVisit(webhook, false).deliver(rig.serving)
  expect(delivered).toEqual({ status: 0, isAway: true })
  expect(rig.upstream.kept).toEqual([])
})
