// The inspector's API, asked over its port.

import { describe, expect, test } from 'bun:test'
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  brotliCompressSync,
  constants,
  deflateRawSync,
  deflateSync,
  gzipSync,
  zstdCompressSync,
} from 'node:zlib'
import type { InspectOptions } from '../../../src/client/options.ts'
import type { FetchHandler } from '../../../src/index.ts'
import { type AskInit, InspectorApi } from '../../support/inspector.ts'
import { RawOrigin, rawDial } from '../../support/raw.ts'
import { startTunnel } from '../../support/tunnel.ts'
import { workedMs } from '../../support/within.ts'

async function inspected(
  fetchHandler: FetchHandler,
  inspect: InspectOptions | true = true,
  wire: 'streams' | 'json' = 'streams',
) {
  const tunnel = await startTunnel({ fetch: fetchHandler, inspect }, { wire })
  const api = new InspectorApi(tunnel.client)
  return {
    tunnel,
    api,
    visit: (path: string, init: AskInit = {}) =>
      fetch(`http://127.0.0.1:${tunnel.port}${path}`, {
        ...init,
        headers: { host: tunnel.host, ...init.headers },
      }),
    [Symbol.asyncDispose]: () => tunnel[Symbol.asyncDispose](),
  }
}

const json = (value: unknown, init: ResponseInit = {}) => Response.json(value, init)

for (const wire of ['streams', 'json'] as const)
  describe(`on the ${wire} wire`, () => {
    test('an exchange is a row, newest first, and has its bytes as sent', async () => {
      await using one = await inspected(
        async request => new Response(`got ${await request.text()}`),
        true,
        wire,
      )
      await (await one.visit('/first')).text()
      await (
        await one.visit('/second?x=1', { method: 'POST', body: 'hello', headers: { 'X-Odd-Case': 'Yes' } })
      ).text()
      await one.api.ended('/second')
      const rows = await one.api.rows()
      expect(
        rows.map(({ method, path, status, state, tunnel }) => [method, path, status, state, tunnel]),
      ).toEqual([
        ['POST', '/second?x=1', 200, 'done', 'app'],
        ['GET', '/first', 200, 'done', 'app'],
      ])
      const detail = await one.api.detail(rows[0]!.id)
      expect(detail.request?.head).toStartWith('POST /second?x=1 HTTP/1.1\r\n')
      // What the JSON wire carries has lost its case before it came to the client.
      expect(detail.request?.head).toContain(`\r\n${wire === 'json' ? 'x-odd-case' : 'X-Odd-Case'}: Yes\r\n`)
      expect(detail.response?.head).toBe('HTTP/1.1 200 \r\ncontent-length: 9\r\n\r\n')
      expect(await one.api.bytes(`exchanges/${rows[0]!.id}/request.body`)).toEqual(
        Buffer.from('hello') as Uint8Array,
      )
      expect((await one.api.ask(`exchanges/${rows[0]!.id}/response.body`)).text).toBe('got hello')
      expect(detail.visitor).toBe('127.0.0.1')
      expect(detail.times.totalMs).toBeGreaterThanOrEqual(0)
    })
  })

test('the list is filtered and comes in pages', async () => {
  await using one = await inspected(request => json({ path: new URL(request.url).pathname }))
  for (let n = 0; n < 5; n++) await (await one.visit(`/n/${n}`)).text()
  await one.api.ended('/n/4')
  const first = (await one.api.ask('exchanges?limit=2')).json
  expect(first.exchanges.map((row: { path: string }) => row.path)).toEqual(['/n/4', '/n/3'])
  expect(first.hasMore).toBe(true)
  const rest = (await one.api.ask(`exchanges?before=${first.exchanges[1].id}`)).json
  expect(rest.exchanges.map((row: { path: string }) => row.path)).toEqual(['/n/2', '/n/1', '/n/0'])
  expect(rest.hasMore).toBe(false)
  expect((await one.api.rows('?filter=body:n/3')).map(row => row.path)).toEqual(['/n/3'])
  const refused = await one.api.ask('exchanges?filter=colour:red')
  expect([refused.status, refused.json.error.code]).toEqual([400, 'OPTION_INVALID'])
  const [{ id } = { id: 0 }] = first.exchanges
  for (const path of ['exchanges?limit=1001', 'exchanges?limit=0', `exchanges/${id}/frames?limit=1001`]) {
    const { status, json: said } = await one.api.ask(path)
    expect([path, status, said.error?.code]).toEqual([path, 400, 'OPTION_INVALID'])
  }
})

