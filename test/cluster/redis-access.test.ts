// How a Redis or Valkey may be guarded: TLS, users and their keys, Sentinel. Each is the real program.
// 7 s for Sentinel: it takes that long to give up the first Redis.

import { expect, test } from 'bun:test'
import { RedisDirectory, type RedisDirectoryOptions } from '../../src/directories/redis.ts'
import { ask } from '../support/ask.ts'
import { makeCertificate } from '../support/certificates.ts'
import { TestCluster } from '../support/clusters.ts'
import { codeOf } from '../support/events.ts'
import { describeWith } from '../support/needs.ts'
import { freePort } from '../support/ports.ts'
import { folder } from '../support/programs.ts'
import { Redis } from '../support/redis.ts'

/** A cluster whose servers have a connection of their own each. */
function clusterOf(options: RedisDirectoryOptions, open: RedisDirectory[]): TestCluster {
  return new TestCluster({}, async () => {
    const directory = await RedisDirectory.open(options)
    open.push(directory)
    return directory
  })
}

async function expectNamesShared(cluster: TestCluster): Promise<void> {
  const [a, b] = [await cluster.server(), await cluster.server()]
  await cluster.client({ server: a.url, subdomain: 'shop', fetch: () => new Response('hello') })
  expect(await ask(b.port, 'shop.localhost')).toMatchObject({ status: 200, body: 'hello' })
}

for (const program of ['redis-server', 'valkey-server'] as const)
  describeWith([program], program, () => {
    test('by TLS, as a user who may have the keys of a prefix alone', async () => {
      await using dir = await folder('redis-access')
      const { cert, key } = await makeCertificate(['localhost', '127.0.0.1'])
      await Bun.write(`${dir.path}/cert.pem`, cert)
      await Bun.write(`${dir.path}/key.pem`, key)
      const tlsPort = freePort()
      await using redis = await Redis.start(program, [
        ...['--tls-port', `${tlsPort}`, '--tls-auth-clients', 'no'],
        ...['--tls-cert-file', `${dir.path}/cert.pem`, '--tls-key-file', `${dir.path}/key.pem`],
        ...'--user tunnels on >p@ss/word ~lt-test:* &lt-test:* +@all -@admin -@dangerous +info'.split(' '),
      ])
      const own = { prefix: 'lt-test', ca: cert }
      const url = `rediss://tunnels:${encodeURIComponent('p@ss/word')}@localhost:${tlsPort}/0`
      const open: RedisDirectory[] = []
      {
        await using cluster = clusterOf({ url, ...own }, open)
        await expectNamesShared(cluster)
        expect(cluster.errors).toEqual([])
      }
      {
        await using cluster = clusterOf({ url: url.replace('word@', 'wrong@'), ...own }, open)
        expect(await codeOf(cluster.server())).toBe('CLUSTER_UNREACHABLE')
      }
      {
        // Without the authority the certificate is none.
        await using cluster = clusterOf({ url, prefix: 'lt-test' }, open)
        expect(await codeOf(cluster.server())).toBe('CLUSTER_UNREACHABLE')
      }
      {
        await using cluster = clusterOf({ url, ca: cert, prefix: 'another' }, open)
        expect(await codeOf(cluster.server())).toBe('CLUSTER_UNREACHABLE')
      }
      await Promise.all(open.map(directory => directory.close()))
      expect(redis.port).not.toBe(tlsPort)
    }, 60_000)

    test('by Sentinel: when the first one is killed, the servers go on with the second', async () => {
      await using dir = await folder('redis-sentinel')
      await using first = await Redis.start(program)
      await using second = await Redis.start(program, ['--replicaof', '127.0.0.1', `${first.port}`])
      const port = freePort()
      const lines = [
        `port ${port}`,
        'bind 127.0.0.1',
        `dir ${dir.path}`,
        `sentinel monitor tunnels 127.0.0.1 ${first.port} 1`,
        'sentinel down-after-milliseconds tunnels 300',
        'sentinel failover-timeout tunnels 2000',
      ]
      await Bun.write(`${dir.path}/sentinel.conf`, `${lines.join('\n')}\n`)
      const sentinel = Bun.spawn([program, `${dir.path}/sentinel.conf`, '--sentinel'], {
        stdout: 'ignore',
        stderr: 'ignore',
      })
      try {
        // It has to know the replica before it can choose it.
        await first.until('INFO replication', /state=online/)
        await Redis.untilAt(port, 'SENTINEL replicas tunnels', /127\.0\.0\.1/)
        const open: RedisDirectory[] = []
        await using cluster = clusterOf({ url: `sentinel://127.0.0.1:${port}/tunnels` }, open)
        await expectNamesShared(cluster)
        await first.kill()
        await second.until('INFO replication', /role:master/)
        const [, b] = cluster.servers
        // Names of before, and new ones.
        let granted = 'none'
        for (let tries = 0; granted !== 'resolved' && tries < 100; tries++) {
          granted = await codeOf(
            cluster.client({
              server: b!.url,
              subdomain: 'blog',
              exact: true,
              fetch: () => new Response('blog'),
            }),
          )
          if (granted !== 'resolved') await Bun.sleep(100)
        }
        expect(granted).toBe('resolved')
        const [a] = cluster.servers
        expect(await ask(a!.port, 'blog.localhost')).toMatchObject({ status: 200, body: 'blog' })
        expect(await ask(b!.port, 'shop.localhost')).toMatchObject({ status: 200, body: 'hello' })
        await Promise.all(open.map(directory => directory.close()))
      } finally {
        sentinel.kill('SIGKILL')
        await sentinel.exited
      }
    }, 60_000)
  })
