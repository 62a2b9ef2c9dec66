// Windows authentication (NTLM, Negotiate) through a tunnel: it logs a connection in, which is then one visitor's alone (RFC 4559
// section 6).

import { describe, expect, test } from 'bun:test'
import { canSplice, spliceCounts } from '../../src/accelerator/threads.ts'
import type { TunnelClientOptions } from '../../src/client/options.ts'
import { TunnelClient } from '../../src/index.ts'
import { ask } from '../support/ask.ts'
import { TestCluster } from '../support/clusters.ts'
import { eventually } from '../support/events.ts'
import { get, type Message, readAnswer } from '../support/exchange.ts'
import { get as getFields, H2Peer, head } from '../support/h2-peer.ts'
import { startHttp2Site } from '../support/http2-site.ts'
import { FIRST, secondOf, startLoginApp } from '../support/login-app.ts'
import { type RawConnection, rawDial } from '../support/raw.ts'
import { startServer, startTunnel } from '../support/tunnel.ts'

const HTTP_1_1_REQUIRED = 13
const WIRES = ['streams', 'json'] as const

class Visitor implements Disposable {
  readonly #connection: RawConnection
  readonly #host: string

  private constructor(connection: RawConnection, host: string) {
    this.#connection = connection
    this.#host = host
  }

  static async at(port: number, host: string): Promise<Visitor> {
    return new Visitor(await rawDial(port), host)
  }

