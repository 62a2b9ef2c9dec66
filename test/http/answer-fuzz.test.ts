// Random answers, sound and mutated, read by us and by the client of node:http (llhttp): the same answer, or we are
// stricter for a reason that is listed here. What we forward is read once more. LT_FUZZ=N runs N times as many.

import { expect } from 'bun:test'
import { BodyFramer } from '../../src/http/body.ts'
import { forwardResponseHead, maxForwardedBytes } from '../../src/http/forward.ts'
import { parseResponseHead, ResponseHead } from '../../src/http/head.ts'
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

interface Answer {
  readonly status: number
  readonly reason: string
  /** Names and values in turn. */
  readonly headers: readonly string[]
  readonly body: string
  /** The body ended where it should. */
  readonly isWhole: boolean
  /** Whether another answer may follow. */
  readonly keepAlive: boolean
}

interface Reading {
  readonly interims: readonly number[]
  readonly answer?: Answer
  readonly refusal: string
}

interface OurReading extends Reading {
  /** Where the last head begins. */
  readonly stoppedAt: number
  /** What a visitor of ours gets: the heads as they are forwarded, the bodies as they are. */
  readonly forwarded: Uint8Array
}

interface Case {
  readonly method: string
  readonly text: string
}

const CASES = 4000 * FUZZ
const BATCH = 4000
const LIMITS = { maxHeadBytes: 16_384, maxHeaderCount: 100 }

/** Why we refuse a head that llhttp reads. Each tells by the text of the head, not by what our parser says. */
const STRICTER: readonly (readonly [reason: string, applies: (head: string) => boolean])[] = [
  ['empty lines in front', head => /^[\r\n]/.test(head)],
  ['bare LF or bare CR', head => /(^|[^\r])\n|\r[^\n]/.test(head)],
  ['HTTP versions besides 1.0 and 1.1', head => !/^HTTP\/1\.[01][ \r]/.test(head)],
  ['a status below 100, or not of three digits', head => !/^\S+ [1-9]\d\d[ \r]/.test(head)],
  ['a tab beside a length or a coding', head => /\n(content-length|transfer-encoding):[^\n]*\t/i.test(head)],
  [
    'Content-Length repeated, empty, longer than 16 digits or too large to count',
    head => isOdd(head, 'content-length', /^\d{1,16}$/) || isUncountable(head),
  ],
  ['Transfer-Encoding repeated or not just chunked', head => isOdd(head, 'transfer-encoding', /^chunked$/i)],
  [
    'Transfer-Encoding in HTTP/1.0',
    head => head.startsWith('HTTP/1.0') && /\ntransfer-encoding:/i.test(head),
  ],
  [
    'length and coding together',
    head => /\ncontent-length:/i.test(head) && /\ntransfer-encoding:/i.test(head),
  ],
  ['framing names with an underscore', head => /\n(content_length|transfer_encoding):/i.test(head)],
  ['Host more than once', head => [...head.matchAll(/\nhost:/gi)].length > 1],
  [
    'Connection that nominates framing',
    head => /\nconnection:[^\n]*(host|content[-_]length|transfer[-_]encoding)/i.test(head),
  ],
  ['control characters', head => hasControl(head.replaceAll(/[\t\r\n]/g, ''))],
  ['folded lines', head => /\n[ \t]/.test(head)],
  ['101 that does not say what it switches to', head => head.slice(9, 12) === '101' && !isSwitch(head)],
  ['101 in HTTP/1.0', head => head.startsWith('HTTP/1.0 101')],
]

/** The framing line of a body that llhttp reads and we refuse: extensions, sizes and trailers beyond our bounds. */
const STRICTER_BODY =
  'chunk extensions, sizes and trailers beyond our bounds, or trailers that frame or route'

/** What we let through and llhttp does not. */
const LOOSER_INTERIM =
  'an interim answer that says close, or HTTP/1.0: its Connection is dropped, the final answer decides'
const LOOSER_SWITCH =
  'a tab behind Connection: upgrade is white space (RFC 9110 section 5.6.3); llhttp reads on'

const LOOSER_EXTENSION = 'blanks in a chunk extension: the line ends at the same CRLF for all'

