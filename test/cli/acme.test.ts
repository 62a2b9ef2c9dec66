// `localtunnels server --acme`: one command, and every tunnel answers https with a certificate of an authority.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { once } from 'node:events'
import { type AddressInfo, connect as connectPlain, createServer } from 'node:net'
import { connect } from 'node:tls'
import { type NameServer, startNameServer } from '../support/name-server.ts'
import { describeWith } from '../support/needs.ts'
import { type Pebble, startPebble } from '../support/pebble.ts'
import { freePort } from '../support/ports.ts'
import { folder } from '../support/programs.ts'
import { within } from '../support/within.ts'
import { finish, type Running, start, startOnTerminal } from './bin.ts'

const DOMAIN = 'tunnel.test'

/** What a visitor of `name` is answered, after the certificate was verified. */
async function visit(port: number, name: string, ca: string, path = '/'): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1', servername: name, ca })
  await within(once(socket, 'secureConnect'), `a handshake for ${name}`)
  socket.write(`GET ${path} HTTP/1.1\r\nHost: ${name}\r\nConnection: close\r\n\r\n`)
  let text = ''
  for await (const bytes of socket) text += String(bytes)
  return text
}

describeWith(['pebble', 'knotd', 'openssl'], 'server --acme', () => {
  let dns: NameServer
  let pebble: Pebble
  let roots: string
  let state: Awaited<ReturnType<typeof folder>>
  const ports = { http: freePort(), tls: freePort() }
  beforeAll(async () => {
    state = await folder('acme')
    dns = await startNameServer({ [`${DOMAIN}.`]: '' })
    pebble = await startPebble({ dns: dns.address, httpPort: ports.http, tlsPort: ports.tls })
    roots = await (await pebble.manage('/roots/0')).text()
    await Bun.write(`${state.path}/ca.pem`, pebble.ca)
    await Bun.write(`${state.path}/roots.pem`, roots)
  })
  afterAll(async () => {
    await pebble[Symbol.asyncDispose]()
    await dns[Symbol.asyncDispose]()
    await state[Symbol.asyncDispose]()
  })

  const server = (more: readonly string[] = [], home = state.path, begin = start): Running =>
    begin(
      [
        ...[
          'server',
          '--domain',
          DOMAIN,
          '--acme',
          `you@${DOMAIN}`,
          '--token',
          'secret',
          '--host',
          '127.0.0.1',
        ],
        ...['--acme-directory', pebble.directory, '--acme-ca', `${state.path}/ca.pem`],
        ...['--port', String(ports.tls), '--http-port', String(ports.http), ...more],
      ],
      { XDG_STATE_HOME: home },
    )

  test('a tunnel answers https, http leads there, and the next start orders nothing', async () => {
    await using run = server()
    await run.printed(new RegExp(`^https://${DOMAIN}:${ports.tls}$`, 'm'))
    await run.printed(/The authority checks tunnel\.test now\.$/m)
    await run.printed(/Certificate for tunnel\.test, until \d{4}-\d\d-\d\d\.$/m)
    await using _client = start(
      [
        '--serve',
        import.meta.dir,
        '--server',
        `https://127.0.0.1:${ports.tls}`,
        '--insecure',
        '--subdomain',
        'shop',
      ],
      { TUNNEL_TOKEN: 'secret' },
    )
    await run.printed(/\+ shop/)
    expect(await visit(ports.tls, `shop.${DOMAIN}`, roots, '/bin.ts')).toStartWith('HTTP/1.1 200')
    const plain = await fetch(`http://127.0.0.1:${ports.http}/a?b`, {
      headers: { host: `shop.${DOMAIN}` },
      redirect: 'manual',
    })
    expect([plain.status, plain.headers.get('location')]).toEqual([
      308,
      `https://shop.${DOMAIN}:${ports.tls}/a?b`,
    ])
    run.kill('SIGTERM')
    expect(await run.exited).toBe(0)
    await using again = server(['--json'])
    await again.printed(/"type":"listening"/)
    expect(await visit(ports.tls, DOMAIN, roots)).toStartWith('HTTP/1.1 200')
    again.kill('SIGTERM')
    await again.exited
    expect(again.stdout).not.toContain('CERTIFICATE_ISSUED')
  })

  test('while DNS is waited for, and once the authority checks, a line says so; a refused record is one, too', async () => {
    await using zone = await startNameServer({ 'dns.test.': '' })
    await using authority = await startPebble({ dns: zone.address })
    await Bun.write(`${state.path}/dns-ca.pem`, authority.ca)
    await using other = await folder('acme-dns')
    const ordering = (secret: string, home: string) =>
      start(
        [
          ...['server', '--domain', 'dns.test', '--acme', 'you@dns.test', '--token', 'secret', '--port', '0'],
          ...['--host', '127.0.0.1', '--http-port', '0', '--acme-resolver', zone.address],
          ...['--acme-dns', `rfc2136://${zone.keyName}@${zone.address}/dns.test`],
          ...['--acme-directory', authority.directory, '--acme-ca', `${state.path}/dns-ca.pem`],
        ],
        { XDG_STATE_HOME: home, ACME_DNS_SECRET: secret },
      )
    await using refused = ordering(btoa('another'), other.path)
    await refused.printed(/Next try at/)
    expect(`${refused.stdout}${refused.stderr}`.match(/ACME_CHALLENGE_FAILED/g)).toHaveLength(1)
    refused.kill('SIGTERM')
    await refused.exited
    await using run = ordering(zone.secret, state.path)
    const names = 'dns\\.test, \\*\\.dns\\.test'
    await run.printed(new RegExp(`For ${names}: waiting for DNS`))
    await run.printed(new RegExp(`The authority checks ${names} now`))
    await run.printed(new RegExp(`Certificate for ${names}, until`))
  })

  test('a server that is killed in the middle of an order goes on with it at its next start', async () => {
    await using home = await folder('acme-killed')
    // The check of the authority waits here until the second start is there for it.
    const inner = freePort()
    const { promise: isOpen, resolve: open } = Promise.withResolvers<void>()
    const gate = createServer(async socket => {
      socket.on('error', () => {})
      await isOpen
      const through = connectPlain(inner, '127.0.0.1')
      through.on('error', () => socket.destroy())
      socket.pipe(through).pipe(socket)
    })
    gate.listen(0, '127.0.0.1')
    await once(gate, 'listening')
    const { port: httpPort } = gate.address() as AddressInfo // it listens on a port
    const tlsPort = freePort()
    await using authority = await startPebble({ dns: dns.address, httpPort, tlsPort })
    await Bun.write(`${home.path}/ca.pem`, authority.ca)
    const more = ['--acme-directory', authority.directory, '--acme-ca', `${home.path}/ca.pem`]
    const begin = () => server([...more, '--port', String(tlsPort), '--http-port', String(inner)], home.path)
    await using killed = begin()
    await killed.printed(/The authority checks tunnel\.test now\.$/m)
    killed.kill('SIGKILL')
    await killed.exited
    await using run = begin()
    // A claim of another process would last 30 s.
    await run.printed(/The authority checks tunnel\.test now\.$/m)
    open()
    await run.printed(/Certificate for tunnel\.test, until/)
    // One that lives keeps its own: a second server with the same folder is another.
    const held = async () => {
      const [file = ''] = [...new Bun.Glob('localtunnels/acme-orders-*.json').scanSync(home.path)]
      return (await Bun.file(`${home.path}/${file}`).json()).resume
    }
    const first = await held()
    await using other = server([...more, '--port', '0', '--http-port', '0'], home.path)
    await other.printed(/listening/)
    expect(await held()).not.toBe(first)
    gate.close()
  }, 60_000)

  test('an authority that cannot be reached is one clear line, and the server runs on', async () => {
    await using run = server(['--acme-directory', `https://localhost:${freePort()}/dir`])
    await run.printed(
      /ACME_UNREACHABLE: tunnel\.test: .* ECONNREFUSED: Unable to connect\. Check .* Next try at [\d-]{10} [\d:]{8} UTC\.$/m,
    )
    run.kill('SIGTERM')
    expect(await run.exited).toBe(0)
  })

  test('after a failed order, and a start after it, the status line of a terminal is not "live"', async () => {
    await using home = await folder('acme-missing')
    const nobody = `https://localhost:${freePort()}/dir`
    for (const _ of ['first', 'again']) {
      await using run = server(['--acme-directory', nobody], home.path, startOnTerminal)
      await run.printed(/ACME_UNREACHABLE: tunnel\.test: /)
      await run.printed(/up, no certificate for tunnel\.test: next try in \d+ s/)
      run.kill('SIGTERM')
      expect(await run.exited).toBe(0)
    }
  })
})

