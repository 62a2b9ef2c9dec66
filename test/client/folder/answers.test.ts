// What a served folder answers: the table of docs/apps.md, conditions, ranges and content types, in all three ways.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { stat, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { get, headerOf, type Message, readAnswer, statusOf } from '../../support/exchange.ts'
import { FUZZ, Random } from '../../support/random.ts'
import { type RawConnection, rawDial } from '../../support/raw.ts'
import { Site, type SiteTunnel, siteTunnel, WAYS } from '../../support/site.ts'

const ALPHABET = 'abcdefghijklmnopqrstuvwxyz'
const BIG = new Random(7).bytes(3_000_000)
const sha256 = (data: string | Uint8Array) =>
  createHash('sha256')
    .update(typeof data === 'string' ? Buffer.from(data, 'latin1') : data)
    .digest('hex')

const docs = await Bun.file(join(import.meta.dir, '../../../docs/apps.md')).text()
const rows = [...docs.matchAll(/^\| `([A-Z]+ \/[^`]*)` \|(.*?)\| (\d{3}) \|(.*?)\|$/gm)].map(
  ([, request = '', line = '', status, answer = '']) => {
    const [method = '', path = ''] = request.split(' ')
    return {
      method,
      path,
      line: line.replaceAll('`', '').trim(),
      status,
      answer: answer.replaceAll('`', '').trim(),
    }
  },
)

let site: Site
beforeAll(async () => {
  site = await Site.of({
    'index.html': '<h1>',
    'notes.txt': ALPHABET,
    'guide/index.html': 'guide\n',
    'empty/': '',
    '.env': 'secret',
    '.well-known/security.txt': 'mailto:',
    'big.bin': BIG,
    'nothing.txt': '',
  })
})
afterAll(() => site[Symbol.asyncDispose]())

