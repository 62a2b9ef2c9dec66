// Servers of a cluster that get their certificates from an authority: one order for all, whichever server the authority checks.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { RedisCertificates } from '../../src/directories/redis-certificates.ts'
import { AcmeCertificates, CopiedCertificates } from '../../src/tls.ts'
import { certifiedVisit as visit } from '../support/certified-visit.ts'
import { TestCluster } from '../support/clusters.ts'
import { redisDirectories } from '../support/directories.ts'
import { MemoryCertificates } from '../support/memory-certificates.ts'
import { type NameServer, startNameServer } from '../support/name-server.ts'
import { describeWith } from '../support/needs.ts'
import { type Pebble, startPebble } from '../support/pebble.ts'
import { freePort } from '../support/ports.ts'
import { folder } from '../support/programs.ts'

const DOMAIN = 'tunnel.test'

for (const program of ['redis-server', 'valkey-server'] as const)
  describeWith(['pebble', 'knotd', 'openssl', program], `servers with ACME and ${program}`, () => {
    let dns: NameServer
    // The authority comes to the second server alone.
    const ports = { http: freePort(), tls: freePort() }
    let pebble: Pebble
    let roots: string
    beforeAll(async () => {
      dns = await startNameServer({ [`${DOMAIN}.`]: '' })
      pebble = await startPebble({ dns: dns.address, httpPort: ports.http, tlsPort: ports.tls })
      roots = await (await pebble.manage('/roots/0')).text()
    })
    afterAll(async () => {
      await pebble[Symbol.asyncDispose]()
      await dns[Symbol.asyncDispose]()
    })

    for (const challenge of ['http-01', 'tls-alpn-01'] as const)
      test(`${challenge}: each name is ordered once, and every server has it`, async () => {
        await using dir = await folder('cluster-acme')
        await using kept = await redisDirectories(program)
        await using cluster = new TestCluster({}, kept.open)
        const issued: (readonly string[])[] = []
        const failed: string[] = []
        const all: AcmeCertificates[] = []
        const stores: CopiedCertificates[] = []
        const start = async (number: number, port: number, httpPort: number) => {
          const shared = await RedisCertificates.open({ url: kept.url, authority: pebble.directory })
          const store = new CopiedCertificates(new MemoryCertificates(), shared)
          const acme = new AcmeCertificates({
            domains: [DOMAIN],
            contact: ['operator@tunnel.test'],
            store,
            directory: pebble.directory,
            ca: pebble.ca,
            challenge,
          })
          acme.on('issued', ({ names }) => issued.push(names))
          acme.on('failed', ({ names, error }) => failed.push(`${names.join()}: ${error.message}`))
          acme.on('error', error => failed.push(error.message))
          const server = await cluster.server({
            port,
            domains: [DOMAIN],
            certificates: acme,
            challenges: acme,
            ...(challenge === 'http-01' && { httpPort }),
            cluster: { peerUrl: `unix:${join(dir.path, `${number}`)}` },
          })
          stores.push(store)
          all.push(acme)
          return { server, acme }
        }
        try {
          const a = await start(1, freePort(), freePort())
          const b = await start(2, ports.tls, ports.http)
          await Promise.all([a.acme.start(a.server), b.acme.start(b.server)])
          for (const { server } of [a, b])
            expect(await visit(server.port, DOMAIN, roots)).toBe(`200 DNS:${DOMAIN}`)
          for (const subdomain of ['shop', 'blog'])
            await cluster.client({
              server: `https://127.0.0.1:${a.server.port}`,
              verifyServer: false,
              subdomain,
              fetch: () => new Response('hello'),
            })
          // The first orders, and the check comes to the second.
          expect(await visit(a.server.port, `blog.${DOMAIN}`, roots)).toBe(`200 DNS:blog.${DOMAIN}`)
          const visits = [a, b, a, b, a, b].map(({ server }) => visit(server.port, `shop.${DOMAIN}`, roots))
          expect(await Promise.all(visits)).toEqual(Array(6).fill(`200 DNS:shop.${DOMAIN}`))
          expect(issued).toEqual([[DOMAIN], [`blog.${DOMAIN}`], [`shop.${DOMAIN}`]])
          // A name that no server has is nobody's.
          const none = visit(b.server.port, `none.${DOMAIN}`, roots)
          expect(await none.catch((error: Error) => error.message)).toMatch(/unrecognized.name/i)
          // One that starts later orders nothing.
          const c = await start(3, freePort(), freePort())
          await c.acme.start(c.server)
          for (const name of [DOMAIN, `shop.${DOMAIN}`])
            expect(await visit(c.server.port, name, roots)).toBe(`200 DNS:${name}`)
          expect(issued).toHaveLength(3)
        } catch (error) {
          // A visitor sees an alert alone; why is here.
          throw new Error(`${String(error)} (${failed.join('; ') || 'no order failed'})`, { cause: error })
        } finally {
          for (const acme of all) await acme.stop()
          for (const server of cluster.servers) await server.stop()
          for (const store of stores) await store.close()
        }
      }, 60_000)
  })
