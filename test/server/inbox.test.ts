// Webhooks that come while their client is away: kept on the disk before they are acknowledged, and delivered once it is back.

import { Database } from 'bun:sqlite'
import { expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import {
  type InboxOptions,
  type InboxStore,
  openInbox,
  TunnelClient,
  type TunnelClientOptions,
  TunnelServer,
  type TunnelServerOptions,
} from '../../src/index.ts'
import { guarding } from '../../src/plugins/guarding.ts'
import { signed } from '../../src/signatures/signatures.ts'
import { SqliteInbox } from '../../src/stores/sqlite-inbox.ts'
import { adminOptions, askAdmin } from '../support/admin.ts'
import { ask } from '../support/ask.ts'
import { codeOf, eventually } from '../support/events.ts'
import { closedAfterEach } from '../support/opened.ts'
import { folder } from '../support/programs.ts'
import { type RawConnection, rawDial } from '../support/raw.ts'

const [OWN, OTHER] = ['own-token-1234567890', 'other-token-1234567890']
const { defer } = closedAfterEach()

/** A server with an inbox, and an app that notes what it gets. */
class Post {
  readonly seen: string[] = []
  /** What the app answers, by what it gets; default 200. */
  readonly statuses = new Map<string, number[]>()
  readonly server: TunnelServer
  readonly path: string
  readonly store: InboxStore

  private constructor(server: TunnelServer, path: string, store: InboxStore) {
    this.server = server
    this.path = path
    this.store = store
  }

  static async start(
    bounds: Omit<InboxOptions, 'store'> = {},
    options: TunnelServerOptions = {},
  ): Promise<Post> {
    const dir = await folder('inbox')
    defer(() => dir[Symbol.asyncDispose]())
    const path = join(dir.path, 'inbox.db')
    const store = await openInbox(path)
    defer(() => store.close())
    const server = new TunnelServer({
      port: 0,
      host: '127.0.0.1',
      tokens: [OWN, OTHER],
      guarding: guarding(),
      inbox: { ...bounds, store },
      ...options,
    })
    await server.start()
    defer(() => server.stop())
    return new Post(server, path, store)
  }

  get waiting(): number {
    return this.store.counts().get('hooks') ?? 0
  }

  async client(options: TunnelClientOptions = {}): Promise<TunnelClient> {
    const client = new TunnelClient({
      server: this.server.url,
      token: OWN,
      subdomain: 'hooks',
      exact: true,
      inbox: { paths: ['/hooks/*'] },
      fetch: async request => {
        const body = await request.text()
        const delivery = request.headers.get('x-localtunnels-delivery')
        this.seen.push(`${new URL(request.url).pathname} ${body}${delivery === null ? '' : ` #${delivery}`}`)
        return new Response(null, { status: this.statuses.get(body)?.shift() ?? 200 })
      },
      ...options,
    })
    client.on('error', () => {})
    defer(() => client.disconnect())
    await client.connect()
    return client
  }

  /** Its client was there, and is away. */
  async left(options: TunnelClientOptions = {}): Promise<void> {
    await (await this.client(options)).disconnect()
  }

  async send(
    body: string,
    path = '/hooks/a',
    headers: Readonly<Record<string, string>> = {},
  ): Promise<number> {
    const { status } = await ask(this.server.port, 'hooks.localhost', { method: 'POST', path, body, headers })
    return status
  }
}

test('what comes meanwhile is delivered in order and marked; what is no webhook of its paths is not kept', async () => {
  const post = await Post.start()
  await post.left()
  for (let at = 0; at < 20; at++) expect(await post.send(`${at}`)).toBe(202)
  expect(await post.send('x', '/other')).toBe(404)
  expect(await post.send('x', '/hooksa')).toBe(404)
  // As apps read it that ignore case.
  expect(await post.send('upper', '/HOOKS/u')).toBe(202)
  expect((await ask(post.server.port, 'hooks.localhost', { path: '/hooks/a' })).status).toBe(404)
  const chunked = { 'transfer-encoding': 'chunked' }
  expect(await post.send('chunked', '/hooks/b?c=1', chunked)).toBe(202)
  await post.client()
  await eventually(() => post.waiting === 0, 'the deliveries')
  expect(post.seen.filter(one => one.startsWith('/hooks/a'))).toEqual(
    Array.from({ length: 20 }, (_, at) => `/hooks/a ${at} #1`),
  )
  expect(post.seen).toContain('/hooks/b chunked #1')
  expect(post.seen).toContain('/HOOKS/u upper #1')
  // Now it is there: nothing is kept.
  expect(await post.send('live')).toBe(200)
  expect(post.seen.at(-1)).toBe('/hooks/a live')
})

test('the app gets the request as it was sent, and only the server can say that it waited', async () => {
  const heads: string[] = []
  const app = createServer((request, answer) => {
    heads.push(`${request.method} ${request.url}\n${request.rawHeaders.join('\n')}`)
    request.resume().on('end', () => answer.end())
  }).listen(0, '127.0.0.1')
  defer(() => app.close())
  const post = await Post.start()
  const origin = { port: (app.address() as AddressInfo).port }
  const client = new TunnelClient({
    ...origin,
    server: post.server.url,
    token: OWN,
    subdomain: 'hooks',
    inbox: { paths: ['/hooks/*'] },
  })
  defer(() => client.disconnect())
  await client.connect()
  const lie = { 'X-Own': '1', 'X-Localtunnels-Delivery': '9', 'x-localtunnels_received': 'never' }
  await post.send('live', '/hooks/a%2F?b', lie)
  await client.disconnect()
  await post.send('late', '/hooks/a%2F?b', lie)
  const again = new TunnelClient({
    ...origin,
    server: post.server.url,
    token: OWN,
    subdomain: 'hooks',
    inbox: { paths: ['/hooks/*'] },
  })
  defer(() => again.disconnect())
  await again.connect()
  await eventually(() => heads.length === 2, 'the delivery')
  const [live = '', late = ''] = heads
  expect(live).toStartWith('POST /hooks/a%2F?b\n')
  expect(late).toStartWith('POST /hooks/a%2F?b\n')
  for (const head of heads) expect(head).toContain('X-Own\n1')
  expect(live.toLowerCase()).not.toContain('localtunnels')
  expect(late.match(/x-localtunnels/gi)).toHaveLength(2)
  expect(late).toMatch(/X-Localtunnels-Delivery\n1\nX-Localtunnels-Received\n20\d\d-\d\d-\d\dT[\d:.]+Z/)
})

test('the same webhook is kept once, by the id of its provider; a challenge is not kept', async () => {
  const post = await Post.start()
  await post.left()
  const ids: readonly Readonly<Record<string, string>>[] = [
    { 'X-GitHub-Delivery': '1' },
    { 'webhook-id': '1' },
    { 'X-GitHub-Delivery': '2' },
    { 'stripe-signature': 't=1' },
    { 'x-slack-signature': 'v0' },
  ]
  const body = JSON.stringify({ id: 'evt_1', event_id: 'Ev1' })
  for (const headers of [...ids, ...ids]) expect(await post.send(body, '/hooks/a', headers)).toBe(202)
  expect(post.waiting).toBe(5)
  expect(await post.send(JSON.stringify({ type: 'url_verification', challenge: 'x' }))).toBe(503)
  expect(post.waiting).toBe(5)
  const client = await post.client()
  await eventually(() => post.waiting === 0, 'the deliveries')
  // Also when it was delivered already.
  await client.disconnect()
  expect(await post.send(body, '/hooks/a', { 'webhook-id': '1' })).toBe(202)
  expect(post.waiting).toBe(0)
})

test('an app that fails gets it again, in its turn; one that says no does not; other paths go on', async () => {
  const post = await Post.start({ maxAttempts: 2 })
  await post.left()
  post.statuses.set('again', [500])
  post.statuses.set('no', [404])
  post.statuses.set('never', [503, 503])
  for (const body of ['again', 'no', 'last']) await post.send(body)
  await post.send('never', '/hooks/b')
  await post.send('other', '/hooks/c')
  await post.client()
  await eventually(() => post.waiting === 0, 'the deliveries')
  const of = (path: string) => post.seen.filter(one => one.startsWith(path))
  expect(of('/hooks/a')).toEqual([
    '/hooks/a again #1',
    '/hooks/a again #2',
    '/hooks/a no #1',
    '/hooks/a last #1',
  ])
  expect(of('/hooks/b')).toEqual(['/hooks/b never #1', '/hooks/b never #2'])
  expect(of('/hooks/c')).toEqual(['/hooks/c other #1'])
  expect(post.seen.indexOf('/hooks/c other #1')).toBeLessThan(post.seen.indexOf('/hooks/a again #2'))
})

test('many paths that fail do not keep the others waiting', async () => {
  const post = await Post.start()
  await post.left()
  post.statuses.set(
    'fails',
    Array.from({ length: 100 }, () => 500),
  )
  for (let at = 0; at < 20; at++) await post.send('fails', `/hooks/${at}`)
  await post.send('well', '/hooks/well')
  await post.client()
  await eventually(() => post.seen.includes('/hooks/well well #1'), 'the one that does not fail')
  expect(post.seen.every(one => one.endsWith('#1'))).toBe(true)
  await eventually(() => post.waiting === 20, 'its answer')
})

test('bounds: number, size of one, size of all, size in memory', async () => {
  const post = await Post.start({ maxRequests: 3, maxBodyBytes: 1_000, maxBytes: 2_400 })
  await post.left()
  expect(await post.send('x'.repeat(1_001))).toBe(413)
  expect(await post.send('x'.repeat(1_001), '/hooks/a', { 'transfer-encoding': 'chunked' })).toBe(413)
  expect(await post.send('x'.repeat(1_000))).toBe(202)
  // 1,000 bytes, a head and a row.
  expect(await post.send('x'.repeat(1_000))).toBe(503)
  expect([await post.send('1'), await post.send('2'), await post.send('3')]).toEqual([202, 202, 503])
  const full = await ask(post.server.port, 'hooks.localhost', { method: 'POST', path: '/hooks/a', body: '4' })
  expect(full.code).toBe('INBOX_FULL')
  await post.client()
  await eventually(() => post.waiting === 0, 'the deliveries')
  // Of these, one visitor takes a fifth.
  const small = await Post.start({ maxUnwrittenBytes: 50 })
  await small.left()
  expect([await small.send('x'.repeat(11)), await small.send('x'.repeat(10))]).toEqual([503, 202])
})

/** An upload that stops before its end, from this address. */
async function stalled(post: Post, host: string, address: string, bytes: number): Promise<RawConnection> {
  const raw = await rawDial(post.server.port)
  const length = `Content-Length: ${bytes + 1}\r\nExpect: 100-continue\r\nX-Forwarded-For: ${address}\r\n\r\n`
  await raw.send(`POST /hooks/a HTTP/1.1\r\nHost: ${host}.localhost\r\n${length}`)
  if ((await raw.until('\r\n\r\n')).includes(' 100 ')) await raw.send('x'.repeat(bytes))
  return raw
}

const behindProxy = { trustedProxies: ['127.0.0.1'] }
const from = (address: string) => ({ 'x-forwarded-for': address })

test('uploads that stop take no more of the room than they leave, to others of the name and to other names', async () => {
  const post = await Post.start({ maxUnwrittenBytes: 64_000, maxBodyBytes: 4_000 }, behindProxy)
  await post.left()
  await post.left({ subdomain: 'more', token: OTHER })
  const uploads = await Promise.all(
    Array.from({ length: 40 }, () => stalled(post, 'hooks', '192.0.2.1', 3_999)),
  )
  await eventually(() => uploads.filter(({ text }) => text.includes(' 503 ')).length === 37, 'refusals')
  const body = 'x'.repeat(4_000)
  expect(await post.send(body, '/hooks/a', from('192.0.2.1'))).toBe(503)
  expect(await post.send(body, '/hooks/a', from('192.0.2.2'))).toBe(202)
  // With many visitors of one name, too, something is left for others.
  for (let address = 10; address < 30; address++)
    uploads.push(await stalled(post, 'hooks', `192.0.2.${address}`, 3_999))
  expect(await post.send(body, '/hooks/a', from('192.0.2.50'))).toBe(503)
  const { status } = await ask(post.server.port, 'more.localhost', {
    method: 'POST',
    path: '/hooks/a',
    body,
    headers: from('192.0.2.60'),
  })
  expect(status).toBe(202)
  for (const { socket } of uploads) socket.terminate()
})

test('one address has at most half of an inbox on the disk, and of all of them; the loopback, where a proxy may be, all', async () => {
  const post = await Post.start({ maxRequests: 8, maxAllBytes: 30_000 }, behindProxy)
  await post.left()
  const send = async (address: string, count: number, path = '/hooks/a', body = 'x') => {
    const statuses: number[] = []
    for (let sent = 0; sent < count; sent++) statuses.push(await post.send(body, path, from(address)))
    return statuses.filter(status => status === 202).length
  }
  expect(await send('192.0.2.1', 6)).toBe(4)
  // A host of IPv6 has all addresses of its network.
  expect([await send('2001:db8::1', 1), await send('2001:db8::2', 6)]).toEqual([1, 1])
  expect([await send('192.0.2.3', 2), await send('192.0.2.4', 2)]).toEqual([1, 1])
  const full = await ask(post.server.port, 'hooks.localhost', {
    method: 'POST',
    path: '/hooks/a',
    body: 'x',
    headers: from('192.0.2.1'),
  })
  expect(full).toMatchObject({ status: 503, code: 'INBOX_FULL' })
  const local = await Post.start({ maxRequests: 2 })
  await local.left()
  expect([await local.send('1'), await local.send('2'), await local.send('3')]).toEqual([202, 202, 503])
})

test('an upload that stops is over after headTimeoutMs, and one that goes on is not', async () => {
  const post = await Post.start({}, { limits: { headTimeoutMs: 500 } })
  await post.left()
  const slow = await stalled(post, 'hooks', '', 0)
  await slow.send(Buffer.alloc(0))
  const raw = await rawDial(post.server.port)
  const bytes = 8
  await raw.send(`POST /hooks/a HTTP/1.1\r\nHost: hooks.localhost\r\nContent-Length: ${bytes}\r\n\r\n`)
  for (let sent = 0; sent < bytes - 1; sent++) {
    await raw.send('x')
    await Bun.sleep(200)
  }
  await raw.send('x')
  expect(await raw.until('\r\n\r\n')).toStartWith('HTTP/1.1 202 ')
  expect(await slow.end()).toContain('HTTP/1.1 408 ')
  expect(slow.text).toContain('REQUEST_TIMEOUT')
})

test('they are for the token that they came for, whoever has the name later', async () => {
  const post = await Post.start()
  await post.left()
  expect(await post.send('secret')).toBe(202)
  const other = await post.client({ token: OTHER })
  expect(await post.send('for the other')).toBe(200)
  await other.disconnect()
  // The name has the inbox of the one that had it last.
  expect(await post.send('waits for the other')).toBe(202)
  await post.client()
  await eventually(() => post.seen.length === 2, 'the delivery')
  expect(post.seen).toEqual(['/hooks/a for the other', '/hooks/a secret #1'])
  await eventually(() => post.waiting === 1, 'its answer')
})

test('an inbox stores nothing for a token that is revoked or may not have the name any more, nor for a banned name', async () => {
  const admin = adminOptions()
  const post = await Post.start({}, { admin })
  await post.left()
  for (const tokens of [
    [OTHER],
    [OTHER, { token: OWN, names: ['other'] }],
    [OWN, { token: OTHER, names: ['hooks'], reserve: true }],
  ]) {
    expect(await post.send('stored')).toBe(202)
    await post.server.reload({ tokens, admin, inbox: { store: post.store } })
    expect(await post.send('refused')).toBe(404)
    await post.server.reload({ tokens: [OWN, OTHER], admin, inbox: { store: post.store } })
  }
  await askAdmin(post.server, '/bans', { method: 'POST', body: { kind: 'tunnel', value: 'hooks' } })
  expect(await post.send('refused')).toBe(404)
})

test('who has no token, or a server without an inbox, or the JSON wire, is refused', async () => {
  const post = await Post.start()
  const refused = (options: TunnelClientOptions) => codeOf(post.client(options))
  expect(await refused({ wire: 'json' })).toBe('INBOX_REFUSED')
  const open = new TunnelServer({ port: 0, host: '127.0.0.1' })
  await open.start()
  defer(() => open.stop())
  expect(await refused({ server: open.url })).toBe('INBOX_REFUSED')
  const dir = await folder('inbox')
  defer(() => dir[Symbol.asyncDispose]())
  const store = await openInbox(join(dir.path, 'inbox.db'))
  defer(() => store.close())
  const boxed = new TunnelServer({ port: 0, host: '127.0.0.1', inbox: { store } })
  await boxed.start()
  defer(() => boxed.stop())
  // Without tokens each client is anybody.
  expect(await refused({ server: boxed.url })).toBe('INBOX_REFUSED')
  for (const inbox of [
    { paths: [] },
    { paths: ['hooks'] },
    { paths: ['/a*b'] },
    { paths: ['/a'], status: 301 },
  ])
    expect(() => new TunnelClient({ server: 'http://localhost', subdomain: 'a', port: 1, inbox })).toThrow(
      'inbox must have',
    )
  expect(() => new TunnelServer({ inbox: { store, maxRequests: 0 } })).toThrow('inbox.maxRequests')
})

test('the signature of one that waited is as old as it was when it came; a visitor cannot make one younger', async () => {
  const post = await Post.start()
  const secret = `whsec_${Buffer.from('a secret of 24 bytes....').toString('base64')}`
  const verify = { provider: 'standard', secret, require: true, toleranceSeconds: 1 } as const
  await post.left({ verify })
  const sign = (body: string, ageS: number) =>
    signed(
      'standard',
      { header: () => undefined, body: new TextEncoder().encode(body) },
      { secret, now: Math.floor(Date.now() / 1_000) - ageS },
    )
  expect(await post.send('waits', '/hooks/a', { ...sign('waits', 0) })).toBe(202)
  const past = Date.now()
  await eventually(() => Date.now() - past > 3_000, 'the signature to be too old')
  await post.client({ verify })
  await eventually(() => post.waiting === 0, 'the delivery')
  expect(post.seen).toEqual(['/hooks/a waits #1'])
  const old = { ...sign('old', 60), 'X-Localtunnels-Received': new Date(Date.now() - 60_000).toISOString() }
  expect(await post.send('old', '/hooks/a', old)).toBe(401)
})

test('guards judge its sender when it is delivered', async () => {
  const post = await Post.start()
  const guard = { deny: ['127.0.0.1'] }
  await post.left({ guard })
  expect(await post.send('from there')).toBe(202)
  await post.client({ guard })
  await eventually(() => post.waiting === 0, 'the guard')
  expect(post.seen).toEqual([])
})

test('what another process with the same file keeps is delivered here, and counts', async () => {
  const post = await Post.start({ maxRequests: 2 })
  const client = await post.client()
  const owner = createHash('sha256').update(OWN).digest('base64')
  const other = await openInbox(post.path)
  defer(() => other.close())
  const webhook = { name: 'hooks', owner, path: '/hooks/a', key: undefined, address: '127.0.0.1', sender: '' }
  const head = 'POST /hooks/a HTTP/1.1\r\nHost: hooks.localhost\r\n'
  const bounds = { maxRequests: 2, maxBytes: 10_000, maxAllBytes: 10_000 }
  const body = Buffer.from('from elsewhere')
  other.keep([{ ...webhook, head, body, receivedMs: Date.now() }], bounds)
  await eventually(() => post.seen.includes('/hooks/a from elsewhere #1'), 'the delivery')
  await eventually(() => post.waiting === 0, 'its answer')
  await client.disconnect()
  const rows = [1, 2, 3].map(at => ({ ...webhook, head, body: Buffer.from(`${at}`), receivedMs: Date.now() }))
  expect(other.keep(rows, bounds)).toEqual(['kept', 'kept', 'full'])
})

test('one owner has no more on the disk than is free for others, however many names it has', async () => {
  const dir = await folder('inbox')
  defer(() => dir[Symbol.asyncDispose]())
  const store = await openInbox(join(dir.path, 'inbox.db'))
  defer(() => store.close())
  const bounds = { maxRequests: 1_000, maxBytes: 5_000, maxAllBytes: 40_000 }
  const head = 'POST / HTTP/1.1\r\n'
  const rows = (owner: string, count: number) =>
    Array.from({ length: count }, (_, at) => ({
      name: `${owner}-${at}`,
      owner,
      path: '/',
      key: undefined,
      head,
      body: new Uint8Array(1_000 - 200 - head.length),
      address: '::1',
      sender: '',
      receivedMs: Date.now(),
    }))
  const kept = (owner: string, count: number) =>
    store.keep(rows(owner, count), bounds).filter(outcome => outcome === 'kept').length
  expect([kept('anna', 60), kept('bob', 60), kept('cleo', 60), kept('dora', 3)]).toEqual([20, 10, 5, 2])
  // Nothing that was kept gave way.
  expect([...store.counts().values()].reduce((sum, count) => sum + count, 0)).toBe(37)
  const anna = store.next('anna', 'anna-0', [])
  store.remove(anna?.id ?? 0)
  expect([kept('anna', 60), kept('bob', 60)]).toEqual([0, 0])
})

test('one address has no more on the disk than is free for others, whosever names it sends to, also after a restart', async () => {
  const dir = await folder('inbox')
  defer(() => dir[Symbol.asyncDispose]())
  const path = join(dir.path, 'inbox.db')
  const bounds = { maxRequests: 1_000, maxBytes: 5_000, maxAllBytes: 40_000 }
  const head = 'POST / HTTP/1.1\r\n'
  const rows = (sender: string, count: number) =>
    Array.from({ length: count }, (_, at) => ({
      name: `name-${at}`,
      owner: `owner-${at}`,
      path: '/',
      key: undefined,
      head,
      body: new Uint8Array(1_000 - 200 - head.length),
      address: '192.0.2.1',
      sender,
      receivedMs: Date.now(),
    }))
  const kept = async (sender: string, count: number) => {
    const store = await openInbox(path)
    const outcomes = store.keep(rows(sender, count), bounds)
    store.close()
    return outcomes.filter(outcome => outcome === 'kept').length
  }
  expect([await kept('a', 15), await kept('a', 15), await kept('b', 15)]).toEqual([15, 5, 10])
  const store = await openInbox(path)
  defer(() => store.close())
  expect(store.keep(rows('a', 1), bounds)).toEqual(['full'])
  for (let at = 0; at < 15; at++) store.remove(store.next(`owner-${at}`, `name-${at}`, [])?.id ?? 0)
  expect(store.keep(rows('a', 1), bounds)).toEqual(['kept'])
})

test('an owner who sends, fetches and sends again fills no disk with ids: the oldest are forgotten, of no other owner', async () => {
  const dir = await folder('inbox')
  defer(() => dir[Symbol.asyncDispose]())
  const path = join(dir.path, 'inbox.db')
  const store = new SqliteInbox(path, 100)
  defer(() => store.close())
  const bounds = { maxRequests: 1_000, maxBytes: 1_000_000, maxAllBytes: 10_000_000 }
  const webhook = {
    name: 'a',
    path: '/',
    head: 'POST / HTTP/1.1\r\n',
    body: new Uint8Array(1),
    address: '::1',
    sender: '',
  }
  const keep = (owner: string, at: number) =>
    store.keep([{ ...webhook, owner, key: `${at}`, receivedMs: at }], bounds)[0]
  expect(keep('patient', 1)).toBe('kept')
  for (let at = 1; at <= 500; at++) {
    expect(keep('greedy', at)).toBe('kept')
    store.remove(store.next('greedy', 'a', [])?.id ?? 0)
  }
  const file = new Database(path, { readonly: true })
  const { count } = file.query('select count(*) as count from known').get() as { count: number }
  file.close()
  expect(count).toBeLessThan(115)
  expect([keep('greedy', 500), keep('patient', 1), keep('greedy', 1)]).toEqual(['known', 'known', 'kept'])
})

test('an owner with more boxes than may be forgets the one that was not in use for longest, and no webhook', async () => {
  const dir = await folder('inbox')
  defer(() => dir[Symbol.asyncDispose]())
  const store = await openInbox(join(dir.path, 'inbox.db'))
  defer(() => store.close())
  const box = (name: string, owner = 'greedy') => ({ name, owner, paths: ['/x'], status: 202 })
  expect(store.saveBox(box('patient', 'other'), 1)).toEqual([])
  for (let at = 0; at < 1_000; at++) store.saveBox(box(`name-${at}`), 10 + at)
  const bounds = { maxRequests: 10, maxBytes: 10_000, maxAllBytes: 100_000 }
  const webhook = {
    path: '/x',
    key: undefined,
    head: 'POST /x HTTP/1.1\r\n',
    address: '::1',
    sender: '',
    receivedMs: 5,
  }
  store.keep([{ ...webhook, name: 'name-1', owner: 'greedy', body: new Uint8Array(1) }], bounds)
  store.touch(['name-0'], 5_000)
  expect(store.saveBox(box('one-more'), 5_000)).toEqual(['name-1'])
  expect([store.box('name-0')?.name, store.box('name-1'), store.box('patient')?.name]).toEqual([
    'name-0',
    undefined,
    'patient',
  ])
  expect(store.next('greedy', 'name-1', [])).toMatchObject({ path: '/x' })
})

test('what is too old is dropped, and so is the inbox of a client that does not come back', async () => {
  const dir = await folder('inbox')
  defer(() => dir[Symbol.asyncDispose]())
  const store = await openInbox(join(dir.path, 'inbox.db'))
  defer(() => store.close())
  const bounds = { maxRequests: 10, maxBytes: 10_000, maxAllBytes: 10_000 }
  const webhook = {
    name: 'a',
    owner: 'o',
    path: '/',
    key: 'k',
    head: 'POST / HTTP/1.1\r\n',
    address: '::1',
    sender: '',
  }
  store.saveBox({ name: 'a', owner: 'o', paths: ['/x', '/y/*'], status: 204 }, 1_000)
  const body = new Uint8Array([1, 2, 3])
  expect(store.keep([{ ...webhook, body, receivedMs: 1_000 }], bounds)).toEqual(['kept'])
  expect(store.keep([{ ...webhook, body, receivedMs: 2_000 }], bounds)).toEqual(['known'])
  expect(store.boxes()).toEqual([
    { name: 'a', owner: 'o', paths: ['/x', '/y/*'], status: 204, seenMs: 1_000 },
  ])
  expect(store.prune(1_000)).toBe(0)
  expect(store.next('o', 'a', [])).toMatchObject({ attempts: 0, receivedMs: 1_000 })
  expect(store.next('o', 'a', ['/'])).toBeUndefined()
  expect(store.prune(1_001)).toBe(1)
  expect([store.boxes(), store.counts().size]).toEqual([[], 0])
  expect(store.keep([{ ...webhook, body, receivedMs: 2_000 }], bounds)).toEqual(['kept'])
})
