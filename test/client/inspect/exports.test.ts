// What is copied from the inspector works elsewhere: the command, the call and the test send the same request, and the test passes.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { join } from 'node:path'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { InspectorApi } from '../../support/inspector.ts'
import { testWith } from '../../support/needs.ts'
import { folder, run } from '../../support/programs.ts'
import { RawOrigin, rawDial } from '../../support/raw.ts'
import { type LiveTunnel, startTunnel } from '../../support/tunnel.ts'

interface Seen {
  readonly method: string
  readonly url: string
  /** Those that tell requests apart. */
  readonly headers: readonly string[]
  readonly body: string
}

const BINARY = Buffer.from(Array.from({ length: 300 }, (_, index) => index & 255))

/** Head lines behind the Host, and a body. */
const REQUESTS: readonly {
  readonly line: string
  readonly lines?: readonly string[]
  readonly body?: Buffer
  readonly isChunked?: true
}[] = [
  { line: 'GET /plain?a=1&b=%20%27x%27' },
  { line: 'GET /json', lines: ['X-Own: it\'s "quoted" $HOME `x` \\', 'x-empty:'] },
  {
    line: 'POST /text',
    lines: ['Content-Type: text/plain; charset=utf-8'],
    body: Buffer.from(`Grüße, it's "here"\r\n$HOME \`x\` \\n ` + '${1} </script>'),
  },
  { line: 'PUT /binary', lines: ['Content-Type: application/octet-stream'], body: BINARY },
  { line: 'POST /chunked', body: Buffer.from('in two pieces'), isChunked: true },
  { line: 'PATCH /at', body: Buffer.from('@/etc/hostname') },
  { line: 'DELETE /gone' },
  { line: 'HEAD /json' },
  { line: 'GET /gzip', lines: ['Accept-Encoding: gzip'] },
  { line: 'GET /br', lines: ['Accept-Encoding: br'] },
  { line: 'GET /moved' },
  { line: 'GET /proto' },
  { line: 'GET /bytes' },
  { line: 'GET /broken' },
]

let app: Server
let appUrl = ''
let tunnel: LiveTunnel
let api: InspectorApi
let isChanged = false
const seen: Seen[] = []