test('secrets are masked until they are asked for, also in the head, in exports and for filters', async () => {
  await using one = await inspected(() => new Response('', { headers: { 'set-cookie': 'sid=qqq' } }), {
    secrets: ['X-Key'],
  })
  const headers = { authorization: 'Bearer abc', cookie: 'sid=zzz', 'x-key': 'kkk', 'x-open': 'ooo' }
  await (await one.visit('/', { headers })).text()
  const { id } = await one.api.ended()
  const masked = await one.api.ask(`exchanges/${id}`)
  const curl = await one.api.ask(`exchanges/${id}/as/curl`)
  for (const secret of ['abc', 'sid=zzz', 'kkk', 'sid=qqq'])
    for (const { text } of [masked, curl, await one.api.ask(`exchanges/${id}/as/har`)])
      expect(text).not.toContain(secret)
  expect(masked.text).toContain('ooo')
  expect(curl.text).not.toContain('••')
  expect(curl.headers.get('x-secrets-left-out')).toBe('1')
  expect(await one.api.rows('?filter=header:"x-key: kkk"')).toEqual([])
  const shown = await one.api.detail(id, '?reveal=1')
  expect(shown.request?.fields.find(field => field.name.toLowerCase() === 'x-key')).toMatchObject({
    value: 'kkk',
    isSecret: true,
  })
  expect((await one.api.ask(`exchanges/${id}/as/curl?reveal=1`)).text).toContain('abc')
})

test('a cut body says so, is not sent again, and another body is', async () => {
  await using one = await inspected(async request => new Response(String((await request.bytes()).length)), {
    maxBody: 100,
  })
  await (await one.visit('/big', { method: 'POST', body: 'x'.repeat(1_000) })).text()
  const { id, requestBody } = await one.api.ended()
  expect(requestBody).toEqual({ totalBytes: 1_000, keptBytes: 100 })
  expect((await one.api.detail(id)).replayable).toBe('BODY_TRUNCATED')
  const refused = await one.api.send('POST', `exchanges/${id}/replay`)
  expect([refused.status, refused.json.error.code]).toEqual([409, 'BODY_TRUNCATED'])
  const { json: answer } = await one.api.send('POST', `exchanges/${id}/replay`, { edit: { body: 'short' } })
  expect(answer.replays[0]).toMatchObject({ verdict: 'different', exchange: { replayOf: id, status: 200 } })
  expect((await one.api.ask(`exchanges/${answer.replays[0].exchange.id}/response.body`)).text).toBe('5')
})

const ZEROS = Buffer.alloc(20_000_000)
const CODED: readonly (readonly [coding: string, code: (bytes: Uint8Array) => Uint8Array])[] = [
  ['gzip', gzipSync],
  ['deflate', deflateSync],
  ['deflate', deflateRawSync],
  ['br', bytes => brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } })],
  ['zstd', zstdCompressSync],
  ['gzip, zstd', bytes => zstdCompressSync(gzipSync(bytes))],
]

test('a coded body is decoded for reading, and a bomb is not', async () => {
  const at = (request: Request) => CODED[Number(new URL(request.url).searchParams.get('n'))]!
  await using one = await inspected(request => {
    const [coding, code] = at(request)
    const isBomb = new URL(request.url).pathname === '/bomb'
    const type = { 'content-encoding': coding, 'content-type': 'text/plain' }
    return new Response(new Uint8Array(code(isBomb ? ZEROS : Buffer.from('hello'))), { headers: type })
  })
  const got = async (path: string) => {
    await (await one.visit(path, { decompress: false } as object)).bytes()
    const { id } = await one.api.ended(`path:"${path}"`)
    return { id, decoded: await one.api.ask(`exchanges/${id}/response.body?decoded=1`) }
  }
  const plain: string[] = []
  for (const [n, [coding, code]] of CODED.entries()) {
    const { id, decoded } = await got(`/plain?n=${n}`)
    expect([coding, decoded.text, decoded.headers.get('x-decode-fault')]).toEqual([coding, 'hello', null])
    expect(Buffer.from(await one.api.bytes(`exchanges/${id}/response.body`))).toEqual(
      Buffer.from(code(Buffer.from('hello'))),
    )
    plain.unshift(id)
    const bomb = await got(`/bomb?n=${n}`)
    expect(bomb.decoded.headers.get('x-decode-fault')).toMatch(/^it has more than \d+ bytes then$/)
    // As it came.
    const { responseBody } = await one.api.detail(bomb.id)
    expect(bomb.decoded.text.length).toBeLessThanOrEqual(responseBody.keptBytes)
  }
  expect((await one.api.rows('?filter=body:hello')).map(row => row.id)).toEqual(plain)
})

