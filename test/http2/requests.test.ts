// Requests of HTTP/2 as text of HTTP/1.1: what each becomes, what is malformed, random ones against a plain reading of RFC 9113, and
// the way back into a field block.

import { describe, expect, test } from 'bun:test'
import { parseRequestHead, RequestHead } from '../../src/http/head.ts'
import { FieldList } from '../../src/http2/field-list.ts'
import { encodeRequestHead, maxHeadBlockBytes } from '../../src/http2/head-block.ts'
import { HpackEncoder } from '../../src/http2/hpack-encoder.ts'
import { maxTextBytes } from '../../src/http2/message-fields.ts'
import { writeRequestHead } from '../../src/http2/request-text.ts'
import { fieldsOf, linesOf, listOf } from '../support/h2-fields.ts'
import type { NaiveField } from '../support/naive-hpack.ts'
import { countInputs, FUZZ, Random } from '../support/random.ts'

const KEY = 'dGhlIHNhbXBsZSBub25jZQ=='
const limits = { maxHeadBytes: 65_536, maxHeaderCount: 200, maxTargetBytes: 8192 }

interface Terms {
  readonly isLast?: boolean
  readonly key?: string
}

/** The text of a request, or why there is none. */
function textOf(fields: readonly NaiveField[], { isLast = true, key = '' }: Terms = {}): string {
  const list = listOf(fields)
  const into = new Uint8Array(5 + maxTextBytes(list) + key.length)
  const end = writeRequestHead(list, isLast, key, into, 5)
  if (end < 0) return `malformed: ${list.problem}`
  expect(list.problem).toBe('')
  return Buffer.from(into.subarray(5, end)).toString('latin1')
}

/** What the parser says of a text. */
function parse(text: string): RequestHead | string {
  const head = new RequestHead()
  const bytes = Buffer.from(text, 'latin1')
  const end = parseRequestHead(head, bytes, 0, bytes.length, limits)
  if (end < 0) return head.refusal
  expect(end).toBe(bytes.length)
  return head
}

const GET: readonly NaiveField[] = [
  [':method', 'GET'],
  [':scheme', 'https'],
  [':path', '/a'],
  [':authority', 'a.example'],
]
const POST = GET.with(0, [':method', 'POST'])
const without = (name: string, fields = GET) => fields.filter(([other]) => other !== name)
const CONNECT: readonly NaiveField[] = [
  [':method', 'CONNECT'],
  [':protocol', 'websocket'],
  ...GET.slice(1),
  ['sec-websocket-version', '13'],
]
const head = (...lines: string[]) => `${lines.join('\r\n')}\r\n\r\n`

