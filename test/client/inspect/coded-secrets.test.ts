// Secrets in bodies that have a content coding: no exit of the inspector shows them, neither as text nor to whoever undoes the coding.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import {
  brotliCompressSync,
  deflateRawSync,
  deflateSync,
  gunzipSync,
  gzipSync,
  zstdCompressSync,
} from 'node:zlib'
import { MASK } from '../../../src/exchange.ts'
import { post } from '../../support/exchange.ts'
import { InspectorApi } from '../../support/inspector.ts'
import { rawDial } from '../../support/raw.ts'
import { type LiveTunnel, startTunnel } from '../../support/tunnel.ts'

const SECRET = 'hunter2-correct-horse'
const TEXT = JSON.stringify({ user: 'anna', password: SECRET, more: 'x'.repeat(2_000) })
const FORMATS = ['curl', 'fetch', 'har', 'http', 'bun-test', 'vitest', 'node-test']

interface Coded {
  readonly lines: string
  readonly body: Uint8Array
}
const coded = (encoding: string, body: Uint8Array, type = 'application/json'): Coded => ({
  lines: `Content-Type: ${type}\r\nContent-Encoding: ${encoding}\r\n`,
  body,
})
const form = (boundary: string) =>
  `--${boundary}\r\nContent-Disposition: form-data; name=password\r\n\r\n${SECRET}\r\n--${boundary}--\r\n`

const DECODED: Readonly<Record<string, Coded>> = {
  gzip: coded('gzip', gzipSync(TEXT)),
  'GZip in two members': coded(
    'X-GZip',
    Buffer.concat([gzipSync(TEXT.slice(0, 9)), gzipSync(TEXT.slice(9))]),
  ),
  br: coded('br', brotliCompressSync(TEXT)),
  deflate: coded('deflate', deflateSync(TEXT)),
  'deflate without its frame': coded('deflate', deflateRawSync(TEXT)),
  zstd: coded('zstd', zstdCompressSync(TEXT)),
  'two codings': coded('gzip, br', brotliCompressSync(gzipSync(TEXT))),
  'two codings in two lines': coded('gzip\r\nContent-Encoding: br', brotliCompressSync(gzipSync(TEXT))),
  identity: coded('identity', Buffer.from(TEXT)),
  'a form': coded('gzip', gzipSync(`a=1&password=${SECRET}`), 'application/x-www-form-urlencoded'),
  'a form of parts': coded('gzip', gzipSync(form('xx')), 'multipart/form-data; boundary=xx'),
  'lines of JSON': coded('gzip', gzipSync(`${TEXT}\n${TEXT}\n`), 'application/x-ndjson'),
}
const LEFT_OUT: Readonly<Record<string, Coded>> = {
  'an unknown coding': coded('rot13', Buffer.from(TEXT)),
  'five codings': coded('identity, identity, identity, identity, gzip', gzipSync(TEXT)),
  'the wrong coding': coded('br', gzipSync(TEXT)),
  'a zstd that ends early': coded('zstd', zstdCompressSync(TEXT).subarray(0, -8)),
  'UTF-16': coded('gzip', gzipSync(Buffer.from(TEXT, 'utf16le')), 'application/json; charset=utf-16'),
}

let app: Bun.Server<undefined>
let tunnel: LiveTunnel
let api: InspectorApi
let answer: Coded = DECODED.gzip!

beforeAll(async () => {
  app = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      await request.bytes()
      const lines = answer.lines.trim().split('\r\n')
      const headers = lines.map((line): [string, string] => [line.split(': ')[0]!, line.split(': ')[1]!])
      return new Response(new Uint8Array(answer.body), { headers })
    },
  })
  tunnel = await startTunnel({ port: app.port ?? 0, inspect: { maxBody: 5_000 } })
  api = new InspectorApi(tunnel.client)
})
afterAll(async () => {
  await tunnel[Symbol.asyncDispose]()
  await app.stop(true)
})

/** Sends it, and gets it back as the response. */
async function captured(one: Coded): Promise<string> {
  answer = one
  const before = (await api.rows('?limit=1'))[0]?.id ?? '0'
  const visitor = await rawDial(tunnel.port)
  const head = post(tunnel.host, '', '/login', one.lines).replace('Length: 0', `Length: ${one.body.length}`)
  await visitor.send(Buffer.concat([Buffer.from(head), one.body]))
  const { id } = await api.ended('', before)
  visitor.socket.terminate()
  return id
}

/** Everything that leaves the inspector of two exchanges. */
async function exits(id: string): Promise<Readonly<Record<string, Uint8Array>>> {
  const bodies = ['request', 'response'].flatMap(side => [`${side}.body`, `${side}.body?decoded=1`])
  const paths = [
    ...[...FORMATS.map(format => `as/${format}`), ...bodies, ''].map(path => `exchanges/${id}/${path}`),
    'exchanges.har',
    `diff?a=${id}&b=1`,
    `diff?a=1&b=${id}`,
  ].map(path => path.replace(/\/$/, ''))
  return Object.fromEntries(
    await Promise.all(paths.map(async path => [path, await api.bytes(path)] as const)),
  )
}