test('codings on top of each other without end are not undone', async () => {
  const bytes = [1, 2, 3, 4, 5].reduce<Uint8Array>(inner => gzipSync(inner), Buffer.from('deep'))
  const headers = { 'content-encoding': 'gzip, gzip, gzip, gzip, gzip' }
  await using one = await inspected(() => new Response('ok'))
  await (await one.visit('/deep', { method: 'POST', body: new Uint8Array(bytes), headers })).text()
  const { id } = await one.api.ended('/deep')
  const decoded = await one.api.ask(`exchanges/${id}/request.body?decoded=1`)
  expect(decoded.headers.get('x-decode-fault')).toBe('it has more than 4 codings')
})

test('visitors go on while bodies are searched that grow when they are decoded', async () => {
  // Each takes milliseconds to look at.
  const bomb = new Uint8Array(brotliCompressSync(Buffer.alloc(4_000_000, 'a')))
  await using one = await inspected(() => new Response('ok'), { rate: 0 })
  const headers = { 'content-encoding': 'br' }
  for (let n = 0; n < 24; n++)
    await (await one.visit(`/bomb/${n}`, { method: 'POST', body: bomb, headers })).text()
  await one.api.ended('/bomb/23')
  const body = '-body:foo'
  for (const search of [
    () => one.api.ask(`exchanges?filter=${body} path:/none`),
    () => one.api.send('POST', 'wait', { filter: `${body} path:/bomb/23`, after: '0' }),
    () => one.api.ask(`exchanges?filter=${body}`, { method: 'DELETE' }),
  ]) {
    const startedAt = workedMs()
    let [isOver, lastAt, longestMs] = [false, startedAt, 0]
    const searching = search().finally(() => {
      isOver = true
    })
    while (!isOver) {
      await new Promise(resolve => setImmediate(resolve))
      const now = workedMs()
      longestMs = Math.max(longestMs, now - lastAt)
      lastAt = now
    }
    expect((await searching).status).toBe(200)
    // A search in one go is all of the time.
    expect(longestMs).toBeLessThan((lastAt - startedAt) / 4)
  }
  expect(await one.api.rows()).toEqual([])
}, 60_000)