describe('a request becomes', () => {
  for (const [what, fields, terms, expected] of [
    ['its line and its Host', GET, {}, head('GET /a HTTP/1.1', 'Host: a.example')],
    [
      'lines in their order, repeats and empty values too',
      [...GET, ['x', '1'], ['accept', ''], ['x', '2']],
      {},
      head('GET /a HTTP/1.1', 'Host: a.example', 'x: 1', 'accept: ', 'x: 2'),
    ],
    [
      'a path of raw bytes as it is',
      GET.with(2, [':path', '//%2e/../é?a=b;[]{}"<>|\\^`&%']),
      {},
      head('GET //%2e/../é?a=b;[]{}"<>|\\^`&% HTTP/1.1', 'Host: a.example'),
    ],
    [
      'one cookie line of all crumbs, where the first one was',
      [...GET, ['cookie', 'a=1'], ['x', '1'], ['cookie', 'b=2'], ['cookie', 'c=3']],
      {},
      head('GET /a HTTP/1.1', 'Host: a.example', 'cookie: a=1; b=2; c=3', 'x: 1'),
    ],
    [
      'chunks when a body of no length follows',
      POST,
      { isLast: false },
      head('POST /a HTTP/1.1', 'Host: a.example', 'Transfer-Encoding: chunked'),
    ],
    [
      'its length when it has one',
      [...POST, ['content-length', '5']],
      { isLast: false },
      head('POST /a HTTP/1.1', 'Host: a.example', 'content-length: 5'),
    ],
    [
      'a length of 0 as it is',
      [...POST, ['content-length', '0']],
      {},
      head('POST /a HTTP/1.1', 'Host: a.example', 'content-length: 0'),
    ],
    [
      'a request for trailers',
      [...GET, ['te', 'trailers']],
      {},
      head('GET /a HTTP/1.1', 'Host: a.example', 'te: trailers', 'Connection: TE'),
    ],
    [
      'one Host, of :authority and of a host that says the same',
      [...GET, ['host', 'A.example']],
      {},
      head('GET /a HTTP/1.1', 'Host: a.example'),
    ],
    [
      'the host without :authority',
      [...without(':authority'), ['host', 'b']],
      {},
      head('GET /a HTTP/1.1', 'host: b'),
    ],
    [
      'OPTIONS *',
      GET.with(0, [':method', 'OPTIONS']).with(2, [':path', '*']),
      {},
      head('OPTIONS * HTTP/1.1', 'Host: a.example'),
    ],
    ['any method', GET.with(0, [':method', 'a~b']), {}, head('a~b /a HTTP/1.1', 'Host: a.example')],
    [
      'an upgrade, of an extended CONNECT',
      [...CONNECT, ['sec-websocket-key', 'mine']],
      { isLast: false, key: KEY },
      head(
        'GET /a HTTP/1.1',
        'Host: a.example',
        'sec-websocket-version: 13',
        'Connection: Upgrade',
        'Upgrade: websocket',
        `Sec-WebSocket-Key: ${KEY}`,
      ),
    ],
    [
      'an upgrade with the version that its visitor left out',
      without('sec-websocket-version', CONNECT),
      { isLast: false, key: KEY },
      head(
        'GET /a HTTP/1.1',
        'Host: a.example',
        'Sec-WebSocket-Version: 13',
        'Connection: Upgrade',
        'Upgrade: websocket',
        `Sec-WebSocket-Key: ${KEY}`,
      ),
    ],
  ] as const satisfies readonly (readonly [string, readonly NaiveField[], Terms, string])[])
    test(what, () => {
      expect(textOf(fields, terms)).toBe(expected)
      expect(parse(expected)).toBeInstanceOf(RequestHead)
    })
})

describe('left to the parser of HTTP/1.1, which refuses it, is', () => {
  for (const [what, fields, refusal] of [
    ['a request for no host', without(':authority'), 'BAD_REQUEST'],
    ['a host with a user', GET.with(3, [':authority', 'u@a']), 'BAD_REQUEST'],
    ['two lengths', [...GET, ['content-length', '0'], ['content-length', '0']], 'BAD_REQUEST'],
    ['a length that is no number', [...GET, ['content-length', '+0']], 'malformed'],
    ['two hosts', [...without(':authority'), ['host', 'a'], ['host', 'a']], 'BAD_REQUEST'],
    ['content_length', [...GET, ['content_length', '0']], 'BAD_REQUEST'],
    ['a control character in a value', [...GET, ['x', '\x01']], 'BAD_REQUEST'],
    ['a fragment', GET.with(2, [':path', '/#x']), 'BAD_REQUEST'],
    ['a long path', GET.with(2, [':path', `/${'x'.repeat(9000)}`]), 'TARGET_TOO_LONG'],
    [
      'CONNECT',
      [
        [':method', 'CONNECT'],
        [':authority', 'a:443'],
      ],
      'METHOD_REFUSED',
    ],
  ] as const satisfies readonly (readonly [string, readonly NaiveField[], string])[])
    test(what, () => {
      const text = textOf(fields)
      if (refusal === 'malformed') expect(text).toStartWith('malformed')
      else expect(parse(text)).toBe(refusal)
    })
})