/** Whether somebody finds the secret in it: as it is, in base64, or behind a coding. */
function hasSecret(bytes: Uint8Array): boolean {
  const text = Buffer.from(bytes).toString('latin1')
  const pieces = text.match(/[A-Za-z0-9+/=]{40,}/g) ?? []
  const all = [bytes, ...pieces.map(piece => Buffer.from(piece, 'base64'))]
  const decoders = [
    (one: Uint8Array) => one,
    (one: Uint8Array) => gunzipSync(one),
    (one: Uint8Array) => Bun.zstdDecompressSync(one),
    (one: Uint8Array) => Buffer.from(Buffer.from(one).toString('utf16le')),
  ]
  return all.some(one =>
    decoders.some(decoder => {
      try {
        return Buffer.from(decoder(one)).includes(SECRET)
      } catch {
        return false
      }
    }),
  )
}

test.each(Object.keys(DECODED))('%s: masked after it is decoded, at every exit', async name => {
  const id = await captured(DECODED[name]!)
  for (const [path, bytes] of Object.entries(await exits(id)))
    expect([path, hasSecret(bytes)]).toEqual([path, false])
  const masked = Buffer.from(await api.bytes(`exchanges/${id}/request.body`)).toString()
  expect(masked).toContain(MASK)
  expect((await api.ask(`exchanges/${id}/as/http`)).text).toContain(masked)
  for (const format of FORMATS.filter(one => one !== 'har')) {
    const { text, headers } = await api.ask(`exchanges/${id}/as/${format}`)
    expect(text).not.toMatch(/content-encoding/i)
    expect(headers.get('x-secrets-left-out')).toBe('1')
  }
  // Whoever asks for them gets the bytes as they came.
  const { body } = DECODED[name]!
  expect(Buffer.from(await api.bytes(`exchanges/${id}/request.body?reveal=1`)).equals(body)).toBe(true)
  expect((await api.rows(`?filter=body:${SECRET}`)).length).toBe(0)
})

test.each(Object.keys(LEFT_OUT))('%s: the body is left out, and its place says so', async name => {
  const id = await captured(LEFT_OUT[name]!)
  for (const [path, bytes] of Object.entries(await exits(id)))
    expect([path, hasSecret(bytes)]).toEqual([path, false])
  expect((await api.bytes(`exchanges/${id}/response.body?decoded=1`)).length).toBe(0)
  expect((await api.ask(`exchanges/${id}/as/curl`)).text).toContain('# the body is left out: ')
  const { log } = (await api.ask(`exchanges/${id}/as/har`)).json
  expect(log.entries[0].response.content).toMatchObject({
    text: '',
    comment: expect.stringContaining('secrets'),
  })
  const { body } = LEFT_OUT[name]!
  expect(Buffer.from(await api.bytes(`exchanges/${id}/request.body?reveal=1`)).equals(body)).toBe(true)
})

test('a body that is cut shows what is left of it, without its secrets', async () => {
  const noise = Array.from({ length: 2_000 }, (_, index) => Bun.hash(`${index}`).toString(36)).join(' ')
  const id = await captured(coded('gzip', gzipSync(JSON.stringify({ password: SECRET, noise }))))
  expect((await api.detail(id)).request?.body).toMatchObject({ isComplete: true, keptBytes: 5_000 })
  expect((await api.ask(`exchanges/${id}/as/curl`)).text).toContain(
    '# the body is left out: unexpected end of file',
  )
  for (const [path, bytes] of Object.entries(await exits(id)))
    expect([path, hasSecret(bytes)]).toEqual([path, false])
  expect((await api.ask(`exchanges/${id}/request.body?decoded=1`)).text).toContain(
    `{"password":"${MASK}","noise"`,
  )
})

test('a body without secrets is copied in its coding, byte for byte', async () => {
  const body = gzipSync('{"user":"anna"}')
  const id = await captured(coded('gzip', body))
  expect(Buffer.from(await api.bytes(`exchanges/${id}/request.body`)).equals(body)).toBe(true)
  const { text, headers } = await api.ask(`exchanges/${id}/as/curl`)
  expect(text).toMatch(/content-encoding: gzip/i)
  expect(headers.has('x-secrets-left-out')).toBe(false)
})

test('text that is edited replaces a body with a coding: the app gets it plain, with the captured secret', async () => {
  const id = await captured(DECODED.gzip!)
  const text = (await api.ask(`exchanges/${id}/request.body?decoded=1`)).text
  const { json } = await api.send('POST', `exchanges/${id}/replay`, {
    edit: { body: text.replace('anna', 'bob') },
  })
  const again = json.replays[0].exchange.id
  expect((await api.detail(again)).request?.body.encoding).toBe('')
  expect((await api.ask(`exchanges/${again}/request.body?reveal=1`)).text).toBe(TEXT.replace('anna', 'bob'))
})
