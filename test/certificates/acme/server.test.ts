// A server that gets its certificates from an authority by itself: each way to prove a name, on the server's own ports.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { systemClock } from '../../../src/certificates/clock.ts'
import { TunnelClient, type TunnelServer } from '../../../src/index.ts'
import { AcmeCertificates, type AcmeCertificatesOptions, Rfc2136 } from '../../../src/tls.ts'
import { certifiedVisit as visit } from '../../support/certified-visit.ts'
import { MemoryCertificates } from '../../support/memory-certificates.ts'
import { type NameServer, startNameServer } from '../../support/name-server.ts'
import { describeWith } from '../../support/needs.ts'
import { type Pebble, startPebble } from '../../support/pebble.ts'
import { freePort } from '../../support/ports.ts'
import { startServer } from '../../support/tunnel.ts'

const DOMAIN = 'tunnel.test'

interface Ends extends AsyncDisposable {
  readonly server: TunnelServer
  readonly acme: AcmeCertificates
  readonly issued: (readonly string[])[]
  readonly client: TunnelClient
}

describeWith(['pebble', 'knotd', 'openssl'], 'a server with ACME', () => {
  let dns: NameServer
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

  async function start(options: Partial<AcmeCertificatesOptions>, httpPort?: number): Promise<Ends> {
    const acme = new AcmeCertificates({
      domains: [DOMAIN],
      contact: ['operator@tunnel.test'],
      store: new MemoryCertificates(),
      directory: pebble.directory,
      ca: pebble.ca,
      ...options,
    })
    const issued: (readonly string[])[] = []
    acme.on('issued', ({ names }) => issued.push(names))
    const http = httpPort === undefined ? {} : { httpPort }
    const server = await startServer({
      port: ports.tls,
      domains: [DOMAIN],
      certificates: acme,
      challenges: acme,
      ...http,
    })
    await acme.start(server)
    const client = new TunnelClient({ server: `https://127.0.0.1:${server.port}`, verifyServer: false })
    return {
      server,
      acme,
      issued,
      client,
      async [Symbol.asyncDispose]() {
        await client.disconnect()
        await acme.stop()
        await server.stop()
      },
    }
  }

  const app = { fetch: () => new Response('hello'), subdomain: 'shop' }
  const refused = (port: number, name: string) =>
    visit(port, name, roots).then(
      () => 'a certificate',
      (error: Error) => error.message,
    )

  for (const challenge of ['http-01', 'tls-alpn-01'] as const)
    test(`${challenge}: the domain has one from the start, a tunnel from its first visitor on, other names none`, async () => {
      await using ends = await start({ challenge }, challenge === 'http-01' ? ports.http : undefined)
      const { port } = ends.server
      expect(await visit(port, DOMAIN, roots)).toBe(`200 DNS:${DOMAIN}`)
      expect(await refused(port, `shop.${DOMAIN}`)).toMatch(/unrecognized.name/i)

      await ends.client.http(app)
      const visits = Array.from({ length: 5 }, () => visit(port, `shop.${DOMAIN}`, roots))
      expect(await Promise.all(visits)).toEqual(Array(5).fill(`200 DNS:shop.${DOMAIN}`))
      expect(ends.issued).toEqual([[DOMAIN], [`shop.${DOMAIN}`]])
    })

  test('dns-01: one certificate for the domain and all tunnels', async () => {
    const key = { name: dns.keyName, secret: dns.secret }
    const provider = new Rfc2136({ host: '127.0.0.1', port: dns.port, zone: DOMAIN, key, clock: systemClock })
    // However the domain is spelled.
    await using ends = await start({ domains: ['Tunnel.Test.'], dns: provider, resolvers: [dns.address] })
    await ends.client.http(app)
    expect(await visit(ends.server.port, `shop.${DOMAIN}`, roots)).toBe(`200 DNS:${DOMAIN}, DNS:*.${DOMAIN}`)
    expect(ends.issued).toEqual([[DOMAIN, `*.${DOMAIN}`]])
  })
})
