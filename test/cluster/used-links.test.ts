// A link that works once works once in the whole cluster.

import { describe, expect, test } from 'bun:test'
import { MemoryDirectory } from '../../src/directories/memory.ts'
import type { Directory } from '../../src/directory.ts'
import { makeLink } from '../../src/own-guard.ts'
import { guarding } from '../../src/plugins/guarding.ts'
import type { TunnelServer } from '../../src/tunnel-server.ts'
import { ask } from '../support/ask.ts'
import { TestCluster } from '../support/clusters.ts'
import { Cuttable } from '../support/cuttable.ts'
import { type Directories, memoryDirectories, redisDirectories } from '../support/directories.ts'
import { describeWith } from '../support/needs.ts'

const SECRET = 's'.repeat(32)
const linkPath = (secret = SECRET) =>
  new URL(makeLink('https://shop.example', secret, { once: true }).url).pathname

/** Each has a client of the pool, so that each judges the visitors who come to it. */
async function serverOf(cluster: TestCluster, secret = SECRET): Promise<TunnelServer> {
  const server = await cluster.server({ guarding: guarding() })
  const guard = { links: true, secret }
  await cluster.client({
    server: server.url,
    subdomain: 'shop',
    pool: true,
    guard,
    fetch: () => new Response('in'),
  })
  return server
}

async function press({ port }: TunnelServer, path: string): Promise<unknown> {
  const { status, code } = await ask(port, 'shop.localhost', { method: 'POST', path })
  return code ?? status
}

function suite(directories: () => Promise<Directories>): void {
  test('of many presses at several servers one opens it, and none at a server that starts later', async () => {
    await using kept = await directories()
    await using cluster = new TestCluster({}, kept.open)
    const servers = [await serverOf(cluster), await serverOf(cluster)]
    for (let round = 0; round < 10; round++) {
      const path = linkPath()
      const presses = await Promise.all([...servers, ...servers].map(server => press(server, path)))
      expect(presses.filter(one => one === 303)).toHaveLength(1)
      expect(presses.filter(one => one === 'LINK_REFUSED')).toHaveLength(3)
    }
    const path = linkPath()
    expect(await press(servers[0]!, path)).toBe(303)
    const later = await serverOf(cluster)
    expect(await press(later, path)).toBe('LINK_REFUSED')
    // Who follows it is told so without a press.
    expect((await ask(later.port, 'shop.localhost', { path })).code).toBe('LINK_REFUSED')
  })
}

describe('with a directory in memory', () => {
  suite(memoryDirectories)

  test('while the directory is away a link is refused for now, and is as good as before', async () => {
    const way = new Cuttable(new MemoryDirectory())
    await using cluster = new TestCluster({}, () => Promise.resolve<Directory>(way))
    const server = await serverOf(cluster)
    const path = linkPath()
    way.isCut = true
    expect(await press(server, path)).toBe('CLUSTER_UNREACHABLE')
    way.isCut = false
    expect(await press(server, path)).toBe(303)
    expect(await press(server, path)).toBe('LINK_REFUSED')
  })
})
for (const program of ['redis-server', 'valkey-server'] as const)
  describeWith([program], program, () => suite(() => redisDirectories(program)))