/** Where our connection goes on and that of node:http does not, though both read the same answer. */
const KEPT: readonly (readonly [reason: string, applies: (method: string, answer: Answer) => boolean])[] = [
  ['node:http decides before it knows that HEAD has no body', method => method === 'HEAD'],
]

function hasControl(text: string): boolean {
  return Buffer.from(text, 'latin1').some(byte => byte < 0x20 || byte === 0x7f)
}

function isOdd(head: string, name: string, good: RegExp): boolean {
  const lines = [...head.matchAll(new RegExp(`\\n${name}:[ \\t]*([^\\n]*?)[ \\t]*\\r`, 'gi'))]
  return lines.length > 1 || lines.some(line => !good.test(line[1]!))
}

function isSwitch(head: string): boolean {
  return /\nupgrade:/i.test(head) && /\nconnection:([^\n]*,)?[ \t]*upgrade[ \t]*[,\r]/i.test(head)
}

function isUncountable(head: string): boolean {
  return Number(/\ncontent-length:[ \t]*(\d+)/i.exec(head)?.[1] ?? 0) > Number.MAX_SAFE_INTEGER
}

/** The answer on a connection whose bytes arrive in these pieces, and then end. */
function readPieces(pieces: readonly Uint8Array[], method: string, isTolerant = false): OurReading {
  const interims: number[] = []
  const forwarded: Uint8Array[] = []
  const head = new ResponseHead(isTolerant)
  let body = ''
  const framer = new BodyFramer((bytes, start, end) => {
    body += Buffer.from(bytes.subarray(start, end)).toString('latin1')
  })
  framer.isTolerant = isTolerant
  let bytes: Uint8Array = new Uint8Array(0)
  let stoppedAt = 0
  let at = 0
  let answer: Answer | undefined
  const soFar = (refusal: string): OurReading => ({
    interims,
    refusal,
    stoppedAt,
    forwarded: Buffer.concat(forwarded),
    ...(answer !== undefined && { answer: { ...answer, body, isWhole: answer.isWhole || framer.complete } }),
  })
  for (const piece of pieces) {
    bytes = new Uint8Array(Buffer.concat([bytes, piece]))
    while (answer === undefined) {
      stoppedAt = at
      const end = parseResponseHead(head, bytes, at, bytes.length, LIMITS, method)
      if (end < 0) return soFar(head.refusal)
      if (end === 0) break
      at = end
      const into = new Uint8Array(maxForwardedBytes(head.end - head.start))
      const isInterim = head.status < 200
      const style = { close: !isInterim && !head.keepAlive, keepAlive10: false }
      forwarded.push(into.subarray(0, forwardResponseHead(head, style, into, 0)))
      if (isInterim && head.status !== 101) {
        interims.push(head.status)
        continue
      }
      answer = {
        status: head.status,
        reason: head.reason,
        headers: head.headerList().flat(),
        body: '',
        isWhole: false,
        keepAlive: head.keepAlive && head.status !== 101,
      }
      framer.begin(head.status === 101 ? 'close' : head.body, head.contentLength)
    }
    if (answer === undefined || framer.complete) continue
    const end = framer.feed(bytes, at, bytes.length)
    if (end < 0) return soFar('BODY')
    forwarded.push(framer.cleaned ?? bytes.subarray(at, end))
    at = end
  }
  if (answer !== undefined) framer.ended()
  return soFar('')
}

