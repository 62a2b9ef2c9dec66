// The load generator counts what is correct, and nothing else.

import { afterAll, expect } from 'bun:test'
import { once } from 'node:events'
import { createServer, type Server, type ServerResponse } from 'node:http'
import { type AddressInfo, createServer as createTcpServer } from 'node:net'
import { type Busy, type Exchange, keepBusy, type Load, run } from '../../benchmarks/load/load.ts'
import { endpoint } from '../../benchmarks/peers/peer.ts'
import { testWith } from '../support/needs.ts'

const RIGHT = Buffer.from('twenty bytes, no more')
let [requests, empty, warm, stuck] = [0, 0, 0, 0]
const answers: Readonly<Record<string, (response: ServerResponse) => void>> = {
  '/right': response => response.end(RIGHT),
  '/chunked': response => {
    response.write(RIGHT.subarray(0, 5))
    response.end(RIGHT.subarray(5))
  },
  '/wrong': response => response.end('twenty bytes, no More'),
  '/longer': response => response.end(`${RIGHT.toString()}!`),
  '/shorter': response => response.end(RIGHT.subarray(0, -1)),
  '/refused': response => response.writeHead(502).end(RIGHT),
  '/cut': response => {
    response.writeHead(200, { 'content-length': RIGHT.length })
    response.write(RIGHT.subarray(0, 3), () => response.destroy())
  },
  '/empty': response => (empty++ === 100 ? response.writeHead(204).end() : response.end(RIGHT)),
  '/cold': response => response.end(warm++ === 0 ? RIGHT.toString().toUpperCase() : RIGHT),
  '/stuck': response => (stuck++ === 0 ? response.end(RIGHT) : undefined),
  '/rarely': response => (requests++ % 200 === 199 ? response.writeHead(502).end() : response.end(RIGHT)),
}
const app = createServer((request, response) => answers[request.url!]!(response))
await new Promise<void>(resolve => app.listen(0, '127.0.0.1', resolve))
afterAll(() => app.close())
// A listening TCP server's address is an object.
const endpoints = { app: endpoint((app.address() as AddressInfo).port) }

function load(path: string, more: Partial<Load> = {}): Promise<unknown> {
  const exchange: Exchange = { to: 'app', path, answer: RIGHT }
  return run(endpoints, { exchanges: [exchange], connections: 4, seconds: 0.2, ...more })
}

testWith(['cc'], 'right answers count, whole and in chunks', async () => {
  for (const path of ['/right', '/chunked']) {
    expect(await load(path)).toMatchObject({ failed: 0, wrong: 0 })
  }
})

testWith(['cc'], 'a new connection for every request is open as long as its request', async () => {
  expect(await load('/right', { reconnect: true })).toMatchObject({ failed: 0, wrong: 0 })
})

for (const [path, why] of [
  ['/wrong', 'wrong bytes in the answer'],
  ['/longer', 'longer than it must be'],
  ['/shorter', 'shorter than it must be'],
  ['/refused', 'wrong status (502)'],
  ['/cut', 'ended before the answer did'],
] as const) {
  testWith(['cc'], `an answer that is not right is no answer: ${path}`, async () => {
    expect(load(path)).rejects.toThrow(why)
  })
}

testWith(['cc'], 'more than 0.1 % of failures leave no rate', async () => {
  expect(load('/rarely', { seconds: 0.5 })).rejects.toThrow('answers failed: wrong status (502)')
})

testWith(['cc'], 'one answer of thousands with another status of success is wrong', async () => {
  expect(load('/empty', { connections: 1, seconds: 0.5 })).rejects.toThrow('wrong status (204)')
})

testWith(['cc'], 'wrong bytes before the clock starts are wrong', async () => {
  expect(load('/cold', { connections: 1, warm: 1 })).rejects.toThrow('wrong bytes in the answer')
})

/** Answers so many requests, and then does what it is told to. */
async function until(count: number, then: (app: Server, response: ServerResponse) => void): Promise<number> {
  let asked = 0
  const app = createServer((_, response) => (asked++ < count ? response.end(RIGHT) : then(app, response)))
  await new Promise<void>(resolve => app.listen(0, '127.0.0.1', resolve))
  afterAll(() => app.close())
  return (app.address() as AddressInfo).port
}
/** One failure is less than 0.1 % of them. */
const MANY = 1_100

testWith(['cc'], 'the rate of an app that stops answering counts the time without answers', async () => {
  const app = endpoint(await until(MANY, () => {}))
  const exchanges = [{ to: 'app', path: '/', answer: RIGHT }]
  const stalled = { exchanges, connections: 1, seconds: 1.5, timeoutMs: 2_000, warm: 0 }
  const { ok, seconds } = await run({ app }, stalled)
  expect(ok).toBe(MANY)
  expect(seconds).toBeGreaterThanOrEqual(1.5)
})

testWith(['cc'], 'connections that are refused in the middle are failures', async () => {
  const port = await until(MANY, app => {
    app.close()
    app.closeAllConnections()
  })
  const exchanges = [{ to: 'app', path: '/', answer: RIGHT }]
  expect(run({ app: endpoint(port) }, { exchanges, connections: 1, seconds: 1.5 })).rejects.toThrow(
    'answers failed',
  )
})

testWith(['cc'], 'a load in the background says whether its answers were right', async () => {
  const busy = (path: string): Promise<Busy> =>
    keepBusy(endpoints, { exchanges: [{ to: 'app', path, answer: RIGHT }], connections: 1, seconds: 60 })
  // With one connection the second request comes when the first is answered.
  const answered = async (): Promise<void> => void [await once(app, 'request'), await once(app, 'request')]
  const right = await busy('/right')
  await answered()
  expect((await right.end()).ok).toBeGreaterThan(0)
  const wrong = await busy('/refused')
  await answered()
  expect(wrong.end()).rejects.toThrow('wrong status (502)')
  const stuck = await busy('/stuck')
  expect(stuck.end()).rejects.toThrow('nothing came')
})

testWith(['cc'], 'an app that cannot be reached leaves no rate', async () => {
  const gone = createTcpServer()
  await new Promise<void>(resolve => gone.listen(0, '127.0.0.1', resolve))
  const { port } = gone.address() as AddressInfo
  await new Promise(resolve => gone.close(resolve))
  const exchanges = [{ to: 'app', path: '/right', answer: RIGHT }]
  expect(run({ app: endpoint(port) }, { exchanges, connections: 2, seconds: 0.1 })).rejects.toThrow('refused')
})

testWith(['cc'], 'in an open loop a stall delays every request that was due in it', async () => {
  // One connection, 100 requests a second, and an app that stands still for the first 400 ms.
  let stalled = false
  const slow = createServer((_, response) => {
    if (stalled) return void response.end(RIGHT)
    stalled = true
    setTimeout(() => response.end(RIGHT), 400)
  })
  await new Promise<void>(resolve => slow.listen(0, '127.0.0.1', resolve))
  const exchanges = [{ to: 'app', path: '/', answer: RIGHT }]
  const load = { exchanges, connections: 1, seconds: 0.6, rate: 100, warm: 0 }
  const { ok, p50, max } = await run({ app: endpoint((slow.address() as AddressInfo).port) }, load)
  slow.close()
  expect(ok).toBe(60)
  expect(max).toBeGreaterThan(380)
  // Forty of sixty were due while it stood still, ten of the slow half less than 100 ms before its end. A generator that waits
  // with them would show one slow request and a median far below 1 ms.
  expect(p50).toBeGreaterThan(50)
})
