// A server that is frozen by a real SIGSTOP: its kernel goes on answering for it, so that only its missing signs of life tell.

import { expect, test } from 'bun:test'
import { request } from 'node:http'
import { RedisDirectory } from '../../src/directories/redis.ts'
import { TestCluster } from '../support/clusters.ts'
import { testWith } from '../support/needs.ts'
import { freePort } from '../support/ports.ts'
import { RawOrigin, rawDial } from '../support/raw.ts'
import { Redis } from '../support/redis.ts'
import { ServerInCluster } from '../support/server-in-cluster.ts'
import { within } from '../support/within.ts'

const TIMES = { nodeMs: 300, leaseMs: 900, earlyMs: 0 }

/** What a visitor of a name at this server gets, piece by piece. */
class Visit {
  status = 0
  text = ''
  /** `complete`, or the code of what cut it. */
  readonly outcome: Promise<string>
  readonly #began = Promise.withResolvers<void>()
  #heard = Promise.withResolvers<void>()

  constructor(port: number) {
    const { promise, resolve } = Promise.withResolvers<string>()
    this.outcome = promise
    const failed = (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message)
    request({ port, host: '127.0.0.1', headers: { host: 'shop.localhost' }, agent: false })
      .on('error', failed)
      .on('response', answer => {
        this.status = answer.statusCode ?? 0
        this.#began.resolve()
        answer.on('data', piece => {
          this.text += piece
          this.#heard.resolve()
        })
        answer.on('error', failed)
        answer.on('end', () => resolve('complete'))
      })
      .end()
  }

  async until(text: string): Promise<void> {
    await within(this.#began.promise, 'the answer to begin')
    while (!this.text.includes(text)) {
      this.#heard = Promise.withResolvers<void>()
      await within(this.#heard.promise, JSON.stringify(text))
    }
  }
}

interface Site extends AsyncDisposable {
  readonly redis: Redis
  /** The server whose client has the app. */
  readonly far: ServerInCluster
  /** Of the server in this process, where visitors come. */
  readonly port: number
  readonly cluster: TestCluster
}

async function site(far = {}, near = {}): Promise<Site> {
  const stack = new AsyncDisposableStack()
  const redis = stack.use(await Redis.start('redis-server'))
  const directory = await RedisDirectory.open({ url: redis.url })
  stack.defer(() => directory.close())
  const cluster = stack.use(new TestCluster(TIMES, () => Promise.resolve(directory)))
  const server = stack.use(await ServerInCluster.start({ redis: redis.url, times: TIMES, options: far }))
  const { port } = await cluster.server(near)
  return { redis, far: server, port, cluster, [Symbol.asyncDispose]: () => stack.disposeAsync() }
}

/** An app whose answers the test gives. */
function app(): {
  readonly fetch: () => Response
  readonly send: (text: string) => void
  readonly end: () => void
  readonly asked: Promise<void>
} {
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined
  const { promise: asked, resolve } = Promise.withResolvers<void>()
  return {
    asked,
    fetch: () => {
      resolve()
      return new Response(
        new ReadableStream({
          start(one) {
            controller = one
          },
        }),
      )
    },
    end: () => controller?.close(),
    send: text => controller?.enqueue(Buffer.from(text)),
  }
}

/** An answer through the other server, of which the visitor has read `said`; `send` goes on with it. */
async function begun(at: Awaited<ReturnType<typeof site>>, said: string) {
  const { fetch, send } = app()
  await at.cluster.client({ server: at.far.url, subdomain: 'shop', fetch })
  const visit = new Visit(at.port)
  await visit.until('')
  send(said)
  await visit.until(said)
  return { visit, send }
}

for (const isDirectoryThere of [true, false])
  testWith(
    ['redis-server'],
    `what is under way to a frozen server is cut, ${isDirectoryThere ? 'and looks cut' : 'also while Redis is away'}`,
    async () => {
      await using at = await site()
      const { visit } = await begun(at, 'half')
      if (!isDirectoryThere) await at.redis.kill()
      await at.far.freeze()
      expect(await within(visit.outcome, 'the end of the answer')).toBe('ECONNRESET')
    },
    60_000,
  )

testWith(
  ['redis-server'],
  'a frozen server has not begun to answer: the visitor gets 502',
  async () => {
    await using at = await site()
    const { promise: asked, resolve } = Promise.withResolvers<void>()
    const fetch = () => {
      resolve()
      return new Promise<Response>(() => {})
    }
    await at.cluster.client({ server: at.far.url, subdomain: 'shop', fetch })
    const visit = new Visit(at.port)
    await asked
    await at.far.freeze()
    expect(await within(visit.outcome, 'an answer')).toBe('complete')
    expect(visit.status).toBe(502)
  },
  60_000,
)

testWith(
  ['redis-server'],
  'a raw visitor of a frozen server is cut',
  async () => {
    using origin = new RawOrigin()
    const port = freePort()
    await using at = await site({ tcpPorts: `${port}` }, { host: '127.0.0.2', tcpPorts: `${port}` })
    const client = await at.cluster.client({
      server: at.far.url,
      subdomain: 'shop',
      fetch: () => new Response(),
    })
    await client.tcp({ port: origin.port, host: '127.0.0.1', remotePort: port })
    let visitor = await rawDial(port, '127.0.0.2').catch(() => undefined)
    while (visitor === undefined) visitor = await rawDial(port, '127.0.0.2').catch(() => undefined)
    await (await origin.accept()).send('half')
    await visitor.until('half')
    await at.far.freeze()
    expect(await visitor.closed()).toBeInstanceOf(Error)
    expect(visitor.hasEnded).toBeFalse()
  },
  60_000,
)

for (const isDirectoryThere of [true, false])
  testWith(
    ['redis-server'],
    `an app that is silent for long cuts nothing, ${isDirectoryThere ? 'as long as its server lives' : 'also while Redis is away'}`,
    async () => {
      await using at = await site()
      const { visit, send } = await begun(at, 'data: 1\n\n')
      if (!isDirectoryThere) await at.redis.kill()
      await Bun.sleep(4 * TIMES.leaseMs)
      send('data: 2\n\n')
      await visit.until('data: 2\n\n')
    },
    60_000,
  )

test('a server that stops finishes what is under way by other servers, also when it takes longer than its lease', async () => {
  await using cluster = new TestCluster(TIMES)
  const far = await cluster.server()
  const near = await cluster.server()
  const { fetch, send, end } = app()
  await cluster.client({ server: far.url, subdomain: 'shop', fetch })
  const visit = new Visit(near.port)
  await visit.until('')
  send('half')
  await visit.until('half')
  const stopped = far.stop()
  await Bun.sleep(4 * TIMES.leaseMs)
  send('whole')
  end()
  expect(await within(visit.outcome, 'the end of the answer')).toBe('complete')
  expect(visit.text).toBe('halfwhole')
  await stopped
}, 60_000)
