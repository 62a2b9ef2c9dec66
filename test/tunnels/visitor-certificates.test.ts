// Certificates of visitors as a way in, with curl and with TLS of Node: who gets in, by which name, and what the app learns.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import http2 from 'node:http2'
import https from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect } from 'node:tls'
import { MemoryDirectory } from '../../src/directories/memory.ts'
import type { CertificateRule } from '../../src/guard.ts'
import { type GuardOptions, guarding, TunnelClient, type TunnelServerOptions } from '../../src/index.ts'
import { start as startCommand } from '../cli/bin.ts'
import { Browser } from '../support/browser.ts'
import { codeOf } from '../support/events.ts'
import { describeWith } from '../support/needs.ts'
import { startServer } from '../support/tunnel.ts'

const PASSWORD = 'correct horse'

let folder = ''
const pem = (name: string) => Bun.file(join(folder, `${name}.pem`)).text()
const key = (name: string) => Bun.file(join(folder, `${name}.key`)).text()

async function openssl(...words: string[]) {
  const { exitCode, stderr } = Bun.spawnSync(['openssl', ...words], { cwd: folder, stderr: 'pipe' })
  if (exitCode !== 0) throw new Error(stderr.toString())
}

// curl takes no wildcard for names of two labels.
const TUNNELS = ['shop', 'names', 'subject', 'print', 'both', 'itself', 'half', 'evil', 'open']
const NAMES = ['localhost', ...TUNNELS.map(name => `${name}.localhost`)]
const NEW_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes']

const authority = (name: string) =>
  openssl('req', '-x509', ...NEW_KEY, '-keyout', `${name}.key`, '-out', `${name}.pem`, '-subj', `/CN=${name}`)

async function signed(name: string, by: string, subject: string, extensions: string) {
  await openssl('req', ...NEW_KEY, '-keyout', `${name}.key`, '-out', `${name}.csr`, '-subj', subject)
  await Bun.write(join(folder, `${name}.ext`), extensions)
  const ca = ['-CA', `${by}.pem`, '-CAkey', `${by}.key`, '-CAcreateserial', '-days', '2']
  await openssl('x509', '-req', '-in', `${name}.csr`, ...ca, '-out', `${name}.pem`, '-extfile', `${name}.ext`)
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'visitor-certificates-'))
  await authority('ours')
  await authority('theirs')
  await signed(
    'server',
    'ours',
    '/CN=server',
    `subjectAltName=${NAMES.map(name => `DNS:${name}`).join(',')}\nextendedKeyUsage=serverAuth`,
  )
  await signed(
    'anna',
    'ours',
    '/OU=ops/CN=anna',
    'subjectAltName=email:anna@example.com\nextendedKeyUsage=clientAuth',
  )
  await signed(
    'bob',
    'ours',
    '/OU=sales/CN=bob',
    'subjectAltName=email:bob@example.org\nextendedKeyUsage=clientAuth',
  )
  await signed(
    'eve',
    'theirs',
    '/OU=ops/CN=anna',
    'subjectAltName=email:anna@example.com\nextendedKeyUsage=clientAuth',
  )
})
afterAll(() => rm(folder, { recursive: true, force: true }))

const rule = async (rest: Partial<CertificateRule> = {}): Promise<CertificateRule> => ({
  ca: await pem('ours'),
  ...rest,
})

async function start(guards: Readonly<Record<string, GuardOptions>>, options: TunnelServerOptions = {}) {
  const tls = { cert: await pem('server'), key: await key('server') }
  const server = await startServer({ tls, guarding: guarding(), http2: true, ...options })
  const client = new TunnelClient({
    server: `https://localhost:${server.port}`,
    ca: await pem('ours'),
  })
  for (const [subdomain, guard] of Object.entries(guards))
    await client.http({
      subdomain,
      guard,
      fetch: request => new Response(`user ${request.headers.get('x-localtunnels-user')}`),
    })
  return {
    server,
    client,
    async [Symbol.asyncDispose]() {
      await client.disconnect()
      await server.stop()
    },
  }
}