const MALFORMED: readonly (readonly [
  what: string,
  problem: string,
  fields: readonly NaiveField[],
  terms?: Terms,
])[] = [
  ['nothing', 'no :method', []],
  ['no :method', 'no :method', without(':method')],
  ['no :scheme', 'no :scheme or no :path', without(':scheme')],
  ['no :path', 'no :scheme or no :path', without(':path')],
  ['an empty :path', 'a :path that is none', GET.with(2, [':path', ''])],
  ['an absolute :path', 'a :path that is none', GET.with(2, [':path', 'https://b/'])],
  ['* of GET', 'a :path that is none', GET.with(2, [':path', '*'])],
  ['an empty :method', 'an empty :method', GET.with(0, [':method', ''])],
  ['a blank in :method', 'a :method that is none', GET.with(0, [':method', 'GET /x'])],
  ['an empty :authority', 'an empty :authority', GET.with(3, [':authority', ''])],
  ['another :scheme', 'a :scheme that is neither http nor https', GET.with(1, [':scheme', 'ftp'])],
  ['a blank in :path', 'a blank or control', GET.with(2, [':path', '/a HTTP/1.1'])],
  ['a line break in :path', 'a blank or control', GET.with(2, [':path', '/a\r\nx: y'])],
  ['DEL in :path', 'a blank or control', GET.with(2, [':path', '/\x7f'])],
  ['a line break in :authority', 'NUL, CR or LF', GET.with(3, [':authority', 'a\r\nx: y'])],
  ['a :method twice', 'unknown or repeated', [...GET, [':method', 'GET']]],
  ['a :path twice', 'unknown or repeated', [[':path', '/'], ...GET]],
  ['an unknown pseudo-header field', 'unknown or repeated', [...GET, [':foo', 'bar']]],
  ['one with a capital', 'unknown or repeated', [[':Method', 'GET'], ...GET.slice(1)]],
  ['one of answers', 'unknown or repeated', [...GET, [':status', '200']]],
  ['one that is just a colon', 'unknown or repeated', [...GET, [':', '']]],
  ['one behind the others', 'a field name', [...GET.slice(0, 3), ['x', 'y'], GET[3]!]],
  ['capitals in a name', 'a field name', [...GET, ['X-a', 'y']]],
  ['an empty name', 'a field name', [...GET, ['', 'y']]],
  ['a colon in a name', 'a field name', [...GET, ['x:y', 'z']]],
  ['a line break in a name', 'a field name', [...GET, ['x\r\ny', 'z']]],
  ['a byte above ASCII in a name', 'a field name', [...GET, ['é', 'z']]],
  ['a line break in a value', 'NUL, CR or LF', [...GET, ['x', 'a\r\ny: z']]],
  ['a bare CR in a value', 'NUL, CR or LF', [...GET, ['x', 'a\rb']]],
  ['a bare LF in a cookie', 'NUL, CR or LF', [...GET, ['cookie', 'a'], ['cookie', 'b\nc']]],
  ['NUL in a value', 'NUL, CR or LF', [...GET, ['x', '\0']]],
  ['a blank in front of a value', 'white space', [...GET, ['x', ' y']]],
  ['a tab behind a value', 'white space', [...GET, ['x', 'y\t']]],
  ['connection', 'a field of the connection', [...GET, ['connection', 'close']]],
  ['keep-alive', 'a field of the connection', [...GET, ['keep-alive', '1']]],
  ['proxy-connection', 'a field of the connection', [...GET, ['proxy-connection', 'close']]],
  [
    'transfer-encoding',
    'a field of the connection',
    [...POST, ['transfer-encoding', 'chunked']],
    { isLast: false },
  ],
  ['upgrade', 'a field of the connection', [...GET, ['upgrade', 'websocket']]],
  ['te: gzip', 'te other than trailers', [...GET, ['te', 'trailers, gzip']]],
  ['a host beside another :authority', 'host and :authority differ', [...GET, ['host', 'b.example']]],
  [
    'a line break in a key that is not used',
    'NUL, CR or LF',
    [...CONNECT, ['sec-websocket-key', 'a\nb']],
    { key: KEY },
  ],
  ['a length without a body', 'content-length without', [...POST, ['content-length', '5']]],
  [
    'CONNECT with a :path',
    'CONNECT with the wrong parts',
    [
      [':method', 'CONNECT'],
      [':authority', 'a'],
      [':path', '/'],
    ],
  ],
  ['CONNECT without :authority', 'CONNECT with the wrong parts', [[':method', 'CONNECT']]],
  [':protocol that was not enabled', ':protocol out of place', CONNECT],
  [':protocol of GET', ':protocol out of place', [...GET, [':protocol', 'websocket']], { key: KEY }],
  ['extended CONNECT without :path', 'no :scheme or no :path', without(':path', CONNECT), { key: KEY }],
  [
    'extended CONNECT with a length',
    'content-length without',
    [...CONNECT, ['content-length', '0']],
    { key: KEY },
  ],
  [
    'a line break in :protocol',
    'a blank or control',
    CONNECT.with(1, [':protocol', 'websocket\r\nx: y']),
    { key: KEY },
  ],
]

