// Redis is away when a server or its client starts: both wait, say once for what, and go on when it is there.

import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { makeCertificate } from '../support/certificates.ts'
import { ConfigFiles } from '../support/config-files.ts'
import { describeWith } from '../support/needs.ts'
import { freePort } from '../support/ports.ts'
import { folder } from '../support/programs.ts'
import { Redis } from '../support/redis.ts'
import { start } from './bin.ts'

/** Words of the package that speaks to Redis. */
const PACKAGE = /max retries|maxRetriesPerRequest|ioredis|Command timed out/i

function serve(url: string, ...more: readonly string[]) {
  const own = [
    'server',
    '--host',
    '127.0.0.1',
    '--port',
    '0',
    '--peer-url',
    'http://127.0.0.1:1',
    '--tcp-ports',
    '',
  ]
  return start([...own, '--cluster', url, ...more])
}

describeWith(['redis-server'], 'redis-server', () => {
  test('a server waits for a Redis that is not there yet, and ends by SIGTERM meanwhile', async () => {
    await using redis = await Redis.start('redis-server')
    await redis.kill()
    const url = redis.url.replace('//', '//:secret@')
    {
      await using server = serve(url)
      const said = await server.printed(/CLUSTER_UNREACHABLE: .*/)
      expect(said).toBe(
        `CLUSTER_UNREACHABLE: The Redis of the cluster, ${redis.url}, cannot be reached: nothing listens there (ECONNREFUSED). The server starts when it responds.`,
      )
      server.kill('SIGTERM')
      expect(await server.exited).toBe(0)
    }
    await using server = serve(redis.url)
    await server.printed(/CLUSTER_UNREACHABLE/)
    await redis.run()
    await server.printed(/listening/)
    const all = server.stdout + server.stderr
    expect(all.match(/CLUSTER_UNREACHABLE/g)).toHaveLength(1)
    expect(all).not.toMatch(PACKAGE)
    server.kill('SIGTERM')
    expect(await server.exited).toBe(0)
  }, 60_000)

  test('a server waits for one that is frozen, and a client for the server that meets it', async () => {
    await using redis = await Redis.start('redis-server')
    redis.freeze()
    await using server = serve(redis.url)
    expect(await server.printed(/CLUSTER_UNREACHABLE: .*/)).toContain('it did not answer in 2 s')
    redis.thaw()
    const address = await server.printed(/http:\/\/\S+:\d+/)
    await redis.kill()
    for (const wire of ['streams', 'json']) {
      await using client = start([
        '3000',
        '--server',
        `http://127.0.0.1:${new URL(address).port}`,
        '--wire',
        wire,
      ])
      await client.printed(
        /CLUSTER_UNREACHABLE: The server cannot reach the directory or the shared rates of its cluster/,
      )
      await redis.run()
      await client.printed(/^http:\/\/\S+/m)
      expect(client.stdout + client.stderr).not.toMatch(PACKAGE)
      client.kill('SIGTERM')
      expect(await client.exited).toBe(0)
      await redis.kill()
    }
    expect(server.stdout + server.stderr).not.toMatch(PACKAGE)
  }, 60_000)

  test('the reason is said again when it is another one: a Redis that starts with a certificate nobody trusts', async () => {
    const port = freePort()
    await using dir = await folder('redis-tls')
    const { cert, key } = await makeCertificate(['localhost'])
    const files = { cert: join(dir.path, 'cert.pem'), key: join(dir.path, 'key.pem') }
    await Promise.all([Bun.write(files.cert, cert), Bun.write(files.key, key)])
    await using server = serve(`rediss://127.0.0.1:${port}`)
    await server.printed(/CLUSTER_UNREACHABLE: .*nothing listens there/)
    const flags = ['--tls-port', `${port}`, '--tls-cert-file', files.cert, '--tls-key-file', files.key]
    await using redis = await Redis.start('redis-server', [...flags, '--tls-auth-clients', 'no'])
    await server.printed(/CLUSTER_UNREACHABLE: .*cannot be reached: [^:]*certificate/)
    await using plain = serve(redis.url.replace('redis:', 'rediss:'))
    expect(await plain.printed(/CLUSTER_UNREACHABLE: .*/)).toContain('it did not answer in 2 s')
  }, 60_000)

  test('a service of `up` that is refused meanwhile is asked for again; the others run on', async () => {
    await using redis = await Redis.start('redis-server')
    await using server = serve(redis.url)
    const port = new URL(await server.printed(/http:\/\/\S+:\d+/)).port
    await using files = await ConfigFiles.make()
    const write = (...names: readonly string[]) =>
      files.write(
        'localtunnels.toml',
        [`server = "http://127.0.0.1:${port}"`, ...names.map(name => `[services.${name}]\nport = 3000`)].join(
          '\n',
        ),
      )
    await using client = start(['up', '--config', await write('one')])
    await client.printed(/toml: 1 service\n/)
    await redis.kill()
    await write('one', 'two')
    await client.printed(
      /CLUSTER_UNREACHABLE: The server cannot reach the directory or the shared rates of its cluster/,
    )
    await client.printed(/toml: 1 of 2 services\n/)
    await redis.run()
    await client.printed(/toml: 2 services\n/)
    expect((client.stdout + client.stderr).match(/CLUSTER_UNREACHABLE/g)).toHaveLength(1)
    client.kill('SIGTERM')
    expect(await client.exited).toBe(0)
  }, 60_000)

  test('a login that Redis refuses is an end, with an exit code of its own', async () => {
    await using redis = await Redis.start(
      'redis-server',
      '--user default on nopass ~* &* -@all +ping'.split(' '),
    )
    const server = serve(redis.url)
    expect(await server.exited).toBe(3)
    expect(server.stderr).toMatch(
      /error CLUSTER_UNREACHABLE: The Redis of the cluster, redis:\S+, says: NOPERM .+\. Correct the login in the URL of --cluster: it is missing or wrong/,
    )
    const wrong = serve(redis.url.replace('//', '//anna:wrong@'))
    expect(await wrong.exited).toBe(3)
    expect(wrong.stderr).toMatch(/says: WRONGPASS .+\. Correct the login in the URL of --cluster/)
    expect(wrong.stderr).not.toContain(':wrong')
    await using guarded = await Redis.start('redis-server')
    await guarded.until('CONFIG SET requirepass x', /OK/)
    const missing = serve(guarded.url)
    expect(await missing.exited).toBe(3)
    expect(missing.stderr).toMatch(/says: NOAUTH .+\. Correct the login in the URL of --cluster/)
  }, 60_000)

  test('a node of a Redis Cluster is an end, and the message says what to give', async () => {
    await using redis = await Redis.start('redis-server', [
      '--cluster-enabled',
      'yes',
      '--cluster-config-file',
      `nodes-${freePort()}.conf`,
    ])
    const server = serve(redis.url)
    expect(await server.exited).toBe(3)
    expect(server.stderr).toMatch(
      /says: CLUSTERDOWN .+\. It is a node of a Redis Cluster: give --cluster a single Redis/,
    )
  }, 60_000)

  test('a replica is waited for until it may be written to', async () => {
    await using primary = await Redis.start('redis-server')
    await using replica = await Redis.start('redis-server', ['--replicaof', '127.0.0.1', `${primary.port}`])
    await replica.until('INFO replication', /master_link_status:up/)
    await using server = serve(replica.url)
    expect(await server.printed(/CLUSTER_UNREACHABLE: .*/)).toMatch(
      /says: READONLY .*The server starts when it responds\.$/,
    )
    await replica.until('REPLICAOF NO ONE', /OK/)
    await server.printed(/listening/)
  }, 60_000)
})

test('a port where something else listens is no Redis, in our words', async () => {
  // It speaks first, as SSH does.
  using other = Bun.listen({
    port: 0,
    hostname: '127.0.0.1',
    socket: { open: socket => void socket.write('SSH-2.0-OpenSSH_9.6\r\n'), data() {} },
  })
  await using server = serve(`redis://127.0.0.1:${other.port}`)
  expect(await server.printed(/CLUSTER_UNREACHABLE: .*/)).toContain('what answers there is not Redis')
})

test('a port where no Redis is said to be is waited for too, by name', async () => {
  await using server = serve(`redis://127.0.0.1:${freePort()}`)
  await server.printed(/nothing listens there/)
})