test('replays go to the own app, unchanged or edited, and are compared', async () => {
  let isBroken = true
  const seen: string[] = []
  await using one = await inspected(
    async request => {
      seen.push(
        `${request.method} ${new URL(request.url).pathname} ${request.headers.get('x-secret')} ${await request.text()}`,
      )
      if (new URL(request.url).pathname === '/moved') return Response.redirect('http://192.0.2.1/', 302)
      return isBroken ? json({ error: 'oops' }, { status: 500 }) : json({ ok: true, n: 1 })
    },
    { secrets: ['x-secret'] },
  )
  await (await one.visit('/hook', { method: 'POST', body: 'paid', headers: { 'x-secret': 's3' } })).text()
  const { id } = await one.api.ended()
  isBroken = false
  const again = (await one.api.send('POST', `exchanges/${id}/replay`, { times: 2 })).json.replays
  expect(again.map((one: { verdict: string }) => one.verdict)).toEqual(['fixed', 'fixed'])
  expect(seen.slice(1)).toEqual(['POST /hook s3 paid', 'POST /hook s3 paid'])
  const detail = await one.api.detail(id)
  // As the page sends it: the mask stands for the secret.
  const fields = detail.request!.fields.map(({ name, value }) => ({ name, value }))
  await one.api.send('POST', `exchanges/${id}/replay`, {
    edit: { method: 'PUT', path: '/other', fields, body: 'new' },
  })
  expect(seen.at(-1)).toBe('PUT /other s3 new')
  const { json: diff } = await one.api.ask(`diff?a=${id}&b=${again[0].exchange.id}`)
  expect(diff).toMatchObject({
    verdict: 'fixed',
    request: { body: { isSame: true } },
    response: { first: { isSame: false } },
  })
  expect(diff.response.body.kind).toBe('json')
  expect(
    diff.response.body.parts.some(
      (part: { op: string; text: string }) => part.op === 'added' && part.text.includes('"ok": true'),
    ),
  ).toBe(true)
  // A redirect is an answer.
  const moved = await one.api.send('POST', `exchanges/${id}/replay`, { edit: { path: '/moved' } })
  expect(moved.json.replays[0].exchange).toMatchObject({ status: 302, path: '/moved' })
  const resigned = await one.api.send('POST', `exchanges/${id}/replay`, { resign: true })
  expect(resigned.json.error.code).toBe('REPLAY_IMPOSSIBLE')
  const withField = (name: string, value: string) => ({ fields: [...fields, { name, value }] })
  for (const edit of [
    { path: '/a b' },
    { path: '/\u20ac' },
    { method: 'GET / HTTP/1.1\r\nX: y' },
    { method: 'GET /x HTTP/1.1\r\nX:' },
    { path: '/ HTTP/1.1\r\nX: y\r\nZ:' },
    withField('X', 'a\r\nY: b'),
    withField('X', 'a\nY: b'),
    withField('X: a\r\nY', 'b'),
    withField('X:', 'b'),
    withField('', 'b'),
  ]) {
    const broken = await one.api.send('POST', `exchanges/${id}/replay`, { edit })
    expect([edit, broken.status, broken.json.error?.code]).toEqual([edit, 400, 'OPTION_INVALID'])
  }
  expect((await one.api.rows('?filter=is:replay')).length).toBe(4)
})

test('a replay has the fields that come more than once, their case and the trailers', async () => {
  using app = new RawOrigin()
  await using tunnel = await startTunnel({ port: app.port, inspect: true })
  const api = new InspectorApi(tunnel.client)
  const visitor = await rawDial(tunnel.port)
  const own = 'X-Twice: a\r\nx-twice: b\r\nX-Letter: ß\r\nCOOKIE: a=1\r\nCookie: b=2\r\nTrailer: X-Sum\r\n'
  const asked = `POST /all HTTP/1.1\r\nHost: ${tunnel.host}\r\n${own}Transfer-Encoding: chunked\r\n\r\n`
  await visitor.send(`${asked}3\r\nabc\r\n2\r\nde\r\n0\r\nX-Sum: 5\r\nx-Sum: 6\r\n\r\n`)
  const answered = async (one: Awaited<ReturnType<typeof app.accept>>) => {
    const head = await one.until('\r\n\r\n')
    const rest = await one.until('x-Sum: 6\r\n\r\n')
    await one.send('HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n')
    one.socket.end()
    return [head, rest] as const
  }
  const [first] = await answered(await app.accept())
  const { id } = await api.ended('/all')
  const replaying = api.send('POST', `exchanges/${id}/replay`)
  const [again, body] = await answered(await app.accept())
  expect((await replaying).json.replays[0].verdict).toBe('same')
  expect(first).toContain(own)
  expect(again).toContain(own)
  expect(again).toContain('\r\nTransfer-Encoding: chunked\r\n')
  expect(again).not.toContain('Content-Length')
  expect(body).toBe('5\r\nabcde\r\n0\r\nX-Sum: 5\r\nx-Sum: 6\r\n\r\n')
  const [row] = await api.rows()
  expect((await api.detail(row!.id)).request?.trailers).toEqual([
    { name: 'X-Sum', value: '5' },
    { name: 'x-Sum', value: '6' },
  ])
  visitor.socket.terminate()
})

