// Random requests, sound and mutated, read by us and by node:http (llhttp): the same messages, or we are stricter for
// a reason that is listed here. LT_FUZZ=N runs N times as many. A failure prints its seed.

import { expect } from 'bun:test'
import { BodyFramer } from '../../src/http/body.ts'
import { parseRequestHead, RequestHead } from '../../src/http/head.ts'
import { testWith } from '../support/needs.ts'
import { countInputs, FUZZ, Random } from '../support/random.ts'
import {
  BLANK_REFUSALS,
  FRAMING,
  hasBlankExtension,
  mutated,
  ODD_FRAMING,
  randomChunks,
} from '../support/random-http.ts'

interface Reading {
  readonly messages: readonly { readonly method: string; readonly target: string; readonly body: string }[]
  /** Why reading stopped early; empty when it did not. */
  readonly refusal: string
}

const CASES = 4000 * FUZZ
const BATCH = 4000

const limits = { maxHeadBytes: 16_384, maxHeaderCount: 100, maxTargetBytes: 8192 }

/** Where our reading stopped, for the reasons below. */
interface Stop {
  readonly head: string
  readonly isBody: boolean
}

/** Why we refuse what llhttp reads. Each tells by the text of the message, not by what our parser says. */
const STRICTER: readonly (readonly [reason: string, applies: (stop: Stop) => boolean])[] = [
  ['more than four empty lines in front', ({ head }) => /^(\r?\n){5}/.test(head)],
  ['bare LF or bare CR', ({ head }) => /(^|[^\r])\n|\r[^\n]/.test(head)],
  ['fragment in the target', ({ head }) => /^\S* \S*#/.test(head.trimStart())],
  [
    'control character or DEL in the target',
    ({ head }) => hasControl(/^\S+ ([^ ]*)/.exec(head.trimStart())?.[1]),
  ],
  ['HTTP versions besides 1.0 and 1.1', ({ head }) => !/^\S+ \S+ HTTP\/1\.[01]\r\n/.test(head.trimStart())],
  [
    'a tab beside a length or a coding',
    ({ head }) => /\n(content-length|transfer-encoding):[^\n]*\t/i.test(head),
  ],
  ['CONNECT', ({ head }) => /^\s*CONNECT /.test(head)],
  [
    'a target that is neither a path nor http(s) with the authority of Host',
    ({ head }) => /^\s*\S+ [^/]/.test(head),
  ],
  ['not exactly one Host', ({ head }) => [...head.matchAll(/\nhost:/gi)].length !== 1],
  ['a Host that is no name with an optional port', ({ head }) => !GOOD_HOST.test(head)],
  [
    'Content-Length repeated, empty or longer than 16 digits',
    ({ head }) => isOdd(head, 'content-length', /^\d{1,16}$/),
  ],
  [
    'Transfer-Encoding repeated or not just chunked',
    ({ head }) => isOdd(head, 'transfer-encoding', /^chunked$/i),
  ],
  [
    'Transfer-Encoding in HTTP/1.0',
    ({ head }) => /HTTP\/1\.0\r\n/.test(head) && /\ntransfer-encoding:/i.test(head),
  ],
  [
    'length and coding together',
    ({ head }) => /\ncontent-length:/i.test(head) && /\ntransfer-encoding:/i.test(head),
  ],
  ['framing names with an underscore', ({ head }) => /\n(content_length|transfer_encoding):/i.test(head)],
  ['Connection that nominates framing or is no list of tokens', ({ head }) => isOddConnection(head)],
  ['control characters in a value', ({ head }) => hasControl(head.replaceAll(/[\t\r\n]/g, ''))],
  ['folded lines', ({ head }) => /\n[ \t]/.test(head)],
  [
    'chunk extensions, sizes and trailers beyond our bounds, or trailers that frame or route',
    ({ isBody }) => isBody,
  ],
]

const GOOD_HOST = /\nhost:[ \t]*([\w-]+(\.[\w-]+)*\.?|\[[0-9a-f:.]+\])(:\d{1,5})?[ \t]*\r/i

function hasControl(text = ''): boolean {
  return Buffer.from(text, 'latin1').some(byte => byte < 0x20 || byte === 0x7f)
}

function isOdd(head: string, name: string, good: RegExp): boolean {
  const lines = [...head.matchAll(new RegExp(`\\n${name}:[ \\t]*([^\\n]*?)[ \\t]*\\r`, 'gi'))]
  return lines.length > 1 || lines.some(line => !good.test(line[1]!))
}

function isOddConnection(head: string): boolean {
  const elements = [...head.matchAll(/\nconnection:([^\n]*)\r/gi)].flatMap(line => line[1]!.split(','))
  return elements.some(element =>
    /^(host|content[-_]length|transfer[-_]encoding)$|[^\w!#$%&'*+.^`|~-]/i.test(element.trim()),
  )
}

/** What we let through and llhttp does not. Nothing here touches framing. */
const LOOSER: readonly (readonly [
  reason: string,
  applies: (refusal: string, target: string, text: string) => boolean,
])[] = [
  ['methods are the business of the origin', refusal => refusal === 'HPE_INVALID_METHOD'],
  ['an upgrade is decided by the origin', refusal => refusal === 'UPGRADE'],
  [
    'raw UTF-8 in the target',
    (refusal, target) => refusal === 'HPE_INVALID_URL' && /[\x80-\xff]/.test(target),
  ],
  [
    'blanks in a chunk extension: the line ends at the same CRLF for all',
    (refusal, _, text) => BLANK_REFUSALS.has(refusal) && hasBlankExtension(text),
  ],
]

/** Every message on a connection whose bytes arrive in these pieces, and where the message begins that ended it. */
function readPieces(
  pieces: readonly Uint8Array[],
): Reading & { readonly stoppedAt: number; readonly isBody: boolean; readonly isClosed?: boolean } {
  const messages: { method: string; target: string; body: string }[] = []
  const head = new RequestHead()
  let body = ''
  const framer = new BodyFramer((bytes, start, end) => {
    body += Buffer.from(bytes.subarray(start, end)).toString('latin1')
  })
  let bytes: Uint8Array = new Uint8Array(0)
  let consumed = 0
  let stoppedAt = 0
  let isBody = false
  let method = ''
  let target = ''
  for (const piece of pieces) {
    bytes = new Uint8Array(Buffer.concat([bytes, piece]))
    let at = 0
    for (;;) {
      if (!isBody) {
        stoppedAt = consumed + at
        const end = parseRequestHead(head, bytes, at, bytes.length, limits)
        if (end < 0) return { messages, refusal: head.refusal, stoppedAt, isBody }
        if (end === 0) break
        framer.begin(head.body, head.contentLength)
        at = end
        isBody = true
        body = ''
        // Read now: the bytes of the head are gone when the body ends in a later piece.
        ;({ method, target } = head)
      }
      const end = framer.feed(bytes, at, bytes.length)
      if (end < 0) return { messages, refusal: 'BODY', stoppedAt, isBody }
      at = end
      if (!framer.complete) break
      messages.push({ method, target, body })
      isBody = false
      // What comes behind the last request of a connection is nobody's.
      if (!head.keepAlive) return { messages, refusal: '', stoppedAt, isBody, isClosed: true }
    }
    consumed += at
    bytes = bytes.slice(at)
  }
  return { messages, refusal: '', stoppedAt, isBody }
}

const METHODS = ['GET', 'GET', 'POST', 'POST', 'PUT', 'HEAD', 'OPTIONS', 'DELETE', 'PROPFIND', 'get', 'FOO']
const TARGETS = [
  '/',
  '/',
  '/a?b=c',
  '/%00/../x',
  '//b/',
  'http://a/x',
  'http://a',
  'http://b/',
  '*',
  '/\xe9',
  '/#x',
  'x',
  '',
]
const VERSIONS = [
  'HTTP/1.1',
  'HTTP/1.1',
  'HTTP/1.1',
  'HTTP/1.1',
  'HTTP/1.0',
  'HTTP/1.2',
  'HTTP/2.0',
  'http/1.1',
  'HTTP/1.1 ',
]
const HOSTS = [
  'Host: a',
  'Host: a',
  'Host: a',
  'host:a ',
  'Host: a:80',
  'Host: A.b.',
  'Host: a,b',
  'Host: ',
  'Host: a@b',
]
const OTHERS = [
  'X: y',
  'Accept: */*',
  'X:',
  'X: \xff',
  'X: a\tb',
  'Connection: close',
  'Connection: keep-alive',
  'Connection: content-length',
  'Connection: a b',
  'Expect: 100-continue',
  'Cookie: a=b',
  ': y',
  'X y',
  ' X: y',
  'X: y\r\n z',
  'X: \x00',
  'X: \x01',
  'X\x00: y',
  'Upgrade: websocket',
  '__proto__: x',
]
/** One message by the grammar, with an odd choice here and there. */
function randomMessage(random: Random): string {
  const lines = [random.chance(0.95) ? random.pick(HOSTS.slice(0, random.chance(0.9) ? 3 : 9)) : 'X: y']
  const data = 'abc0\r\n\r\nGET /in HTTP/1.1\r\nHost: a\r\n\r\n'.slice(0, random.below(40))
  let body = ''
  if (random.chance(0.6)) {
    const framing = random.pick(random.chance(0.9) ? FRAMING : ODD_FRAMING)
    lines.push(framing.endsWith(':') || framing.endsWith(': ') ? `${framing}${data.length}` : framing)
    body = /chunked/i.test(framing) ? randomChunks(random, data) : framing.endsWith('0') ? '' : data
    if (random.chance(0.1)) lines.push(random.pick(random.chance(0.5) ? FRAMING : ODD_FRAMING))
  }
  for (let count = random.below(4); count > 0; count--) {
    const line = random.pick(random.chance(0.9) ? OTHERS.slice(0, 7) : OTHERS)
    lines.splice(random.below(lines.length + 1), 0, line)
  }
  const usual = random.chance(0.9)
  const method = random.pick(usual ? METHODS.slice(0, 8) : METHODS)
  const target = random.pick(usual ? TARGETS.slice(0, 5) : TARGETS)
  const version = random.pick(usual ? VERSIONS.slice(0, 5) : VERSIONS)
  return `${method} ${target} ${version}\r\n${lines.join('\r\n')}\r\n\r\n${body}`
}

function randomConnection(random: Random): string {
  let text = ''
  for (let count = 1 + random.below(3); count > 0; count--) text += randomMessage(random)
  return random.chance(0.5) ? text : mutated(random, text)
}

/** What node:http makes of them, in a Node of its own: under Bun it is another parser. */
async function readByNode(connections: readonly string[]): Promise<Reading[]> {
  const child = Bun.spawn(['node', `${import.meta.dir}/../support/node-http.mjs`], {
    stdin: new Blob([
      connections.map(text => `${Buffer.from(text, 'latin1').toString('base64')}\n`).join(''),
    ]),
    stderr: 'inherit',
  })
  const lines = (await new Response(child.stdout).text()).trimEnd().split('\n')
  // The shape that node-http.mjs writes.
  return lines.map(line => JSON.parse(line) as Reading)
}

/** What is wrong with our reading, or nothing. */
function objection(
  text: string,
  ours: ReturnType<typeof readPieces>,
  node: Reading,
  counts: Map<string, number>,
): string {
  for (const [index, message] of ours.messages.entries()) {
    const theirs = node.messages[index]
    if (theirs === undefined) {
      const loose = LOOSER.find(([, applies]) => applies(node.refusal, message.target, text))
      if (loose === undefined) return `read message ${index}, which llhttp refuses (${node.refusal})`
      counts.set(loose[0], (counts.get(loose[0]) ?? 0) + 1)
      return ''
    }
    if (JSON.stringify(theirs) !== JSON.stringify(message)) return `message ${index} is another one`
  }
  if (node.messages.length === ours.messages.length && (node.refusal !== '' || ours.refusal === '')) return ''
  // Closing early is always safe. llhttp goes on in HTTP/1.0 when keep-alive stands beside close, or with a tab behind.
  if (ours.isClosed && /\nconnection:[^\n]*close/i.test(text.slice(ours.stoppedAt))) return ''
  if (ours.refusal === '') return 'llhttp read more'
  const rest = text.slice(ours.stoppedAt)
  const blank = rest.search(/\S[^\n]*\r\n\r\n|\n\n/)
  const stop = {
    head: blank < 0 ? rest : rest.slice(0, rest.indexOf('\n', rest.indexOf('\n', blank) + 1) + 1),
    isBody: ours.refusal === 'BODY',
  }
  const strict = STRICTER.find(([, applies]) => applies(stop))
  if (strict === undefined) return `refused ${JSON.stringify(stop)} for no listed reason`
  counts.set(strict[0], (counts.get(strict[0]) ?? 0) + 1)
  return ''
}

testWith(
  ['node'],
  'random connections are read as node:http reads them, or refused for a listed reason',
  async () => {
    const counts = new Map<string, number>()
    let accepted = 0
    for (let first = 1; first <= CASES; first += BATCH) {
      const texts = Array.from({ length: Math.min(BATCH, CASES - first + 1) }, (_, index) =>
        randomConnection(new Random(first + index)),
      )
      const readings = await readByNode(texts)
      expect(readings).toHaveLength(texts.length)
      for (const [index, text] of texts.entries()) {
        const seed = first + index
        const bytes = new Uint8Array(Buffer.from(text, 'latin1'))
        const ours = readPieces([bytes])
        accepted += ours.messages.length
        const wrong = objection(text, ours, readings[index]!, counts)
        if (wrong !== '')
          throw new Error(`seed ${seed}: ${wrong}\n${JSON.stringify({ text, ours, node: readings[index] })}`)
        const cut = readPieces(new Random(seed).slices(bytes, 30))
        if (
          JSON.stringify(cut.messages) !== JSON.stringify(ours.messages) ||
          (ours.refusal !== '' && cut.refusal !== ours.refusal && cut.refusal !== '')
        )
          throw new Error(`seed ${seed}: cut differently\n${JSON.stringify({ text, ours, cut })}`)
      }
    }
    // The fuzzer itself must not go blind: most reasons occur, and most messages are read.
    expect(accepted).toBeGreaterThan(CASES * 0.5)
    countInputs('request heads and bodies', CASES)
    if (FUZZ > 1 || process.env.LT_FUZZ_REPORT === '1') console.log(accepted, Object.fromEntries(counts))
    expect(counts.size).toBeGreaterThan(10)
  },
  60_000 * FUZZ,
)