describe.each(WAYS)('%s', way => {
  let tunnel: SiteTunnel
  let visitor: RawConnection
  beforeAll(async () => {
    tunnel = await siteTunnel(way, site.folder)
    visitor = await rawDial(tunnel.port)
  })
  afterAll(async () => {
    visitor.socket.terminate()
    await tunnel[Symbol.asyncDispose]()
  })

  /** One request on a connection that all of them share: an answer of a wrong length would spoil the next. */
  async function ask(
    path: string,
    lines = '',
    method = 'GET',
  ): Promise<Message & { readonly status: number }> {
    await visitor.send(get(tunnel.host, path, lines).replace('GET', method))
    const answer = await readAnswer(visitor, method)
    return { ...answer, status: statusOf(answer.head) }
  }

  test('the table of the documentation', async () => {
    expect(rows.length).toBeGreaterThan(15)
    for (const { method, path, line, status, answer } of rows) {
      const given = await ask(path, line && `${line}\r\n`, method)
      const [name = '', value = ''] = answer.split(': ')
      const found = name && `${name}: ${headerOf(given.head, name)}`
      expect({ request: `${method} ${path} ${line}`, status: String(given.status), found }).toEqual({
        request: `${method} ${path} ${line}`,
        status: status ?? '',
        found: name && `${name}: ${value}`,
      })
    }
  })

  test('a big file comes whole, and each answer has a Date', async () => {
    const answer = await ask('/big.bin')
    expect(answer.payload.length).toBe(BIG.length)
    expect(sha256(answer.payload)).toBe(sha256(BIG))
    expect(headerOf(answer.head, 'content-length')).toBe(String(BIG.length))
    expect(Math.abs(Date.parse(headerOf(answer.head, 'date') ?? '') - Date.now())).toBeLessThan(60_000)
  })

  test('an empty file is an answer of no bytes, whatever range is asked for', async () => {
    for (const lines of ['', 'range: bytes=0-\r\n', 'range: bytes=-1\r\n']) {
      const { status, head } = await ask('/nothing.txt', lines)
      expect([status, headerOf(head, 'content-length')]).toEqual([200, '0'])
    }
  })

  test('HEAD says what GET says, of a page, a redirect and a file that is not there', async () => {
    for (const path of ['/', '/guide', '/nix', '/big.bin']) {
      const plain = (head: string) => head.replace(/^date:.*\r\n/im, '')
      expect(plain((await ask(path, '', 'HEAD')).head)).toBe(plain((await ask(path)).head))
    }
    // A range means nothing to HEAD.
    expect((await ask('/notes.txt', 'range: bytes=0-1\r\n', 'HEAD')).status).toBe(200)
  })

  test('what the visitor has already is 304, by tag and by date', async () => {
    const { head } = await ask('/notes.txt')
    const etag = headerOf(head, 'etag') ?? ''
    const modified = headerOf(head, 'last-modified') ?? ''
    expect(etag).toMatch(/^"[0-9a-z-]+"$/)
    const path = join(site.folder, 'notes.txt')
    expect(Date.parse(modified)).toBe(Math.floor((await stat(path)).mtimeMs / 1_000) * 1_000)
    const before = new Date(Date.parse(modified) - 1_000).toUTCString()
    const cases: readonly (readonly [string, number])[] = [
      [`if-none-match: ${etag}`, 304],
      [`if-none-match: "x", W/${etag}`, 304],
      ['if-none-match: "x"', 200],
      [`if-modified-since: ${modified}`, 304],
      [`if-modified-since: ${before}`, 200],
      ['if-modified-since: yesterday', 200],
      // The tag decides where both are there.
      [`if-none-match: "x"\r\nif-modified-since: ${modified}`, 200],
      [`if-none-match: ${etag}\r\nif-modified-since: ${before}`, 304],
      [`if-match: ${etag}`, 200],
      ['if-match: *', 200],
      ['if-match: "x"', 412],
      [`if-match: W/${etag}`, 412],
      [`if-unmodified-since: ${modified}`, 200],
      [`if-unmodified-since: ${before}`, 412],
    ]
    for (const [line, status] of cases) {
      const answer = await ask('/notes.txt', `${line}\r\n`)
      expect([line, answer.status]).toEqual([line, status])
      if (status === 304) expect(headerOf(answer.head, 'etag')).toBe(etag)
    }
  })

  test('a changed file has another tag, also when its size and its date are as before', async () => {
    await site.write({ 'page.txt': 'one' })
    const path = join(site.folder, 'page.txt')
    const date = new Date('2026-01-01T00:00:00Z')
    await utimes(path, date, date)
    const first = headerOf((await ask('/page.txt')).head, 'etag')
    await site.write({ 'page.txt': 'two' })
    await utimes(path, date, date)
    const second = await ask('/page.txt', `if-none-match: ${first}\r\n`)
    expect([second.status, second.payload]).toEqual([200, 'two'])
  })

  test('If-Range: a part of the same file, all of another', async () => {
    const path = join(site.folder, 'notes.txt')
    await utimes(path, new Date('2026-01-01T00:00:00Z'), new Date('2026-01-01T00:00:00Z'))
    const { head } = await ask('/notes.txt')
    const cases: readonly (readonly [string | undefined, number])[] = [
      [headerOf(head, 'etag'), 206],
      [`W/${headerOf(head, 'etag')}`, 200],
      ['"x"', 200],
      ['Thu, 01 Jan 2026 00:00:00 GMT', 206],
      ['Fri, 02 Jan 2026 00:00:00 GMT', 200],
    ]
    for (const [value, status] of cases) {
      const answer = await ask('/notes.txt', `range: bytes=1-2\r\nif-range: ${value}\r\n`)
      expect([value, answer.status]).toEqual([value, status])
      expect(answer.payload).toBe(status === 206 ? 'bc' : ALPHABET)
    }
  })

  test('If-Range by the date of a file that may change within the same second gets all of it', async () => {
    await site.write({ 'soon.txt': ALPHABET })
    const path = join(site.folder, 'soon.txt')
    const soon = new Date(Date.now() + 100_000)
    await utimes(path, soon, soon)
    const { head } = await ask('/soon.txt')
    const modified = headerOf(head, 'last-modified')
    // Nothing was modified in the future.
    expect(Date.parse(modified ?? '')).toBeLessThanOrEqual(Date.parse(headerOf(head, 'date') ?? ''))
    expect((await ask('/soon.txt', `range: bytes=1-2\r\nif-range: ${modified}\r\n`)).status).toBe(200)
  })

  test('ranges are what a naive reading of the RFC says', async () => {
    const random = new Random(26)
    const number = () => (random.chance(0.2) ? '' : String(random.below(random.chance(0.8) ? 28 : 1e15)))
    for (let round = 0; round < 60 * FUZZ; round++) {
      const spec = `bytes=${number()}-${number()}`
      const { status, head, payload } = await ask('/notes.txt', `range: ${spec}\r\n`)
      const wanted = naiveRange(spec)
      expect({ spec, status, payload, of: headerOf(head, 'content-range') }).toEqual({ spec, ...wanted })
    }
    for (const spec of [
      'bytes',
      'bytes=',
      'bytes=-',
      'bytes=a-b',
      'bytes=2-1',
      'lines=1-2',
      'bytes=1-2-3',
      'bytes=1-,',
    ]) {
      expect([spec, (await ask('/notes.txt', `range: ${spec}\r\n`)).status]).toEqual([spec, 200])
    }
    const two = await ask('/notes.txt', 'range: bytes=1-2\r\nrange: bytes=4-5\r\n')
    expect([two.status, two.payload]).toEqual([200, ALPHABET])
  })

  test('content types go by the ending, and by nothing that only looks like one', async () => {
    const types: Readonly<Record<string, string>> = {
      'a.html': 'text/html; charset=utf-8',
      'a.HTML': 'text/html; charset=utf-8',
      'a.css': 'text/css; charset=utf-8',
      'a.min.js': 'text/javascript; charset=utf-8',
      'a.mjs': 'text/javascript; charset=utf-8',
      'a.json': 'application/json',
      'a.svg': 'image/svg+xml',
      'a.wasm': 'application/wasm',
      'a.woff2': 'font/woff2',
      'a.webmanifest': 'application/manifest+json',
      html: 'application/octet-stream',
      'a.constructor': 'application/octet-stream',
      'a.__proto__': 'application/octet-stream',
      'a.': 'application/octet-stream',
      LICENSE: 'application/octet-stream',
    }
    for (const [name, type] of Object.entries(types)) {
      await site.write({ [`types/${name}`]: 'x' })
      const { head } = await ask(`/types/${name}`)
      expect(`${name} ${headerOf(head, 'content-type')}`).toBe(`${name} ${type}`)
    }
  })

  test('a request with a body is refused, and the connection goes on', async () => {
    for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH']) {
      const answer = await ask('/', 'content-length: 0\r\n', method)
      expect([method, answer.status, headerOf(answer.head, 'allow')]).toEqual([method, 405, 'GET, HEAD'])
    }
    await visitor.send(`POST / HTTP/1.1\r\nHost: ${tunnel.host}\r\nContent-Length: 5\r\n\r\nhello`)
    expect(statusOf((await readAnswer(visitor)).head)).toBe(405)
    expect((await ask('/')).payload).toBe('<h1>')
  })
})

/** The 26 letters, as RFC 9110 section 14.1.2 has it, letter by letter. */
function naiveRange(spec: string): { status: number; payload: string; of: string | undefined } {
  const [first = '', last = ''] = spec.slice('bytes='.length).split('-')
  const isWhole =
    (first === '' && last === '') || (first !== '' && last !== '' && BigInt(last) < BigInt(first))
  if (isWhole) return { status: 200, payload: ALPHABET, of: undefined }
  const isWanted = (_: string, at: number) => {
    if (first === '') return at >= 26 - Number(last)
    return at >= Number(first) && (last === '' || at <= Number(last))
  }
  const payload = ALPHABET.split('').filter(isWanted).join('')
  if (payload === '') return { status: 416, payload, of: 'bytes */26' }
  const start = ALPHABET.indexOf(payload)
  return { status: 206, payload, of: `bytes ${start}-${start + payload.length - 1}/26` }
}
