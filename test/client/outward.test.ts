// A server says where its visitors go: the client must not be led to what only the client reaches.

import { afterEach, expect, test } from 'bun:test'
import { dialOutward } from '../../src/client/reach/outward.ts'
import { TunnelClient, type TunnelClientOptions } from '../../src/index.ts'
import type { Address, Dial } from '../../src/socket.ts'
import { codeOf } from '../support/events.ts'
import { NaiveJsonServer } from '../support/json-server.ts'
import { OutboundProxy } from '../support/outbound-proxy.ts'
import { control, speakingServer } from '../support/speaker.ts'

const clients: TunnelClient[] = []
afterEach(async () => {
  await Promise.all(clients.splice(0).map(client => client.disconnect()))
})

function open(options: TunnelClientOptions): TunnelClient {
  const client = new TunnelClient({
    subdomain: 'app',
    reconnect: false,
    fetch: () => new Response(),
    ...options,
  })
  clients.push(client)
  return client
}

const nothing = { received() {}, drained() {}, ended() {}, closed() {} }
const PUBLIC = '203.0.113.5'
const PRIVATE = '10.1.2.3'

/** What is dialled for a host that the server names. */
async function dialled(server: string, address: Address): Promise<readonly (string | undefined)[]> {
  const hosts: (string | undefined)[] = []
  const dial: Dial = ({ host }) => {
    hosts.push(host)
    return Promise.reject(new Error('nothing is there'))
  }
  const to = dialOutward([{ host: server }], dial)
  await to(address, nothing, new AbortController().signal).catch(() => {})
  return hosts
}

test.each([
  [PUBLIC, PUBLIC],
  [PUBLIC, '2001:db8::1'],
  [PRIVATE, PUBLIC],
  [PRIVATE, '192.168.0.9'],
  ['fd00::1', 'fe80::1'],
  ['127.0.0.1', PRIVATE],
  ['127.0.0.1', '127.0.0.9'],
  ['localhost', 'app.localhost'],
  ['0.0.0.0', '127.0.0.1'],
])('of a server at %s the probe asks %s', async (server, host) => {
  expect(await dialled(server, { host })).toEqual([host])
})

test.each([
  [PUBLIC, '127.0.0.1'],
  [PUBLIC, '127.9.9.9'],
  [PUBLIC, '0.0.0.0'],
  [PUBLIC, '::1'],
  [PUBLIC, '::ffff:127.0.0.1'],
  [PUBLIC, '::ffff:7f00:1'],
  [PUBLIC, 'localhost'],
  [PUBLIC, 'app.localhost'],
  [PUBLIC, PRIVATE],
  [PUBLIC, '::ffff:10.1.2.3'],
  [PUBLIC, '169.254.169.254'],
  [PUBLIC, '172.31.0.1'],
  [PUBLIC, 'fd00::1'],
  [PUBLIC, 'fe80::1'],
  [PRIVATE, '127.0.0.1'],
  [PRIVATE, 'localhost'],
  ['server.that.is.nowhere.invalid', '127.0.0.1'],
])('of a server at %s the probe does not ask %s', async (server, host) => {
  expect(await dialled(server, { host })).toEqual([])
})

test('what a proxy looks up is the proxy’s to know, but an address is one', async () => {
  const via = {
    address: { host: '127.0.0.1', port: 1 },
    opening: { begin: () => new Uint8Array(), take: () => undefined },
  }
  expect(await dialled(PUBLIC, { host: 'app.tunnel.test', via })).toEqual(['app.tunnel.test'])
  expect(await dialled(PUBLIC, { host: '127.0.0.1', via })).toEqual([])
  expect(await dialled(PUBLIC, { host: 'localhost', via })).toEqual([])
})

test('a server elsewhere that names this machine as its public side gets no request to it', async () => {
  const asked: string[] = []
  using canary = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch({ url }) {
      asked.push(url)
      return new Response()
    },
  })
  const url = `http://127.0.0.1:${canary.port}/`
  using hostile = speakingServer(({ type, ref, name }, say) => {
    if (type === 'register') say(control({ type: 'granted', ref, tunnel: 1, name, url, resume: 'r' }))
  })
  using proxy = await OutboundProxy.start({ kind: 'http', names: ['tunnel.test'] })
  const client = open({ server: `http://tunnel.test:${hostile.port}`, proxy: proxy.url(), wire: 'streams' })
  await client.connect()
  expect(await client.probe(2_000)).toBe(false)
  expect(asked).toEqual([])
  expect(proxy.targets.filter(target => target.endsWith(`:${canary.port}`))).toEqual([])
})

// ── What a server may call a tunnel ──────────────────────────────────────────────────────────────────────────────────

test.each([
  'hello world',
  'javascript:alert(1)',
  'file:///etc/passwd',
  'http://app.localhost/\u202e',
  'http://user:password@app.localhost/',
  'http://',
])('a grant with %j for a URL breaks the protocol', async url => {
  using hostile = speakingServer(({ type, ref, name }, say) => {
    if (type === 'register') say(control({ type: 'granted', ref, tunnel: 1, name, url, resume: 'r' }))
  })
  expect(await codeOf(open({ server: `127.0.0.1:${hostile.port}` }).connect())).toBe('PROTOCOL_ERROR')
})

test.each(['http://a.localhost/\n\x1b[2J', 'javascript:alert(1)', 'http://a.localhost/\u202e'])(
  'on the JSON wire %j is no URL: the address that was dialled is believed',
  async url => {
    using server = new NaiveJsonServer({ url: () => url })
    const client = open({ server: `localhost:${server.port}`, wire: 'json' })
    await client.connect()
    expect(client.getTunnelUrl()).toBe(`http://app.localhost:${server.port}`)
  },
)

test('a server of the JSON wire that names no URL is dialled by its name', async () => {
  using server = new NaiveJsonServer({ url: () => '' })
  const client = open({ server: `127.0.0.1:${server.port}`, wire: 'json' })
  expect(await codeOf(client.connect())).toBe('SERVER_REFUSED')
})
