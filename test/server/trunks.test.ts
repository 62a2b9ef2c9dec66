// How often a server asks a client for a trunk: where somebody would begin a lane, and not for each who would.

import { afterEach, expect, mock, spyOn, test } from 'bun:test'
import { eventLoop } from '../../src/event-loop.ts'
import { ServerLanes } from '../../src/parts/lanes/install.ts'
import type { TunnelUpstream, Visit } from '../../src/server/contracts/upstream.ts'
import { Deadlines } from '../../src/server/limits/deadlines.ts'
import { Quotas } from '../../src/server/limits/quotas.ts'
import { TokenThrottle } from '../../src/server/limits/token-throttle.ts'
import { LinkRegistry } from '../../src/server/registration/links.ts'
import { StreamsConnection } from '../../src/server/registration/streams-connection.ts'
import type { StreamsHost } from '../../src/server/registration/streams-tunnels.ts'
import type { Bounds } from '../../src/server/settings/bounds.ts'
import { ANYTHING } from '../../src/server/settings/policy.ts'
import { serverSettings } from '../../src/server/settings/settings.ts'
import { Tunnels } from '../../src/server/tunnels/tunnels.ts'
import { Turns } from '../../src/session/turns.ts'
import type { Affinity } from '../../src/wire/control.ts'
import { DEFAULT_BOUNDS } from '../support/bounded-server.ts'
import { concat } from '../support/link.ts'
import { frameOf, naiveDecode } from '../support/naive.ts'

afterEach(() => mock.restore())

const clockAt = (ms: number) => spyOn(eventLoop, 'now').mockReturnValue(ms)

/** What was planned for the end of this turn of the event loop has happened. */
const turn = () => new Promise(resolve => setImmediate(resolve))

/** A client that holds the tunnel `app`, and hears what the server says. */
class Client {
  readonly #sent: Uint8Array[] = []
  readonly #connection: StreamsConnection
  readonly upstream: TunnelUpstream

  constructor(limits: Partial<Bounds> = {}, pool?: Affinity) {
    const allLimits = { ...DEFAULT_BOUNDS, ...limits }
    const deadlines = new Deadlines(() => {})
    const tunnels = new Tunnels(() => allLimits, deadlines)
    tunnels.lanes = new ServerLanes({ deadlines, parts: { harvest() {} } })
    const quotas = new Quotas(() => allLimits)
    const holder = quotas.of(ANYTHING, '192.0.2.7')
    const member = tunnels.claim('http', 'app', { holder, pool })
    if (typeof member === 'string') throw new Error(member)
    const host: StreamsHost = {
      server: {
        settings: serverSettings({ domains: ['localhost'] }),
        limits: allLimits,
        deadlines,
        turns: new Turns(eventLoop, () => {}),
        tunnels,
        quotas,
        servers: undefined,
        parts: { appsOf: undefined, before: upstream => upstream, connecting: undefined },
        isTrusted: () => false,
        failed(error) {
          throw error
        },
      },
      linkRegistry: new LinkRegistry(),
      tokenThrottle: new TokenThrottle({
        limits: () => allLimits,
        scheduler: eventLoop,
        ruleOf: () => ANYTHING,
        failed() {},
      }),
      refused() {},
      refusalOf: () => undefined,
      hasRoomForLink: () => true,
      claim: () => member,
      refusalText: () => '',
      urlOf: () => 'http://app.localhost',
      registered() {},
      released() {},
      gone() {},
    }
    const carrier = {
      headroom: 0,
      send: (batch: Uint8Array, start: number, end: number) => this.#sent.push(batch.slice(start, end)) > 0,
      close() {},
      terminate() {},
    }
    this.#connection = new StreamsConnection(carrier, '192.0.2.7', host, ANYTHING)
    this.say('{"type":"register","ref":1,"kind":"http","name":"app"}')
    if (member.upstream === undefined) throw new Error('the tunnel is not held')
    this.upstream = member.upstream
  }

  say(message: string): void {
    const control = frameOf('CONTROL', 0, message)
    this.#connection.carrierHandler.received(control, 0, control.length)
  }

  /** So many requests for a trunk it has heard. */
  async wishes(): Promise<number> {
    await turn()
    return naiveDecode(concat(this.#sent)).frames.filter(
      ({ type, payload }) =>
        type === 'CONTROL' && String.fromCharCode(...payload) === '{"type":"trunk-wanted"}',
    ).length
  }

  close(): void {
    this.#connection.close('CANCELLED')
  }
}

/** Nothing of it is asked before there is a trunk. */
const VISIT = {} as Visit

test('a client is asked for a trunk by who would begin a lane, every 100 ms at most', async () => {
  clockAt(5_000)
  const client = new Client()
  expect(await client.wishes()).toBe(0)
  for (let visitor = 0; visitor < 50; visitor++) expect(client.upstream.reserve?.(VISIT)).toBeUndefined()
  expect(await client.wishes()).toBe(1)
  clockAt(5_099)
  client.upstream.reserve?.(VISIT)
  expect(await client.wishes()).toBe(1)
  clockAt(5_100)
  client.upstream.reserve?.(VISIT)
  client.upstream.reserve?.(VISIT)
  expect(await client.wishes()).toBe(2)
  client.close()
})

test('a client that brings none is asked ever more rarely, up to once a minute', async () => {
  let now = 5_000
  clockAt(now)
  const client = new Client()
  client.upstream.reserve?.(VISIT)
  let count = 1
  for (const pauseMs of [100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 51_200, 60_000, 60_000]) {
    clockAt(now + pauseMs - 1)
    client.upstream.reserve?.(VISIT)
    expect([pauseMs, await client.wishes()]).toEqual([pauseMs, count])
    now += pauseMs
    clockAt(now)
    client.upstream.reserve?.(VISIT)
    expect([pauseMs, await client.wishes()]).toEqual([pauseMs, ++count])
  }
  client.close()
})

test('no client is asked for one by a server that takes no links', async () => {
  const client = new Client({ maxLinks: 0 })
  client.upstream.reserve?.(VISIT)
  expect(await client.wishes()).toBe(0)
  client.close()
})

test('no client of a pool is: each request there goes where it is its turn', async () => {
  const client = new Client({}, 'none')
  expect(client.upstream.reserve?.(VISIT)).toBeUndefined()
  expect(await client.wishes()).toBe(0)
  client.close()
})

test('a client that says that it opens none is asked when it allows that, or never again', async () => {
  clockAt(5_000)
  const client = new Client()
  client.upstream.reserve?.(VISIT)
  client.say('{"type":"no-trunk","retryMs":70000}')
  clockAt(74_999)
  client.upstream.reserve?.(VISIT)
  expect(await client.wishes()).toBe(1)
  clockAt(75_000)
  client.upstream.reserve?.(VISIT)
  expect(await client.wishes()).toBe(2)
  client.say('{"type":"no-trunk"}')
  clockAt(86_400_000)
  client.upstream.reserve?.(VISIT)
  expect(await client.wishes()).toBe(2)
  client.close()
})