test('a replay of a tunnel that is gone is refused', async () => {
  await using one = await inspected(() => new Response('hi'))
  const second = await one.tunnel.client.http({ fetch: () => new Response('second'), subdomain: 'second' })
  await (await one.visit('/x', { headers: { host: 'second.localhost' } })).text()
  const { id } = await one.api.ended('tunnel:second')
  await second.close()
  const refused = await one.api.send('POST', `exchanges/${id}/replay`)
  expect([refused.status, refused.json.error.code]).toEqual([409, 'REPLAY_IMPOSSIBLE'])
})

test('pins stay, use at most half, and notes are kept', async () => {
  await using one = await inspected(() => new Response('hi'), { maxExchanges: 4, rate: 0 })
  await (await one.visit('/keep')).text()
  const { id } = await one.api.ended()
  await one.api.send('PUT', `exchanges/${id}/note`, { note: 'the good one' })
  expect((await one.api.send('PUT', `exchanges/${id}/pin`, { isPinned: true })).json.isPinned).toBe(true)
  for (let n = 0; n < 8; n++) await (await one.visit(`/n/${n}`)).text()
  await one.api.ended('/n/7')
  const rows = await one.api.rows()
  expect(rows.map(row => row.path)).toEqual(['/n/7', '/n/6', '/n/5', '/keep'])
  expect(rows[3]).toMatchObject({ note: 'the good one', isPinned: true })
  expect((await one.api.send('PUT', `exchanges/${rows[0]!.id}/pin`, { isPinned: true })).status).toBe(200)
  const refused = await one.api.send('PUT', `exchanges/${rows[1]!.id}/pin`, { isPinned: true })
  expect(refused.json.error.code).toBe('STATE_INVALID')
  expect((await one.api.send('DELETE', 'exchanges')).json).toEqual({ removed: 2 })
  expect((await one.api.rows('?filter=is:pinned')).length).toBe(2)
  expect((await one.api.send('DELETE', 'exchanges?pinned=1')).json).toEqual({ removed: 2 })
  expect(await one.api.rows()).toEqual([])
})

test('memory is bounded', async () => {
  const memory = 1_048_576
  await using one = await inspected(() => new Response('x'.repeat(100_000)), { memory, maxBody: 100_000 })
  for (let n = 0; n < 30; n++) await (await one.visit(`/${n}`)).text()
  await one.api.ended('/29')
  const { used, dropped } = (await one.api.ask('session')).json
  expect(used.memoryBytes).toBeLessThanOrEqual(memory)
  expect(used.exchanges).toBeGreaterThan(5)
  expect(used.exchanges + dropped.exchanges).toBe(30)
})

test('what happens comes as lines, and wait answers with the exchange that ends', async () => {
  await using one = await inspected(() => new Response('hi'))
  const events = await one.api.events('?filter=/seen')
  expect((await events.next()).type).toBe('session')
  const waiting = one.api.send('POST', 'wait', { filter: 'POST /seen' })
  await (await one.visit('/unseen')).text()
  await (await one.visit('/seen', { method: 'POST' })).text()
  let event = await events.next()
  while (event.type !== 'exchange' || event.exchange.state === 'open') event = await events.next()
  expect(event.exchange.path).toBe('/seen')
  expect((await waiting).json.exchange).toMatchObject({ path: '/seen', status: 200 })
  const late = await one.api.send('POST', 'wait', { filter: '/never', timeoutMs: 50 })
  expect([late.status, late.json.error.code]).toEqual([408, 'WAIT_TIMEOUT'])
  events.stop()
})

test('what an origin refuses is a row with its code', async () => {
  await using tunnel = await startTunnel({ port: 1, inspect: true })
  tunnel.client.on('error', () => {})
  const api = new InspectorApi(tunnel.client)
  await (await fetch(`http://127.0.0.1:${tunnel.port}/down`, { headers: { host: tunnel.host } })).text()
  expect(await api.ended('/down')).toMatchObject({
    status: 502,
    code: 'ORIGIN_REFUSED',
    state: 'failed',
    isRefused: true,
  })
})