const METHODS = ['GET', 'GET', 'GET', 'POST', 'HEAD', 'OPTIONS']
const VERSIONS = [
  ...Array<string>(7).fill('HTTP/1.1'),
  'HTTP/1.0',
  'HTTP/1.2',
  'HTTP/2.0',
  'http/1.1',
  'HTTP/1.1 ',
]
const STATUSES = ['200', '200', '200', '404', '204', '304', '206', '205', '500', '418', '999']
const ODD_STATUSES = ['100', '101', '103', '199', '099', '20', '2000', '+20', '2x0', '']
const REASONS = [' OK', ' Not Found', ' ', '', ' \xe9', ' a\tb', '  two ', '\tOK', ' \x01']
const INTERIMS = [
  'HTTP/1.1 100 Continue\r\n\r\n',
  'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n',
  'HTTP/1.1 102 Processing\r\nX: y\r\n\r\n',
  'HTTP/1.0 100 Continue\r\n\r\n',
  'HTTP/1.1 100 Continue\r\nContent-Length: 3\r\n\r\n',
  'HTTP/1.1 103 Early Hints\r\nTransfer-Encoding: chunked\r\n\r\n',
  'HTTP/1.1 100 Continue\r\nConnection: close\r\n\r\n',
  'HTTP/1.1 100 Continue\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n',
  'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n',
  'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n',
]
const OTHERS = [
  'X: y',
  'Connection: close',
  'Connection: keep-alive',
  'Content-Type: text/html',
  'Set-Cookie: a=b',
  'Trailer: X',
  'X:',
  'Keep-Alive: timeout=5',
  'Connection: close, keep-alive',
  'Connection: x',
  'Connection: content-length',
  'Connection: a b',
  'Upgrade: h2c',
  'Connection: upgrade',
  'X: \xff',
  'X: a\tb',
  ': y',
  'X y',
  ' X: y',
  'X: y\r\n z',
  'X: \x00',
  'X: \x01',
  'X\x00: y',
  'Host: a',
  'Date: \x7f',
  '__proto__: x',
]

/** One final answer by the grammar, with an odd choice here and there. */
function randomAnswer(random: Random): string {
  const lines: string[] = []
  const data = 'abc0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx'.slice(0, random.below(52))
  let body = data
  if (random.chance(0.75)) {
    const framing = random.pick(random.chance(0.9) ? FRAMING : ODD_FRAMING)
    lines.push(framing.endsWith(':') || framing.endsWith(': ') ? `${framing}${data.length}` : framing)
    body = /chunked/i.test(framing) ? randomChunks(random, data) : framing.endsWith('0') ? '' : data
    // Lengths that say the same twice, or another thing; a length beside chunks.
    if (random.chance(0.1)) {
      const second = random.pick(random.chance(0.5) ? FRAMING : ODD_FRAMING)
      lines.push(second.endsWith(':') || second.endsWith(': ') ? `${second}${data.length}` : second)
    }
  }
  for (let count = random.below(4); count > 0; count--) {
    const line = random.pick(random.chance(0.9) ? OTHERS.slice(0, 10) : OTHERS)
    lines.splice(random.below(lines.length + 1), 0, line)
  }
  const usual = random.chance(0.9)
  const version = random.pick(usual ? VERSIONS.slice(0, 8) : VERSIONS)
  const status = random.pick(random.chance(0.93) ? STATUSES : ODD_STATUSES)
  const reason = random.pick(usual ? REASONS.slice(0, 5) : REASONS)
  const isBodiless = status === '204' || status === '304'
  const sent = isBodiless && random.chance(0.8) ? '' : body
  const head = [`${version} ${status}${reason}`, ...lines].join('\r\n')
  return `${head}\r\n\r\n${sent}`
}

function randomCase(random: Random): Case {
  const method = random.pick(METHODS)
  let text = ''
  while (random.chance(0.2)) text += random.pick(random.chance(0.8) ? INTERIMS.slice(0, 3) : INTERIMS)
  text += randomAnswer(random)
  // More than one answer: what lies behind the first is nobody's. Or less than one.
  if (random.chance(0.1)) text += random.pick(['X', '\r\n', randomAnswer(random)])
  if (random.chance(0.1)) text = text.slice(0, random.below(text.length))
  return { method, text: random.chance(0.5) ? text : mutated(random, text) }
}

/** What the client of node:http makes of them, in a Node of its own: under Bun it is another parser. */
async function readByNode(cases: readonly { method: string; bytes: Uint8Array }[]): Promise<Reading[]> {
  const lines = cases.map(
    ({ method, bytes }) => `${JSON.stringify({ method, bytes: Buffer.from(bytes).toString('base64') })}\n`,
  )
  const child = Bun.spawn(['node', `${import.meta.dir}/../support/node-answers.mjs`], {
    stdin: new Blob([lines.join('')]),
    stderr: 'inherit',
  })
  const answers = (await new Response(child.stdout).text()).trimEnd().split('\n')
  // The shape that node-answers.mjs writes.
  return answers.map(line => JSON.parse(line) as Reading)
}