describe('malformed is', () => {
  for (const [what, problem, fields, terms] of MALFORMED)
    test(what, () => {
      expect(textOf(fields, terms)).toMatch(`malformed: `)
      expect(textOf(fields, terms)).toContain(problem)
    })
})

test('each byte is judged, in names, values and paths', () => {
  for (let byte = 0; byte < 256; byte++) {
    const character = String.fromCharCode(byte)
    const isWritten = (fields: readonly NaiveField[]) => !textOf(fields).startsWith('malformed: ')
    const verdicts = [
      isWritten([...GET, [`x${character}`, 'y']]),
      isWritten([...GET, ['x', `y${character}y`]]),
      isWritten([...GET, ['x', `y${character}`]]),
      isWritten(GET.with(2, [':path', `/${character}`])),
    ]
    expect(verdicts, `byte ${byte}`).toEqual([
      /[a-z\d!#$%&'*+.^_`|~-]/.test(character),
      !/[\0\r\n]/.test(character),
      !/[\0\r\n\t ]/.test(character),
      !/[\0-\x20\x7f]/.test(character),
    ])
  }
})

test('no room too small goes unnoticed', () => {
  const list = listOf(GET)
  expect(() => writeRequestHead(list, true, '', new Uint8Array(20), 0)).toThrow(RangeError)
})

const PIECES = [
  'a',
  'b=c',
  '/',
  ':',
  ' ',
  '\t',
  '\r\n',
  '\n',
  '\0',
  'X',
  'é',
  ',',
  '; ',
  '0',
  '5',
  'trailers',
  'GET',
  '*',
  '\x7f',
  '\x01',
]
const NAMES = [
  'x',
  'cookie',
  'cookie',
  'te',
  'host',
  'content-length',
  'x-forwarded-for',
  'connection',
  'upgrade',
  'sec-websocket-key',
  'expect',
  ':path',
  'X',
  'keep-alive',
  'proxy-authorization',
]

function randomRequest(random: Random): NaiveField[] {
  const fields: NaiveField[] = (random.chance(0.2) ? CONNECT : random.chance(0.5) ? GET : POST).slice()
  const text = () => Array.from({ length: random.below(4) }, () => random.pick(PIECES)).join('')
  for (let count = random.below(5); count > 0; count--)
    fields.push([
      random.chance(0.9) ? random.pick(NAMES.slice(0, random.chance(0.8) ? 6 : 99)) : text(),
      random.chance(0.6) ? random.pick(['a', 'trailers', '0', '5', 'a.example']) : text(),
    ])
  if (random.chance(0.3)) {
    const at = random.below(fields.length)
    if (random.chance(0.4)) fields.splice(at, 1)
    else if (random.chance(0.3)) fields.splice(random.below(5), 0, fields[at]!)
    else fields[at] = [fields[at]![0], text()]
  }
  return fields
}

/** The text by a plain reading of RFC 9113 section 8; undefined for a malformed request. */
function naiveText(fields: readonly NaiveField[], isLast: boolean, key: string): string | undefined {
  const isPseudo = ([name]: NaiveField) => name.startsWith(':')
  const first = fields.findIndex(field => !isPseudo(field))
  const regular = first < 0 ? [] : fields.slice(first)
  const pseudo = new Map(fields.slice(0, first < 0 ? fields.length : first))
  if (pseudo.size + regular.length !== fields.length || regular.some(isPseudo)) return undefined
  const known = [':method', ':scheme', ':path', ':authority', ':protocol']
  if ([...pseudo.keys()].some(name => !known.includes(name))) return undefined
  const [method, scheme, path, authority, protocol] = known.map(name => pseudo.get(name))
  const isWord = (text: string) => !/[\0-\x20\x7f]/.test(text)
  const isGood = (text: string) => !/[\0\r\n]|^[ \t]|[ \t]$/.test(text)
  const named = (wanted: string) => regular.filter(([name]) => name === wanted).map(([, value]) => value)
  if (method === undefined || authority === '' || !isGood(authority ?? '')) return undefined
  if (regular.some(([name, value]) => !/^[a-z\d!#$%&'*+.^_`|~-]+$/.test(name) || !isGood(value)))
    return undefined
  const forbidden = ['connection', 'keep-alive', 'proxy-connection', 'transfer-encoding', 'upgrade']
  if (regular.some(([name]) => forbidden.includes(name))) return undefined
  if (named('te').some(value => value.toLowerCase() !== 'trailers')) return undefined
  const hosts = named('host')
  if (authority !== undefined && hosts.some(host => host.toLowerCase() !== authority.toLowerCase()))
    return undefined
  const lengths = named('content-length')
  if (isLast && lengths.some(length => /[^0]/.test(length))) return undefined
  const isUpgrade = protocol !== undefined
  if (isUpgrade && (method !== 'CONNECT' || key === '' || lengths.length > 0 || !isWord(protocol)))
    return undefined
  let line: string
  if (method === 'CONNECT' && !isUpgrade) {
    if (scheme !== undefined || path !== undefined || authority === undefined || !isWord(authority))
      return undefined
    line = `CONNECT ${authority}`
  } else {
    if ((scheme !== 'http' && scheme !== 'https') || path === undefined || !isWord(path)) return undefined
    if (!path.startsWith('/') && !(path === '*' && method === 'OPTIONS')) return undefined
    if (!/^[\w!#$%&'*+.^`|~-]+$/.test(method)) return undefined
    line = `${isUpgrade ? 'GET' : method} ${path}`
  }
  const lines = [`${line} HTTP/1.1`, ...(authority === undefined ? [] : [`Host: ${authority}`])]
  const crumbs = named('cookie').join('; ')
  for (const [index, [name, value]] of regular.entries()) {
    if (name === 'host' && authority !== undefined) continue
    if (name === 'sec-websocket-key' && isUpgrade) continue
    if (name !== 'cookie') lines.push(`${name}: ${value}`)
    else if (regular.findIndex(([other]) => other === 'cookie') === index) lines.push(`cookie: ${crumbs}`)
  }
  if (named('te').length > 0) lines.push('Connection: TE')
  const hasVersion = fields.some(([name]) => name === 'sec-websocket-version')
  if (isUpgrade && !hasVersion) lines.push('Sec-WebSocket-Version: 13')
  if (isUpgrade) lines.push('Connection: Upgrade', `Upgrade: ${protocol}`, `Sec-WebSocket-Key: ${key}`)
  else if (!isLast && lengths.length === 0) lines.push('Transfer-Encoding: chunked')
  return head(...lines)
}

test('random requests become the text of a plain reading, and no text says more than its fields', () => {
  const cases = 4000 * FUZZ
  let written = 0
  let accepted = 0
  for (let seed = 1; seed <= cases; seed++) {
    const random = new Random(seed)
    const fields = randomRequest(random)
    const isLast = random.chance(0.5)
    const key = random.chance(0.8) ? KEY : ''
    const text = textOf(fields, { isLast, key })
    const expected = naiveText(fields, isLast, key)
    if ((text.startsWith('malformed: ') ? undefined : text) !== expected)
      throw new Error(`seed ${seed}: ${JSON.stringify({ fields, isLast, text, expected })}`)
    if (expected === undefined) continue
    written++
    const parsed = parse(text)
    if (typeof parsed === 'string') continue
    accepted++
    const ours = ['connection', 'upgrade', 'transfer-encoding', 'sec-websocket-key', 'sec-websocket-version']
    const names = parsed.headerList().map(([name]) => name.toLowerCase())
    for (const name of names)
      if (!ours.includes(name) && !fields.some(([other]) => other === name || other === ':authority'))
        throw new Error(`seed ${seed}: ${name} came from nowhere`)
    expect(parsed.headerCount).toBeLessThanOrEqual(fields.length + 4)
  }
  countInputs('HTTP/2 requests', cases)
  expect(written).toBeGreaterThan(cases * 0.2)
  expect(written).toBeLessThan(cases * 0.8)
  expect(accepted).toBeGreaterThan(cases * 0.1)
})

describe('a head of HTTP/1.1 becomes', () => {
  /** The fields of the block. */
  function fieldsOfHead(text: string, upgrades = true): string[] {
    const parsed = parse(text)
    if (typeof parsed === 'string') throw new Error(parsed)
    const into = new Uint8Array(7 + maxHeadBlockBytes(parsed))
    const end = encodeRequestHead(new HpackEncoder(), parsed, { scheme: 'http', upgrades }, into, 7)
    expect(end).toBeLessThanOrEqual(into.length)
    return linesOf(fieldsOf(into.slice(7, end)))
  }

  test('its pseudo-header fields and lines, without those of the connection', () => {
    const text = head(
      'POST /a?b HTTP/1.1',
      'Host: A.example:80',
      'X-Y: 1',
      'Connection: keep-alive, X-Hop, TE',
      'X-Hop: 1',
      'Keep-Alive: 5',
      'TE: trailers',
      'Transfer-Encoding: chunked',
      'Proxy-Authorization: secret',
      'Cookie: a=1; b=2',
    )
    expect(fieldsOfHead(text)).toEqual([
      ':method: POST',
      ':scheme: http',
      ':authority: A.example:80',
      ':path: /a?b',
      'x-y: 1',
      'te: trailers',
      'cookie: a=1; b=2',
    ])
  })

  test('an extended CONNECT, where the peer takes it', () => {
    const text = textOf(CONNECT, { isLast: false, key: KEY })
    expect(fieldsOfHead(text)).toEqual([
      ':method: CONNECT',
      ':protocol: websocket',
      ':scheme: http',
      ':authority: a.example',
      ':path: /a',
      'sec-websocket-version: 13',
    ])
    expect(fieldsOfHead(text, false)[0]).toBe(':method: GET')
  })

  test('a path, of any form of target', () => {
    for (const [line, path] of [
      ['GET http://a/x?y', '/x?y'],
      ['GET http://a', '/'],
      ['GET http://a?x', '/?x'],
      ['OPTIONS *', '*'],
      ['OPTIONS http://a', '*'],
    ])
      expect(fieldsOfHead(head(`${line} HTTP/1.1`, 'Host: a'))[3]).toBe(`:path: ${path}`)
  })
})

test('random requests come through HTTP/1.1 and back as they were', () => {
  const encoder = new HpackEncoder(0)
  const list = new FieldList()
  for (let seed = 1; seed <= 500 * FUZZ; seed++) {
    const random = new Random(seed)
    const isUpgrade = random.chance(0.3)
    const fields: NaiveField[] = [
      [':method', isUpgrade ? 'CONNECT' : random.pick(['GET', 'POST', 'FOO'])],
      ...(isUpgrade ? [[':protocol', 'websocket'] as const] : []),
      [':scheme', 'https'],
      [':authority', random.pick(['a', 'a.b:1', '[::1]:80'])],
      [':path', random.pick(['/', '/a?b', '/é//..'])],
    ]
    for (let count = random.below(20); count > 0; count--)
      fields.push([random.pick(['x', 'y-z', 'accept']), random.pick(['', 'a', 'é', 'a  b', 'x'.repeat(300)])])
    if (isUpgrade) fields.push(['sec-websocket-version', '13'])
    const parsed = parse(textOf(fields, { isLast: !isUpgrade, key: KEY }))
    if (typeof parsed === 'string') throw new Error(`seed ${seed}: ${parsed}`)
    const into = new Uint8Array(maxHeadBlockBytes(parsed) + 8)
    const at = encoder.begin(into, 0)
    const end = encodeRequestHead(encoder, parsed, { scheme: 'https', upgrades: true }, into, at)
    expect(end).toBeLessThanOrEqual(maxHeadBlockBytes(parsed))
    expect(fieldsOf(into.slice(at, end)), `seed ${seed}`).toEqual(fields)
    list.clear()
  }
})