/** Status, HTTP version and body, as curl has them. */
async function curl(port: number, name: string, who?: string, ...more: string[]) {
  const url = `https://${name}.localhost:${port}/`
  const own = who === undefined ? [] : ['--cert', `${who}.pem`, '--key', `${who}.key`]
  const to = ['--resolve', `${name}.localhost:${port}:127.0.0.1`, '--cacert', 'ours.pem', '--max-time', '20']
  const run = Bun.spawn(
    ['curl', '-sS', ...to, ...own, ...more, '-w', '\n%{http_code} %{http_version}', url],
    {
      cwd: folder,
      stderr: 'pipe',
    },
  )
  const lines = (await new Response(run.stdout).text()).split('\n')
  const [status = '', version = ''] = (lines.pop() ?? '').split(' ')
  return { status: Number(status), version, body: lines.join('\n') }
}

test.each(['--http1.1', '--http2'])(
  'with %s the certificate lets in, by authority; the app learns whose it is',
  async by => {
    await using tunnel = await start({ shop: { certificate: await rule() } })
    const { port } = tunnel.server
    const version = by === '--http2' ? '2' : '1.1'
    const forged = ['-H', 'X-Localtunnels-User: root']
    expect(await curl(port, 'shop', 'anna', by, ...forged)).toEqual({
      status: 200,
      version,
      body: 'user anna@example.com',
    })
    expect(await curl(port, 'shop', undefined, by)).toMatchObject({ status: 403, version })
    expect(await curl(port, 'shop', 'eve', by)).toMatchObject({ status: 403 })
    // One for servers is none for clients.
    expect(await curl(port, 'shop', 'server', by)).toMatchObject({ status: 403 })
    expect((await curl(port, 'shop', undefined, by)).body).toContain('CERTIFICATE_REQUIRED')
  },
)

test('names, subject and fingerprint must each fit', async () => {
  const anna = new (await import('node:crypto')).X509Certificate(await pem('anna')).fingerprint256
  await using tunnel = await start({
    names: { certificate: await rule({ names: ['*@example.com'] }) },
    subject: { certificate: await rule({ subject: { OU: 'ops' } }) },
    print: { certificate: await rule({ fingerprints: [anna] }) },
    both: { certificate: await rule({ names: ['*@example.com'], subject: { OU: 'sales' } }) },
    // A certificate that stands for itself.
    itself: { certificate: { ca: await pem('bob') } },
  })
  const { port } = tunnel.server
  for (const name of ['names', 'subject', 'print']) {
    expect(await curl(port, name, 'anna')).toMatchObject({ status: 200 })
    expect(await curl(port, name, 'bob')).toMatchObject({ status: 403 })
  }
  expect(await curl(port, 'both', 'anna')).toMatchObject({ status: 403 })
  expect(await curl(port, 'itself', 'bob')).toMatchObject({ status: 200 })
  expect(await curl(port, 'itself', 'anna')).toMatchObject({ status: 403 })
})

test('a guard of a configuration file asks for certificates, also where it is for one path', async () => {
  await using tunnel = await start({})
  const { port } = tunnel.server
  const app = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: ({ headers }) => new Response(`user ${headers.get('x-localtunnels-user')}`),
  })
  await Bun.write(
    join(folder, 'localtunnels.toml'),
    `server = "https://localhost:${port}"
ca = "./ours.pem"

[services.shop]
port = ${app.port}

[services.shop.guard.certificate]
ca = "./ours.pem"
names = ["*@example.com"]

[services.both]
port = ${app.port}

[services.both.guard.paths."/sales".certificate]
ca = "./ours.pem"
subject = { OU = "sales" }
`,
  )
  const run = startCommand(['up', '--config', join(folder, 'localtunnels.toml')])
  try {
    await run.printed(/toml: 2 services\n/)
    expect(await curl(port, 'shop', 'anna')).toMatchObject({ status: 200, body: 'user anna@example.com' })
    expect(await curl(port, 'shop', 'bob')).toMatchObject({ status: 403 })
    expect(await curl(port, 'shop')).toMatchObject({ status: 403 })
    const sales = (who: string) => curl(port, 'both', who, '--request-target', '/sales')
    expect(await sales('bob')).toMatchObject({ status: 200, body: 'user bob@example.org' })
    expect(await sales('anna')).toMatchObject({ status: 403 })
    expect(await curl(port, 'both')).toMatchObject({ status: 200, body: 'user null' })
  } finally {
    await run[Symbol.asyncDispose]()
    await app.stop(true)
  }
})