/** What is wrong with our reading, or nothing. */
function objection(
  { method, text }: Case,
  ours: OurReading,
  node: Reading,
  counts: Map<string, number>,
): string {
  const listed = (reason: string): string => {
    counts.set(reason, (counts.get(reason) ?? 0) + 1)
    return ''
  }
  if (ours.refusal !== '') {
    if (node.refusal !== '' && !node.answer?.isWhole) return ''
    if (ours.refusal === 'BODY') return listed(STRICTER_BODY)
    const rest = text.slice(ours.stoppedAt)
    const end = rest.search(/\S[^\n]*\r?\n\r?\n/)
    const head = end < 0 ? rest : rest.slice(0, rest.indexOf('\n', rest.indexOf('\n', end) + 1) + 1)
    const strict = STRICTER.find(([, applies]) => applies(head))
    return strict === undefined ? `refused ${JSON.stringify(head)} for no listed reason` : listed(strict[0])
  }
  const isLooser = ours.interims.length > 0 && node.answer === undefined
  if (isLooser && node.refusal === 'HPE_CLOSED_CONNECTION') return listed(LOOSER_INTERIM)
  if (JSON.stringify(ours.interims) !== JSON.stringify(node.interims)) return 'other interim answers'
  if (ours.answer === undefined) return node.answer === undefined ? '' : 'llhttp read an answer'
  if (node.answer === undefined) return `read what llhttp refuses (${node.refusal})`
  const { keepAlive, ...answer } = ours.answer
  const { keepAlive: nodeKeepsAlive, ...theirs } = node.answer
  if (answer.status === 101 && /\nconnection:[^\n]*upgrade *\t/i.test(text)) return listed(LOOSER_SWITCH)
  if (stoppedAtExtension(text, answer, node)) return listed(LOOSER_EXTENSION)
  if (JSON.stringify(answer) !== JSON.stringify(theirs)) return 'another answer'
  // Closing early is always safe; keeping a connection that the origin ends is not.
  if (!keepAlive || nodeKeepsAlive || !answer.isWhole) return ''
  const kept = KEPT.find(([, applies]) => applies(method, ours.answer!))
  return kept === undefined ? 'llhttp would close behind it' : listed(kept[0])
}

/** llhttp gave up at a chunk extension that has blanks, and had read the same until there. */
function stoppedAtExtension(
  text: string,
  answer: Omit<Answer, 'keepAlive'>,
  { refusal, answer: theirs }: Reading,
): boolean {
  return (
    BLANK_REFUSALS.has(refusal) &&
    hasBlankExtension(text) &&
    theirs?.isWhole === false &&
    theirs.status === answer.status &&
    answer.body.startsWith(theirs.body)
  )
}

/** What is wrong with what we forwarded, or nothing. */
function forwardObjection(ours: OurReading, visitor: Reading): string {
  const { answer } = ours
  const forwarded = Buffer.from(ours.forwarded).toString('latin1')
  if (answer !== undefined && stoppedAtExtension(forwarded, answer, visitor)) return ''
  if (answer === undefined) return ''
  if (visitor.answer === undefined) return `a visitor refuses it (${visitor.refusal})`
  const { status, body, isWhole } = visitor.answer
  if (JSON.stringify(visitor.interims) !== JSON.stringify(ours.interims))
    return 'a visitor sees other interims'
  if (status !== answer.status || body !== answer.body || isWhole !== answer.isWhole)
    return 'a visitor reads another answer'
  return visitor.refusal === '' || !isWhole ? '' : 'a visitor finds bytes behind it'
}

/** The first bytes of what cannot be an answer may wait for the rest of their line. */
function isRefusedAlike(cut: OurReading, ours: OurReading): boolean {
  return cut.refusal === ours.refusal ? Bun.deepEquals(cut.interims, ours.interims) : isUnfinished(cut)
}