beforeAll(async () => {
  app = createServer((request, answer) => {
    const pieces: Buffer[] = []
    request.on('data', (piece: Buffer) => pieces.push(piece))
    request.on('end', () => {
      const own = Object.entries(request.headers).filter(([name]) =>
        /^x-(?:own|empty)$|^content-type$/.test(name),
      )
      seen.push({
        method: request.method ?? '',
        url: request.url ?? '',
        headers: own.map(([name, value]) => `${name}: ${String(value)}`).sort(),
        body: Buffer.concat(pieces).toString('latin1'),
      })
      const json = { 'content-type': 'application/json' }
      const path = request.url?.split('?', 1)[0]
      if (path === '/json') answer.writeHead(200, json).end('{"ok":true,"n":[1,null,"ä"]}')
      else if (path === '/proto') answer.writeHead(200, json).end('{"__proto__":{"x":1}}')
      else if (path === '/gzip') answer.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync('zipped'))
      else if (path === '/br')
        answer.writeHead(200, { 'content-encoding': 'br' }).end(brotliCompressSync('small'))
      else if (path === '/moved') answer.writeHead(302, { location: '/json' }).end()
      else if (path === '/gone') answer.writeHead(204).end()
      else if (path === '/bytes') answer.writeHead(200).end(BINARY)
      else if (path === '/broken') answer.writeHead(500, { 'content-type': 'text/plain' }).end('oops')
      else answer.end(isChanged ? 'other words' : 'the answer')
    })
  })
  app.listen(0, '127.0.0.1')
  await once(app, 'listening')
  // A TCP port.
  const { port } = app.address() as AddressInfo
  appUrl = `http://127.0.0.1:${port}`
  tunnel = await startTunnel({ port, host: '127.0.0.1', inspect: true })
  api = new InspectorApi(tunnel.client)
  for (const { line, lines = [], body, isChunked } of REQUESTS) {
    const visitor = await rawDial(tunnel.port)
    const length =
      body === undefined ? [] : [isChunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${body.length}`]
    const head = [`${line} HTTP/1.1`, `Host: ${tunnel.host}`, ...lines, ...length, 'Connection: close']
    await visitor.send(`${head.join('\r\n')}\r\n\r\n`)
    if (body !== undefined)
      await visitor.send(
        isChunked
          ? `3\r\n${body.toString('latin1', 0, 3)}\r\na\r\n${body.toString('latin1', 3)}\r\n0\r\n\r\n`
          : body,
      )
    await visitor.end()
    visitor.socket.terminate()
  }
})
afterAll(async () => {
  await tunnel[Symbol.asyncDispose]()
  app.closeAllConnections()
  app.close()
})

/** All of them in one format, the oldest first. */
async function texts(format: string): Promise<readonly string[]> {
  const rows = (await api.rows()).toReversed()
  expect(rows.map(({ method, path }) => `${method} ${path}`)).toEqual(REQUESTS.map(({ line }) => line))
  return Promise.all(rows.map(async ({ id }) => (await api.ask(`exchanges/${id}/as/${format}`)).text))
}

/** What the app saw of the visitors, and what it sees while `work` is done. */
async function again(work: () => Promise<void>): Promise<readonly [readonly Seen[], readonly Seen[]]> {
  const first = seen.slice(0, REQUESTS.length)
  seen.length = 0
  await work()
  const second = seen.splice(0)
  seen.push(...first)
  return [first, second]
}

testWith(['curl', 'sh'], 'as curl', async () => {
  const [first, second] = await again(async () => {
    for (const text of await texts('curl')) {
      const { code, err } = await run(['sh', '-c', text.replace(/^(.*)curl /m, '$1curl -s -o /dev/null ')])
      expect([code, err]).toEqual([0, ''])
    }
  })
  expect(second).toEqual(first)
})

test('as fetch', async () => {
  await using home = await folder('fetch')
  const [first, second] = await again(async () => {
    const calls = (await texts('fetch')).map(text => `{\n${text}await answer.bytes()\n}`)
    await Bun.write(join(home.path, 'calls.ts'), calls.join('\n'))
    const { code, err } = await run(['bun', join(home.path, 'calls.ts')])
    expect([code, err]).toEqual([0, ''])
  })
  expect(second).toEqual(first)
})

test('as a test that runs on its own and passes; and fails when the app is another one', async () => {
  await using home = await folder('tests')
  const runAll = () => run(['bun', 'test', '--timeout', '8000', home.path])
  const [first, second] = await again(async () => {
    for (const [index, text] of (await texts('bun-test')).entries())
      await Bun.write(join(home.path, `${String(index).padStart(2, '0')}.test.ts`), text)
    const { code, err } = await runAll()
    expect(err).toContain(` ${REQUESTS.length} pass\n 0 fail\n`)
    expect(code).toBe(0)
  })
  // Files run in the order of the folder.
  const inOrder = (all: readonly Seen[]) => all.map(one => JSON.stringify(one)).toSorted()
  expect(inOrder(second)).toEqual(inOrder(first))
  isChanged = true
  const { code, err } = await runAll()
  isChanged = false
  expect(code).toBe(1)
  // Of those whose answer is another one.
  expect(err).toContain(` ${REQUESTS.length - 5} pass\n 5 fail\n`)
})

test('as raw HTTP: byte for byte', async () => {
  const rows = (await api.rows()).toReversed()
  const [first, second] = await again(async () => {
    for (const { id } of rows) {
      const socket = connect({ port: Number(new URL(appUrl).port), host: '127.0.0.1' })
      socket.end(await api.bytes(`exchanges/${id}/as/http`))
      await once(socket.resume(), 'close')
    }
  })
  expect(second).toEqual(first)
})

test('as HAR, which other tools read', async () => {
  const entries = (await texts('har')).map(text => {
    const { log } = JSON.parse(text)
    expect([log.version, log.creator.name, log.entries.length]).toEqual(['1.2', 'localtunnels', 1])
    return log.entries[0]
  })
  for (const [index, { request, response, timings, time, startedDateTime }] of entries.entries()) {
    const { line, body } = REQUESTS[index]!
    expect(`${request.method} ${request.url}`).toBe(line.replace(' ', ` ${appUrl}`))
    const { text = '', encoding } = request.postData ?? {}
    expect(Buffer.from(text, encoding ?? 'utf8')).toEqual(body ?? Buffer.alloc(0))
    expect(Date.parse(startedDateTime)).toBeGreaterThan(0)
    for (const ms of [time, timings.send, timings.wait, timings.receive]) expect(ms).toBeGreaterThanOrEqual(0)
    expect(response.status).toBeGreaterThanOrEqual(200)
  }
  const content = (path: string) =>
    entries.find(({ request }) => request.url.endsWith(path))?.response.content
  expect(content('/gzip').text).toBe('zipped')
  expect(Buffer.from(content('/bytes').text, content('/bytes').encoding)).toEqual(BINARY)
})

test('what has no answer that a test could expect is no test', async () => {
  using origin = new RawOrigin()
  await using one = await startTunnel({ port: origin.port, inspect: true })
  one.client.on('error', () => {})
  const own = new InspectorApi(one.client)
  const codeOf = async (path: string) => {
    const { id } = await own.ended(path)
    const { status, json } = await own.ask(`exchanges/${id}/as/bun-test`)
    return [status, json?.error.code]
  }
  const chatting = await rawDial(one.port)
  const upgrade = 'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n'
  const key = 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n'
  await chatting.send(`GET /chat HTTP/1.1\r\nHost: ${one.host}\r\n${upgrade}${key}\r\n`)
  const chat = await origin.accept()
  await chat.until('\r\n\r\n')
  const accept = 'Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo='
  await chat.send(`HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${accept}\r\n\r\n`)
  await chatting.until('\r\n\r\n')
  chat.socket.end()
  chatting.socket.end()
  expect(await codeOf('/chat')).toEqual([409, 'REPLAY_IMPOSSIBLE'])
  const visitor = await rawDial(one.port)
  await visitor.send(`POST /cut HTTP/1.1\r\nHost: ${one.host}\r\nContent-Length: 0\r\n\r\n`)
  const cut = await origin.accept()
  await cut.until('\r\n\r\n')
  cut.socket.terminate()
  expect(await codeOf('/cut')).toEqual([409, 'REPLAY_IMPOSSIBLE'])
  visitor.socket.terminate()
})