test('without one the other ways in are there, and a path may have a way of its own', async () => {
  const certificate = await rule()
  await using tunnel = await start({
    shop: { certificate, password: PASSWORD },
    half: { open: ['/'], paths: { '/in': { certificate } } },
  })
  const { port } = tunnel.server
  expect(await curl(port, 'shop')).toMatchObject({ status: 401 })
  expect(await curl(port, 'shop', undefined, '-u', `any:${PASSWORD}`)).toMatchObject({
    status: 200,
    body: 'user null',
  })
  expect(await curl(port, 'shop', 'eve', '-u', `any:${PASSWORD}`)).toMatchObject({ status: 200 })
  expect(await curl(port, 'shop', 'bob')).toMatchObject({ status: 200, body: 'user bob@example.org' })
  expect(await curl(port, 'half')).toMatchObject({ status: 200 })
  expect(await curl(port, 'half', undefined, '--request-target', '/in')).toMatchObject({ status: 403 })
  expect(await curl(port, 'half', 'anna', '--request-target', '/in')).toMatchObject({ status: 200 })
})

test('a handshake for another name proves nothing: 421, also when its session is resumed', async () => {
  const [ours, theirs] = [await rule(), { ca: await pem('theirs') }]
  await using tunnel = await start({
    shop: { certificate: ours },
    evil: { certificate: theirs },
    open: { allow: ['0.0.0.0/0'] },
  })
  const { port } = tunnel.server
  for (const by of ['--http1.1', '--http2'])
    for (const name of ['evil', 'open'])
      expect(await curl(port, name, 'eve', by, '-H', `Host: shop.localhost:${port}`)).toMatchObject({
        status: 421,
      })
  const tls = { cert: await pem('eve'), key: await key('eve'), ca: await pem('ours') }
  for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
    const first = await get(port, 'evil', { ...tls, maxVersion })
    expect(first.answer).toContain('HTTP/1.1 200 ')
    expect(first.session).toBeDefined()
    const resumed = await get(port, 'shop', { ca: tls.ca, maxVersion, session: first.session })
    expect(resumed.answer).toContain('CERTIFICATE_REQUIRED')
    expect((await get(port, 'evil', { ca: tls.ca, maxVersion, session: first.session })).answer).toContain(
      'HTTP/1.1 200 ',
    )
  }
})

test('a connection from before the guard takes no more requests, and the next one is asked', async () => {
  await using tunnel = await start({ open: { allow: ['0.0.0.0/0'] } })
  const { server, client } = tunnel
  const fetch = () => new Response('in')
  const before = await client.http({ subdomain: 'shop', fetch })
  const [ca, cert, own] = [await pem('ours'), await pem('anna'), await key('anna')]
  const tls = { ca, cert, key: own, servername: 'shop.localhost' }
  const session = http2.connect(`https://127.0.0.1:${server.port}`, tls)
  const agent = new https.Agent({ keepAlive: true, maxSockets: 1, ...tls })
  const statusOf = (stream: http2.ClientHttp2Stream) =>
    new Promise<unknown>((resolve, reject) => {
      stream
        .on('response', headers => resolve(headers[':status']))
        .on('error', reject)
        .resume()
    })
  const get = (to: http2.ClientHttp2Session) => statusOf(to.request({ ':authority': 'shop.localhost' }))
  const getByAgent = () =>
    new Promise<readonly unknown[]>((resolve, reject) => {
      const to = { port: server.port, host: '127.0.0.1', agent, headers: { host: 'shop.localhost' } }
      https
        .get(to, answer => {
          answer.resume().on('end', () => resolve([answer.statusCode, answer.headers.connection]))
        })
        .on('error', reject)
    })
  expect([await get(session), await getByAgent()]).toEqual([200, [200, undefined]])
  await before.close()
  await client.http({ subdomain: 'shop', fetch, guard: { certificate: await rule() } })
  const closed = once(session, 'close')
  expect([await get(session), await getByAgent()]).toEqual([421, [421, 'close']])
  await closed
  const again = http2.connect(`https://127.0.0.1:${server.port}`, tls)
  expect([await get(again), (await getByAgent())[0]]).toEqual([200, 200])
  again.close()
  agent.destroy()
})