/** Blanks of chunk lines aside, which a tolerant reader takes out wherever they are allowed. */
function isSameAnswer(ours: OurReading, loose: OurReading): boolean {
  return Bun.deepEquals({ ...ours, forwarded: undefined }, { ...loose, forwarded: undefined })
}

function isUnfinished({ refusal, answer }: OurReading): boolean {
  return refusal === '' && answer === undefined
}

testWith(
  ['node'],
  'random answers are read as node:http reads them, or refused for a listed reason; visitors read the same',
  async () => {
    const counts = new Map<string, number>()
    let [accepted, amended] = [0, 0]
    for (let first = 1; first <= CASES; first += BATCH) {
      const cases = Array.from({ length: Math.min(BATCH, CASES - first + 1) }, (_, index) =>
        randomCase(new Random(first + index)),
      )
      const inputs = cases.map(({ method, text }) => ({
        method,
        bytes: new Uint8Array(Buffer.from(text, 'latin1')),
      }))
      const readings = inputs.map(({ method, bytes }) => readPieces([bytes], method))
      const tolerant = inputs.map(({ method, bytes }) => readPieces([bytes], method, true))
      const forwarded = (all: readonly OurReading[]) =>
        readByNode(all.map((one, index) => ({ method: cases[index]!.method, bytes: one.forwarded })))
      const [byNode, byVisitor, byTolerantsVisitor] = await Promise.all([
        readByNode(inputs),
        forwarded(readings),
        forwarded(tolerant),
      ])
      expect([byNode.length, byVisitor.length]).toEqual([cases.length, cases.length])
      for (const [index, { method, text }] of cases.entries()) {
        const seed = first + index
        const ours = readings[index]!
        if (ours.refusal === '' && ours.answer !== undefined) accepted++
        const loose = tolerant[index]!
        if (ours.refusal !== '' && loose.refusal === '' && loose.answer !== undefined) amended++
        const wrong =
          objection(cases[index]!, ours, byNode[index]!, counts) ||
          (ours.refusal === '' ? forwardObjection(ours, byVisitor[index]!) : '') ||
          (loose.refusal === '' ? forwardObjection(loose, byTolerantsVisitor[index]!) : '') ||
          (ours.refusal === '' && !isSameAnswer(ours, loose)
            ? 'the tolerant reader reads strict text otherwise'
            : '')
        if (wrong !== '') {
          const forwarded = Buffer.from(ours.forwarded).toString('latin1')
          throw new Error(
            `seed ${seed}: ${wrong}\n${JSON.stringify({ method, text, ours: { ...ours, forwarded }, node: byNode[index], visitor: byVisitor[index] })}`,
          )
        }
        const cut = readPieces(new Random(seed).slices(inputs[index]!.bytes, 30), method)
        if (ours.refusal === '' ? !Bun.deepEquals(cut, ours) : !isRefusedAlike(cut, ours))
          throw new Error(`seed ${seed}: cut differently\n${JSON.stringify({ text, ours, cut })}`)
        const looseCut = readPieces(new Random(seed).slices(inputs[index]!.bytes, 30), method, true)
        if (loose.refusal === '' ? !Bun.deepEquals(looseCut, loose) : !isRefusedAlike(looseCut, loose))
          throw new Error(`seed ${seed}: cut differently\n${JSON.stringify({ text, loose, looseCut })}`)
      }
    }
    // The fuzzer itself must not go blind: most reasons occur, and most answers are read.
    countInputs('answers', CASES)
    if (FUZZ > 1 || process.env.LT_FUZZ_REPORT === '1')
      console.log(accepted, amended, Object.fromEntries(counts))
    expect(accepted).toBeGreaterThan(CASES * 0.3)
    expect(amended).toBeGreaterThan(CASES * 0.03)
    expect(counts.size).toBeGreaterThan(10)
  },
  60_000 * FUZZ,
)