test('the document describes every operation, and no other', async () => {
  await using one = await inspected(() => new Response('hi'))
  const { paths } = (await one.api.ask('openapi.json')).json
  const described = Object.entries<object>(paths).flatMap(([path, operations]) =>
    Object.keys(operations).map(method => `${method.toUpperCase()} ${path}`),
  )
  const { InspectApi } = await import('../../../src/parts/inspect/api.ts')
  // Only its list is looked at.
  const { operations } = new InspectApi(undefined as never, '', () => 0)
  expect(described.sort()).toEqual(Object.keys(operations).sort())
})

test('a file with the URL and the token is there while the inspector is, for this user only', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'localtunnels-run-'))
  const { XDG_RUNTIME_DIR } = process.env
  process.env.XDG_RUNTIME_DIR = folder
  try {
    const { findInspectors } = await import('../../../src/parts/inspect/discovery.ts')
    {
      await using one = await inspected(() => new Response('hi'))
      const [name] = await readdir(join(folder, 'localtunnels'))
      const path = join(folder, 'localtunnels', name!)
      expect((await stat(path)).mode & 0o777).toBe(0o600)
      expect(await Bun.file(path).json()).toEqual({ url: one.api.base, token: one.api.token })
      // Of a process that is gone, and of one that would send the token elsewhere.
      await Bun.write(
        join(folder, 'localtunnels/999999999.json'),
        JSON.stringify({ url: one.api.base, token: 'x' }),
      )
      await Bun.write(
        join(folder, 'localtunnels/1.json'),
        JSON.stringify({ url: 'http://192.0.2.1:80', token: 'x' }),
      )
      expect(findInspectors(process.env).map(found => found.url)).toEqual([one.api.base])
    }
    expect(findInspectors(process.env)).toEqual([])
    expect(await readdir(join(folder, 'localtunnels'))).toEqual(['1.json'])
  } finally {
    if (XDG_RUNTIME_DIR === undefined) delete process.env.XDG_RUNTIME_DIR
    else process.env.XDG_RUNTIME_DIR = XDG_RUNTIME_DIR
    await rm(folder, { recursive: true })
  }
})

test('secrets of a query are masked like those of a form: rows, heads, exports, filters and comparisons', async () => {
  const secret = 'QQQ+%C3%BC'
  await using one = await inspected(
    request =>
      new Response(JSON.stringify({ token: new URL(request.url).searchParams.get('Token') }), {
        headers: {
          'content-type': 'application/json',
          location: `/done?code=${secret}#access_token=${secret}`,
        },
      }),
    { secrets: ['token', 'code', 'Access_Token'] },
  )
  const path = `/in?a=1&Token=${secret}&to=/x?token=${secret}&b=2`
  await (
    await one.visit(path, { headers: { referer: `https://a.example/?code=${secret}` }, redirect: 'manual' })
  ).text()
  const { id, path: shown } = await one.api.ended()
  expect(shown).toBe('/in?a=1&Token=••••••&to=/x?token=••••••&b=2')
  const formats = ['curl', 'fetch', 'har', 'http', 'bun-test', 'vitest', 'node-test']
  const paths = ['', ...formats.map(format => `/as/${format}`)].map(rest => `exchanges/${id}${rest}`)
  for (const asked of [...paths, 'exchanges', 'exchanges.har', `diff?a=${id}&b=${id}`]) {
    const { text } = await one.api.ask(asked)
    expect([asked, text.includes('QQQ')]).toEqual([asked, false])
    if (asked.startsWith('exchanges')) expect(text).toContain('Token=••••••')
  }
  expect((await one.api.ask(`exchanges/${id}/as/curl`)).headers.get('x-secrets-left-out')).toBe('1')
  expect(await one.api.rows('?filter=path:QQQ')).toEqual([])
  for (const asked of paths) expect((await one.api.ask(`${asked}?reveal=1`)).text).toContain('QQQ')

  // A mask that is sent back is what was captured, also where the rest is edited.
  const { json: again } = await one.api.send('POST', `exchanges/${id}/replay`, {
    edit: { path: shown.replace('b=2', 'b=3') },
  })
  const replayed = again.replays[0].exchange.id
  expect((await one.api.detail(replayed, '?reveal=1')).path).toBe(path.replace('b=2', 'b=3'))
  expect((await one.api.ask(`exchanges/${replayed}/response.body?reveal=1`)).text).toBe('{"token":"QQQ ü"}')
})