  async ask(lines = '', path = '/'): Promise<Message> {
    await this.#connection.send(get(this.#host, path, lines))
    return readAnswer(this.#connection)
  }

  /** What the page says. */
  async page(path = '/'): Promise<string> {
    return (await this.ask('', path)).payload
  }

  async login(user: string, scheme = 'NTLM', path = '/'): Promise<string> {
    await this.ask('', path)
    await this.ask(`Authorization: ${scheme} ${FIRST}\r\n`, path)
    return (await this.ask(`Authorization: ${scheme} ${secondOf(user)}\r\n`, path)).payload
  }

  [Symbol.dispose](): void {
    this.#connection.socket.terminate()
  }
}

describe.each(WIRES)('on the %s wire', wire => {
  const start = (origin: TunnelClientOptions) => startTunnel(origin, { wire })

  test('who logs in is known on later requests of the connection, and nobody else is', async () => {
    using app = startLoginApp(['Negotiate', 'NTLM'])
    await using tunnel = await start({ port: app.port })
    using alice = await Visitor.at(tunnel.port, tunnel.host)
    using stranger = await Visitor.at(tunnel.port, tunnel.host)
    expect(await alice.login('alice')).toBe('hello alice')
    expect(await stranger.page()).toBe('no')
    expect(await alice.page()).toBe('hello alice')
    expect(await stranger.login('bob', 'Negotiate')).toBe('hello bob')
    expect(await alice.page()).toBe('hello alice')
    expect((await ask(tunnel.port, tunnel.host)).status).toBe(401)
  })

  test('nobody gets the connection of a visitor that has left', async () => {
    using app = startLoginApp()
    await using tunnel = await start({ port: app.port })
    {
      using alice = await Visitor.at(tunnel.port, tunnel.host)
      expect(await alice.login('alice')).toBe('hello alice')
    }
    for (let count = 0; count < 5; count++) expect((await ask(tunnel.port, tunnel.host)).status).toBe(401)
    await eventually(() => app.open <= 1, 'the connection of the login to close')
  })

  test('logins work beside many requests of strangers, who are served as nobody', async () => {
    using app = startLoginApp()
    await using tunnel = await start({ port: app.port })
    const strangers = Array.from({ length: 6 }, async () => {
      using visitor = await Visitor.at(tunnel.port, tunnel.host)
      const pages: string[] = []
      for (let count = 0; count < 25; count++) pages.push(await visitor.page())
      return pages
    })
    const users = Array.from({ length: 25 }, async (_, index) => {
      using visitor = await Visitor.at(tunnel.port, tunnel.host)
      return [await visitor.login(`user${index}`), await visitor.page()]
    })
    expect(new Set((await Promise.all(strangers)).flat())).toEqual(new Set(['no']))
    const known = Array.from({ length: 25 }, (_, index) => `hello user${index}`)
    expect(await Promise.all(users)).toEqual(known.map(page => [page, page]))
  })

  test('visitors behind a proxy, who share its connections, share no login', async () => {
    using app = startLoginApp()
    await using tunnel = await startTunnel(
      { port: app.port },
      { wire, server: { trustedProxies: ['127.0.0.1'] } },
    )
    using proxy = await Visitor.at(tunnel.port, tunnel.host)
    await proxy.login('alice')
    expect(await proxy.page()).toBe('no')
    expect((await ask(tunnel.port, tunnel.host)).status).toBe(401)
  })
})

test('curl logs in, over HTTP/1.1 and where it offers HTTP/2', async () => {
  using app = startLoginApp()
  await using site = await startHttp2Site(app.port)
  const curl = async (...more: string[]) => {
    const url = `https://${site.host}/`
    const child = Bun.spawn(['curl', '-sk', '-m', '10', '-w', ' %{http_code}', ...more, url], {
      stderr: 'inherit',
    })
    return new Response(child.stdout).text()
  }
  expect(await curl('--http1.1', '--ntlm', '-u', 'alice:pw')).toBe('hello alice 200')
  expect(await curl('--http2', '--ntlm', '-u', 'alice:pw')).toBe('hello alice 200')
  expect(await curl('--http2', '--anyauth', '-u', 'alice:pw')).toBe('hello alice 200')
  expect(await curl('--http2')).toBe('no 401')
  expect(await curl('--http1.1')).toBe('no 401')
})

test('over HTTP/2 a visitor is sent to HTTP/1.1 when only such a login is offered, and when it begins one', async () => {
  using app = startLoginApp(['Negotiate', 'NTLM'])
  await using site = await startHttp2Site(app.port)
  await using peer = await H2Peer.connect(site.port)
  peer.send(head(1, getFields(site.host)))
  await peer.when(({ resets }) => resets[1] !== undefined, 'the reset')
  expect(peer.seen.of(1, 1)).toEqual([])
  peer.send(head(3, getFields(site.host, '/', [['authorization', `negotiate ${FIRST}`]])))
  await peer.when(({ resets }) => resets[3] !== undefined, 'the reset')
  expect(peer.seen.resets).toEqual({ 1: HTTP_1_1_REQUIRED, 3: HTTP_1_1_REQUIRED })
})

test('over HTTP/2 an app that offers Basic, too, takes Basic', async () => {
  using app = startLoginApp(['NTLM', 'Basic realm="a, NTLM"'])
  await using site = await startHttp2Site(app.port)
  await using peer = await H2Peer.connect(site.port)
  peer.send(head(1, getFields(site.host)))
  const refused = await peer.answered(1)
  expect(refused.of(1, 1)[0]?.fields?.[0]).toEqual([':status', '401'])
  peer.send(head(3, getFields(site.host, '/', [['authorization', 'Basic YTpi']])))
  expect((await peer.answered(3)).body(3).toString()).toBe('hello basic')
})

test.skipIf(!canSplice())('a lane hands over the visitor that logs in', async () => {
  using app = startLoginApp(['NTLM', 'Basic realm="a"'])
  await using tunnel = await startTunnel({ port: app.port })
  {
    using alice = await Visitor.at(tunnel.port, tunnel.host)
    const before = spliceCounts().lanes
    for (let count = 0; spliceCounts().lanes === before && count < 10_000; count++)
      expect((await alice.ask('Authorization: Basic YTpi\r\n')).payload).toBe('hello basic')
    expect(spliceCounts().lanes).toBeGreaterThan(before)
    expect(await alice.login('alice')).toBe('hello alice')
    for (let count = 0; count < 100; count++) expect(await alice.page()).toBe('hello alice')
    expect((await ask(tunnel.port, tunnel.host)).status).toBe(401)
  }
  for (let count = 0; count < 20; count++) expect((await ask(tunnel.port, tunnel.host)).status).toBe(401)
})

test('in a pool of clients the visitor stays with the app that knows it', async () => {
  using one = startLoginApp()
  using other = startLoginApp()
  await using server = await startServer()
  const join = async (port: number) => {
    const client = new TunnelClient({
      server: server.url,
      subdomain: 'app',
      host: '127.0.0.1',
      port,
      pool: true,
    })
    await client.connect()
    return client
  }
  await using _first = await join(one.port)
  await using _second = await join(other.port)
  for (let count = 0; count < 6; count++) {
    using alice = await Visitor.at(server.port, 'app.localhost')
    expect(await alice.login('alice')).toBe('hello alice')
    expect(await alice.page()).toBe('hello alice')
    expect((await ask(server.port, 'app.localhost')).status).toBe(401)
  }
})

test('a visitor whose server is another one of the cluster logs in, alone', async () => {
  using app = startLoginApp()
  await using cluster = new TestCluster()
  const front = await cluster.server()
  const holder = await cluster.server()
  await cluster.client({ server: holder.url, subdomain: 'app', host: '127.0.0.1', port: app.port })
  using alice = await Visitor.at(front.port, 'app.localhost')
  using bob = await Visitor.at(front.port, 'app.localhost')
  expect(await alice.login('alice')).toBe('hello alice')
  expect(await bob.page()).toBe('no')
  expect(await bob.login('bob')).toBe('hello bob')
  expect(await alice.page()).toBe('hello alice')
  expect((await ask(front.port, 'app.localhost')).status).toBe(401)
  expect((await ask(holder.port, 'app.localhost')).status).toBe(401)
})

test('a login that waits gives its stream to a visitor when the tunnel may have no more', async () => {
  using app = startLoginApp()
  await using tunnel = await startTunnel({ port: app.port }, { server: { limits: { maxStreams: 2 } } })
  using alice = await Visitor.at(tunnel.port, tunnel.host)
  using bob = await Visitor.at(tunnel.port, tunnel.host)
  using carol = await Visitor.at(tunnel.port, tunnel.host)
  expect(await alice.login('alice')).toBe('hello alice')
  expect(await bob.login('bob')).toBe('hello bob')
  expect(await carol.page()).toBe('no')
  expect(await bob.page()).toBe('hello bob')
  expect(await alice.page()).toBe('no')
})

test('a connection keeps its logins with eight apps: of more, the one used longest ago is over', async () => {
  using app = startLoginApp()
  const paths = Array.from({ length: 9 }, (_, index) => `/${index}`)
  const routes = Object.fromEntries(paths.map(path => [path, app.port]))
  await using tunnel = await startTunnel({ port: app.port, routes })
  using alice = await Visitor.at(tunnel.port, tunnel.host)
  for (const path of paths) expect(await alice.login('alice', 'NTLM', path)).toBe('hello alice')
  for (const path of paths.slice(1)) expect(await alice.page(path)).toBe('hello alice')
  expect(await alice.page('/0')).toBe('no')
})

test('a client on the JSON wire keeps 256 connections that are logged in', async () => {
  using app = startLoginApp()
  await using tunnel = await startTunnel({ port: app.port }, { wire: 'json' })
  using first = await Visitor.at(tunnel.port, tunnel.host)
  expect(await first.login('first')).toBe('hello first')
  using visitors = new DisposableStack()
  for (let count = 0; count < 256; count++) {
    const visitor = visitors.use(await Visitor.at(tunnel.port, tunnel.host))
    await visitor.ask(`Authorization: NTLM ${FIRST}\r\n`)
  }
  expect(await first.page()).toBe('no')
})