/** One answer as it is meant, and loosely written: what the visitor reads has to be what is meant. */
function looselyWritten(random: Random): { readonly text: string; readonly meant: Answer } {
  const data = 'abc0\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx'.slice(0, 1 + random.below(50))
  const fields: [name: string, value: string][] = [
    ['X-One', 'a'],
    ['Set-Cookie', 'b=c; d'],
    ['x-two', '\xe9 e'],
  ]
  const written = fields.flatMap(([name, value]) =>
    random.chance(0.5) ? [[name, value] as [string, string]] : [],
  )
  const headers = written.flat()
  // Lines that frame nothing, and that some would frame by.
  for (const line of [
    ['Content_Length', '7'],
    ['Transfer_encoding', 'chunked'],
    ['Connection', 'Content-Length, transfer-encoding'],
  ] as [string, string][])
    if (random.chance(0.2)) written.splice(random.below(written.length + 1), 0, line)
  const isChunked = random.chance(0.5)
  if (isChunked) {
    written.push(['Transfer-Encoding', 'chunked'])
    headers.push('Transfer-Encoding', 'chunked')
    // The coding wins, whatever they say, and wherever they stand.
    for (let count = random.below(3); count > 0; count--)
      written.splice(random.below(written.length + 1), 0, ['Content-Length', String(random.below(99))])
  } else {
    const { length } = data
    written.push(['Content-Length', random.chance(0.3) ? `${length}, ${length}` : String(length)])
    if (random.chance(0.3)) written.push(['content-length', String(length)])
    headers.push('Content-Length', String(length))
  }
  const end = () => (random.chance(0.3) ? '\n' : '\r\n')
  const blank = () => random.pick(['', '', '', ' ', '\t', '  '])
  const extension = () => random.pick(['', blank(), ';', ' ; a', ';a=b', ';\xe9\x00"', `;${'a'.repeat(400)}`])
  const lines = written.map(([name, value]) => {
    const folded = value.replaceAll(' ', () =>
      random.chance(0.3) ? `${end()}${random.pick([' ', '\t'])}` : ' ',
    )
    return `${name}${blank()}:${blank()}${folded}${blank()}${end()}`
  })
  const version = random.pick(['1.1', '1.1', '1.1', '1.2', '1.7', '2.0'])
  let body = data
  if (isChunked) {
    body = ''
    for (let at = 0; at < data.length; ) {
      const size = Math.min(data.length - at, 1 + random.below(12))
      body += `${size.toString(16)}${extension()}${end()}${data.slice(at, at + size)}${end()}`
      at += size
    }
    const trailers = random.pick(['', 'X-Sum: 1', 'X-Sum : 1', 'Content-Length: 1', 'Host: a', 'Cookie: b'])
    body += `0${extension()}${end()}${trailers === '' ? '' : trailers + end()}${end()}`
  }
  const status = `HTTP/${version}${random.pick([' ', ' ', '  '])}200 OK`
  const text = `${status}${end()}${lines.join('')}${end()}${body}`
  return { text, meant: { status: 200, reason: 'OK', headers, body: data, isWhole: true, keepAlive: true } }
}

testWith(
  ['node'],
  'random answers that are loosely written reach visitors as they are meant',
  async () => {
    const cases = Array.from({ length: CASES }, (_, index) => looselyWritten(new Random(index + 1)))
    const forwarded = cases.map(({ text }, index) => {
      const pieces = new Random(index + 1).slices(new Uint8Array(Buffer.from(text, 'latin1')), 30)
      const { forwarded: bytes, refusal } = readPieces(pieces, 'GET', true)
      if (refusal !== '') throw new Error(`seed ${index + 1}: ${refusal}\n${JSON.stringify(text)}`)
      return { method: 'GET', bytes }
    })
    const seen = await readByNode(forwarded)
    for (const [index, { text, meant }] of cases.entries()) {
      const { headers, ...others } = meant
      const { headers: seenHeaders = [], ...seenOthers } = seen[index]?.answer ?? {}
      // A length that was told twice stands behind all others, and a connection that is not used again says so.
      const sorted = (all: readonly string[]) =>
        all
          .flatMap((name, at) => (at % 2 === 0 && name !== 'Connection' ? [`${name}: ${all[at + 1]}`] : []))
          .sort()
      expect([text, sorted(seenHeaders), { ...seenOthers, keepAlive: true }]).toEqual([
        text,
        sorted(headers),
        others,
      ])
    }
    countInputs('answers loosely written', CASES)
  },
  60_000 * FUZZ,
)
