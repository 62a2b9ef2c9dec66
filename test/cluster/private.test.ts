// Private services in a cluster: each end may be at any server.

import { describe, expect, test } from 'bun:test'
import { connectTo } from '../../src/index.ts'
import type { TunnelServer } from '../../src/tunnel-server.ts'
import { TestCluster } from '../support/clusters.ts'
import { DatagramVisitor, datagramApp } from '../support/datagrams.ts'
import { type Directories, memoryDirectories, redisDirectories } from '../support/directories.ts'
import { codeOf, next } from '../support/events.ts'
import { describeWith } from '../support/needs.ts'
import { RawOrigin, rawDial } from '../support/raw.ts'
import { control, SpeakingClient } from '../support/speaker.ts'

const TOKENS = ['share', { token: 'connect', connect: ['db', 'dns'] }]
const urlOf = (server: TunnelServer | undefined): string => `http://127.0.0.1:${server?.port}`

async function serversOf(cluster: TestCluster, count: number): Promise<readonly TunnelServer[]> {
  const servers: TunnelServer[] = []
  for (let at = 0; at < count; at++)
    servers.push(await cluster.server({ tokens: TOKENS, limits: { holdTimeoutMs: 1_000 } }))
  return servers
}

const sharing = (cluster: TestCluster, server: string | readonly string[]) =>
  cluster.client({ server, token: 'share', subdomain: 'app', fetch: () => new Response('public') })

const NO_NAMES = [
  ...[
    'app',
    'tcp-20000',
    'tcp:app',
    'tls:db',
    'TCP:db',
    'tcp:DB',
    'tcp:db.',
    'tcp:db ',
    ' tcp:db',
    'tcp:db/',
    'tcp:',
    ':db',
    'db',
  ],
  ...[
    'private:tcp:db',
    'tcp:tcp:db',
    'tcp:*',
    '*',
    '',
    'tcp:db\n',
    'tcp:db\0',
    'tcp:ｄｂ',
    'tcp:d\u0131b',
    '127.0.0.1:22',
    '__proto__',
    'tcp:__proto__',
  ],
]

function suite(directories: () => Promise<Directories>): void {
  test('a service at one server is reached from another: bytes, ends, resets', async () => {
    using origin = new RawOrigin()
    await using kept = await directories()
    await using cluster = new TestCluster({}, kept.open)
    const [first, second] = await serversOf(cluster, 2)
    const client = await sharing(cluster, urlOf(first))
    await client.tcp({ port: origin.port, host: '127.0.0.1', private: 'db' })
    for (const server of [first, second]) {
      await using db = await connectTo({ name: 'db', server: urlOf(server), token: 'connect' })
      const port = Number(new URL(db.url).port)
      const visitor = await rawDial(port)
      const app = await origin.accept()
      await visitor.send('hello')
      await app.until('hello')
      const big = 'x'.repeat(2_000_000)
      void app.send(big).then(() => app.socket.end())
      await visitor.when(() => visitor.hasEnded && visitor.bytes.length === big.length, 'all, and its end')
      await visitor.send('and an answer')
      await app.until('and an answer')
      visitor.socket.end()
      expect(await app.closed()).toBeUndefined()
      const other = await rawDial(port)
      const reset = await origin.accept()
      await other.send('x')
      await reset.until('x')
      reset.socket.terminate()
      expect(await other.closed()).toBeInstanceOf(Error)
    }
    // Nothing else of the cluster has such a name.
    for (const name of ['app', 'udp:db', 'nothing'])
      expect(await codeOf(connectTo({ name, server: urlOf(second), token: 'share' }))).toBe(
        'TUNNEL_NOT_FOUND',
      )
    // Nor do names that only a client of another make sends.
    for (const name of NO_NAMES) {
      const stranger = await SpeakingClient.connect(second?.port ?? 0, { authorization: 'Bearer share' })
      stranger.say(control({ type: 'register', ref: 1, kind: 'connect', name }))
      const answer = await stranger.verdicts(1).catch(String)
      expect([name, JSON.stringify(answer)]).toEqual([name, expect.not.stringContaining('granted')])
      stranger.close()
    }
    expect(cluster.errors).toEqual([])
  })

  test('datagrams pass from server to server', async () => {
    await using app = await datagramApp()
    await using kept = await directories()
    await using cluster = new TestCluster({}, kept.open)
    const [first, second] = await serversOf(cluster, 2)
    const client = await sharing(cluster, urlOf(first))
    await client.udp({ port: app.port, private: 'dns' })
    await using dns = await connectTo({ name: 'udp:dns', server: urlOf(second), token: 'connect' })
    await using visitor = await DatagramVisitor.to(Number(new URL(dns.url).port))
    await visitor.send('question')
    expect((await visitor.received(1)).map(String)).toEqual(['question'])
  })

  test('both ends go to another server when theirs stops', async () => {
    using origin = new RawOrigin()
    await using kept = await directories()
    await using cluster = new TestCluster({}, kept.open)
    const [first, second] = await serversOf(cluster, 2)
    const both = [urlOf(first), urlOf(second)]
    const client = await sharing(cluster, both)
    await client.tcp({ port: origin.port, host: '127.0.0.1', private: 'db' })
    await using db = await connectTo({ name: 'db', server: both, token: 'connect', maxBackoffMs: 50 })
    const moved = next(db.client, 'connected')
    await first?.stop()
    await moved
    const visitor = await rawDial(Number(new URL(db.url).port))
    const app = await origin.accept()
    await visitor.send('hello')
    await app.until('hello')
  }, 60_000)

  test('a name is held once in the whole cluster', async () => {
    await using kept = await directories()
    await using cluster = new TestCluster({}, kept.open)
    const [first, second] = await serversOf(cluster, 2)
    const client = await sharing(cluster, urlOf(first))
    await client.tcp({ port: 1, private: 'db' })
    const other = await cluster.client({
      server: urlOf(second),
      token: 'share',
      subdomain: 'other',
      fetch: () => new Response(),
    })
    expect(await codeOf(other.tcp({ port: 1, private: 'db' }))).toBe('NAME_TAKEN')
  })
}

describe('in memory', () => suite(memoryDirectories))
for (const program of ['redis-server', 'valkey-server'] as const)
  describeWith([program], `with ${program}`, () => suite(() => redisDirectories(program)))
