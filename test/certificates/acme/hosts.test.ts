// Certificates for hosts of customers: ordered while a tunnel has them and DNS leads them to the server, and never before.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { systemClock } from '../../../src/certificates/clock.ts'
import { TunnelClient, type TunnelServer } from '../../../src/index.ts'
import { AcmeCertificates, type AcmeCertificatesOptions, Rfc2136 } from '../../../src/tls.ts'
import { certifiedVisit as visit } from '../../support/certified-visit.ts'
import { eventually } from '../../support/events.ts'
import { MemoryCertificates } from '../../support/memory-certificates.ts'
import { type NameServer, startNameServer } from '../../support/name-server.ts'
import { describeWith } from '../../support/needs.ts'
import { type Pebble, startPebble } from '../../support/pebble.ts'
import { freePort } from '../../support/ports.ts'
import { startServer } from '../../support/tunnel.ts'

const DOMAIN = 'tunnel.test'
const HOST = 'www.customer.example'
const AWAY = 'away.customer.example'

interface Ends extends AsyncDisposable {
  readonly server: TunnelServer
  readonly issued: string[]
  readonly failed: string[]
  readonly client: TunnelClient
}

describeWith(['pebble', 'knotd', 'openssl'], 'hosts of customers with ACME', () => {
  let dns: NameServer
  const ports = { http: freePort(), tls: freePort() }
  let pebble: Pebble
  let roots: string
  beforeAll(async () => {
    // One address is the server's, the other is not: the authority might ask there.
    const zones = { [`${DOMAIN}.`]: '', 'customer.example.': 'away A 127.0.0.1\naway A 127.0.0.9' }
    dns = await startNameServer(zones)
    pebble = await startPebble({ dns: dns.address, httpPort: ports.http, tlsPort: ports.tls })
    roots = await (await pebble.manage('/roots/0')).text()
  })
  afterAll(async () => {
    await pebble[Symbol.asyncDispose]()
    await dns[Symbol.asyncDispose]()
  })

  async function start(options: Partial<AcmeCertificatesOptions> = {}): Promise<Ends> {
    const acme = new AcmeCertificates({
      domains: [DOMAIN],
      contact: ['operator@tunnel.test'],
      store: new MemoryCertificates(),
      directory: pebble.directory,
      ca: pebble.ca,
      resolvers: [dns.address],
      ...options,
    })
    const issued: string[] = []
    const failed: string[] = []
    acme.on('issued', ({ names }) => issued.push(names.join()))
    acme.on('failed', ({ names, error }) => failed.push(`${names.join()} ${error.code}`))
    const server = await startServer({
      port: ports.tls,
      httpPort: ports.http,
      domains: [DOMAIN],
      tokens: ['mine', 'other'],
      certificates: acme,
      challenges: acme,
    })
    await acme.start(server)
    const client = new TunnelClient({
      server: `https://127.0.0.1:${server.port}`,
      verifyServer: false,
      token: 'mine',
    })
    return {
      server,
      issued,
      failed,
      client,
      async [Symbol.asyncDispose]() {
        await client.disconnect()
        await acme.stop()
        await server.stop()
      },
    }
  }

  const app = { fetch: () => new Response('hello') }
  const outcome = (port: number, name: string): Promise<string> =>
    visit(port, name, roots).catch((error: Error) => error.message)

  test('none before a tunnel has it, one with its first visitor, none where DNS leads elsewhere', async () => {
    await using ends = await start()
    const { port } = ends.server
    expect(await outcome(port, HOST)).toMatch(/unrecognized.name/i)
    const told: string[] = []
    ends.client.on('error', error => told.push(`${Reflect.get(error, 'code')} ${error.message}`))
    await ends.client.http({ ...app, hosts: [HOST, AWAY, 'nowhere.example'] })
    const visits = Array.from({ length: 4 }, () => visit(port, HOST, roots))
    expect(await Promise.all(visits)).toEqual(Array(4).fill(`200 DNS:${HOST}`))
    for (const name of [AWAY, 'nowhere.example', AWAY])
      expect(await outcome(port, name)).toMatch(/internal.error/i)
    expect(ends.issued.filter(names => names !== DOMAIN)).toEqual([HOST])
    // Its client hears of each host once, and of those that do lead here not at all.
    await eventually(() => told.length === 2, 'what the client is told')
    expect(told[0]).toContain('HOST_NOT_POINTED_HERE')
    expect(told[0]).toContain(AWAY)
    expect(told[1]).toContain('nowhere.example')
    // The second visitor within a minute asks no name server again.
    expect(ends.failed.slice(0, 2)).toEqual([
      `${AWAY} HOST_NOT_POINTED_HERE`,
      'nowhere.example HOST_NOT_POINTED_HERE',
    ])
    expect(ends.failed.filter(line => line.endsWith('HOST_NOT_POINTED_HERE'))).toHaveLength(2)
  })

  test('DNS that changes between the check and the look of the authority: one refused order, and no second within the wait', async () => {
    // The server's resolver still leads here, the authority's to where nothing answers.
    await using elsewhere = await startNameServer({
      [`${DOMAIN}.`]: '',
      'customer.example.': 'moved A 127.0.0.9',
    })
    await using theirs = await startPebble({
      dns: elsewhere.address,
      httpPort: ports.http,
      tlsPort: ports.tls,
    })
    await using ends = await start({ directory: theirs.directory, ca: theirs.ca, maxOrdersPerOwner: 2 })
    const { port } = ends.server
    const moved = 'moved.customer.example'
    await ends.client.http({ ...app, hosts: [moved] })
    const visits = await Promise.all(Array.from({ length: 4 }, () => outcome(port, moved)))
    visits.push(await outcome(port, moved))
    for (const each of visits) expect(each).toMatch(/internal.error/i)
    expect(ends.failed.filter(line => !line.endsWith('CERTIFICATE_DELAYED'))).toEqual([
      `${moved} ACME_CHALLENGE_FAILED`,
    ])
    expect(ends.issued).toEqual([DOMAIN])
    // It counted for its token, once.
    const names = [1, 2].map(number => `after${number}.customer.example`)
    await ends.client.http({ ...app, hosts: names })
    const roots = await (await theirs.manage('/roots/0')).text()
    expect(await visit(port, names[0]!, roots)).toBe(`200 DNS:${names[0]}`)
    expect(await outcome(port, names[1]!)).toMatch(/internal.error/i)
  })

  test('`addresses` says where the server is, instead of its domain', async () => {
    await using ends = await start({ addresses: ['127.0.0.9', '127.0.0.1'] })
    await ends.client.http({ ...app, hosts: [AWAY] })
    // All of its addresses are the server's now; where the authority asks first is its own choice.
    await outcome(ends.server.port, AWAY)
    expect(ends.failed.filter(line => line.endsWith('HOST_NOT_POINTED_HERE'))).toEqual([])
  })

  test('with a provider for the own zone, the host of a customer is proved on the own port', async () => {
    const key = { name: dns.keyName, secret: dns.secret }
    const provider = new Rfc2136({ host: '127.0.0.1', port: dns.port, zone: DOMAIN, key, clock: systemClock })
    await using ends = await start({ dns: provider })
    await ends.client.http({ ...app, hosts: [HOST] })
    expect(await visit(ends.server.port, HOST, roots)).toBe(`200 DNS:${HOST}`)
  })

  test('one token does not use up the orders of the others', async () => {
    await using ends = await start({ maxOrdersPerOwner: 2 })
    const { port } = ends.server
    await ends.client.http({
      ...app,
      hosts: ['a.customer.example', 'b.customer.example', 'c.customer.example'],
    })
    expect(await visit(port, 'a.customer.example', roots)).toStartWith('200')
    expect(await visit(port, 'b.customer.example', roots)).toStartWith('200')
    expect(await outcome(port, 'c.customer.example')).toMatch(/internal.error/i)
    expect(ends.failed).toEqual(['c.customer.example CERTIFICATE_DELAYED'])
    await using another = new TunnelClient({
      server: `https://127.0.0.1:${port}`,
      verifyServer: false,
      token: 'other',
    })
    await another.http({ ...app, hosts: ['d.customer.example'] })
    expect(await visit(port, 'd.customer.example', roots)).toStartWith('200')
  })
})