describe('server --acme', () => {
  test('what cannot be is said before anything is ordered', async () => {
    await using state = await folder('acme-options')
    const env = { XDG_STATE_HOME: state.path }
    for (const [args, message] of [
      [['--acme', 'a@b.test'], /--acme needs --domain/],
      [['--acme-staging'], /--acme-staging needs --acme/],
      [['--acme', 'a@b.test', '--domain', 'localhost'], /localhost cannot have a certificate/],
      [['--acme', 'a@b.test', '--domain', DOMAIN, '--acme-dns', 'cloudflare'], /CLOUDFLARE_API_TOKEN/],
      [['--acme', 'a@b.test', '--domain', DOMAIN, '--acme-dns', 'nobody'], /none of cloudflare/],
      [['--acme', 'a@b.test', '--domain', DOMAIN, '--acme-key-id', 'x'], /belong together/],
      [
        ['--acme', 'a@b.test', '--domain', DOMAIN, '--acme-challenge', 'x'],
        /neither http-01 nor tls-alpn-01/,
      ],
      [['--http-port', '0'], /--http-port needs tls or certificates/],
    ] as const) {
      const { stderr, exitCode } = await finish(['server', '--host', '127.0.0.1', ...args], env)
      expect(stderr).toMatch(message)
      expect(exitCode).toBe(2)
    }
  })
})