test('servers that share their tunnels refuse it: those without the tunnel do not ask', async () => {
  const tls = { cert: await pem('server'), key: await key('server') }
  const cluster = { directory: new MemoryDirectory() }
  await using server = await startServer({ tls, guarding: guarding(), cluster })
  const client = new TunnelClient({ server: `https://localhost:${server.port}`, ca: await pem('ours') })
  const asked = client.http({ guard: { certificate: await rule() }, fetch: () => new Response() })
  expect(await codeOf(asked)).toBe('GUARD_UNAVAILABLE')
  await client.disconnect()
})

describeWith(['chromium', 'certutil', 'pk12util'], 'in Chromium', () => {
  test('the browser shows its certificate, also where its connection was not asked before', async () => {
    const run = (...command: string[]) => {
      const { exitCode, stderr } = Bun.spawnSync(command, { cwd: folder, stderr: 'pipe', stdout: 'ignore' })
      if (exitCode !== 0) throw new Error(`${command[0]}: ${stderr.toString()}`)
    }
    const store = join(folder, 'data', 'pki', 'nssdb')
    await mkdir(store, { recursive: true })
    run('certutil', '-d', `sql:${store}`, '-N', '--empty-password')
    run('certutil', '-d', `sql:${store}`, '-A', '-t', 'C,,', '-n', 'ours', '-i', 'ours.pem')
    await openssl(
      ...[
        'pkcs12',
        '-export',
        '-in',
        'anna.pem',
        '-inkey',
        'anna.key',
        '-passout',
        'pass:',
        '-out',
        'anna.p12',
      ],
    )
    run('pk12util', '-d', `sql:${store}`, '-i', 'anna.p12', '-W', '')
    await using tunnel = await start({ open: { allow: ['0.0.0.0/0'] } })
    const { server, client } = tunnel
    await using browser = await Browser.start([], folder)
    const page = (request: Request) =>
      new Response(`<title>app</title>${request.headers.get('x-localtunnels-user')}`, {
        headers: { 'content-type': 'text/html' },
      })
    const load = async () => {
      await browser.open(`https://shop.localhost:${server.port}/`)
      return browser.run('document.body.innerText')
    }
    const before = await client.http({ subdomain: 'shop', fetch: page })
    expect(await load()).toBe('null')
    await before.close()
    await client.http({ subdomain: 'shop', fetch: page, guard: { certificate: await rule() } })
    // It asks once more by itself, which may go by a connection to the same address that was not asked either.
    if ((await load()) !== 'anna@example.com') expect(await load()).toBe('anna@example.com')
    expect(await load()).toBe('anna@example.com')
  }, 60_000)
})

/** One request in HTTP/1.1, and the session of its connection. */
function get(port: number, name: string, tls: object) {
  return new Promise<{ answer: string; session: Buffer | undefined }>((resolve, reject) => {
    let [answer, session]: [string, Buffer | undefined] = ['', undefined]
    const socket = connect({ port, host: '127.0.0.1', servername: `${name}.localhost`, ...tls })
    socket.on('session', one => {
      session = one
    })
    socket.on('secureConnect', () =>
      socket.write(`GET / HTTP/1.1\r\nHost: ${name}.localhost\r\nConnection: close\r\n\r\n`),
    )
    socket.on('data', bytes => {
      answer += bytes
    })
    socket.on('end', () => socket.end())
    socket.on('close', () => resolve({ answer, session }))
    socket.on('error', reject)
  })
}

test('a server that ends no TLS, and definitions that cannot be used, refuse the tunnel', async () => {
  const certificate = await rule()
  const asked = (guard: GuardOptions, client: TunnelClient) =>
    codeOf(client.http({ subdomain: 'shop', guard, fetch: () => new Response() }))
  await using plain = await startServer({ guarding: guarding() })
  const near = new TunnelClient({ server: `http://127.0.0.1:${plain.port}` })
  expect(await asked({ certificate }, near)).toBe('GUARD_UNAVAILABLE')
  await near.disconnect()
  await using tunnel = await start({})
  for (const guard of [
    { certificate: { ca: 'no PEM' } },
    { certificate: { ca: '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----' } },
    { certificate: { ...certificate, names: [] } },
    { certificate: { ...certificate, names: ['anna*'] } },
    { certificate: { ...certificate, fingerprints: ['00'] } },
    { certificate, paths: { '/a': { certificate: { ca: await pem('theirs') } } } },
  ])
    expect(await asked(guard, tunnel.client)).toBe('OPTION_INVALID')
})
