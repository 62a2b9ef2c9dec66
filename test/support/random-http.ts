// Pieces of HTTP/1.1 messages, sound and odd, that the fuzz tests of requests and of answers put together.

import type { Random } from './random.ts'

/** Those that end with a colon want the length of the body behind it. */
export const FRAMING: readonly string[] = [
  'Content-Length: ',
  'Content-Length:',
  'content-length: 0',
  'Transfer-Encoding: chunked',
  'transfer-encoding:chunked ',
]
export const ODD_FRAMING: readonly string[] = [
  'Transfer-Encoding: chunked, chunked',
  'Transfer-Encoding: gzip, chunked',
  'Transfer-Encoding: identity',
  'Transfer-Encoding:',
  'Transfer-Encoding : chunked',
  'Transfer-Encoding: xchunked',
  'Transfer-Encoding: "chunked"',
  'Transfer-Encoding:\x0bchunked',
  'Content-Length: +3',
  'Content-Length: 3, 3',
  'Content-Length: 0x3',
  'Content-Length: 00000000000000000003',
  'Content-Length: 99999999999999999999',
  'Content-Length: 9007199254740993',
  'Content-Length:\r\n 3',
  'Content_Length: 3',
]

const STRANGE = [
  '\r',
  '\n',
  '\r\n',
  '\r\n\r\n',
  '\0',
  ' ',
  '\t',
  ':',
  ',',
  ';',
  '0',
  '1',
  'a',
  'G',
  '\x0b',
  '\x7f',
  '\x80',
  '\xff',
  '#',
  '@',
]

const EXTENSIONS = [
  ';a=b',
  ';a="b c"',
  ';',
  ' ;x',
  ';\x01',
  ' ',
  '\t; a\t= b ;c',
  ';a="\\"b\\\\"',
  ';a="\\\r\n"',
  ';a="b\\"',
  ';a="\xe9"',
  ';a=b ',
]

/** What llhttp says of it, by where the blank stands. */
export const BLANK_REFUSALS: ReadonlySet<string> = new Set(['HPE_INVALID_CHUNK_SIZE', 'HPE_STRICT'])

/** A chunk extension that llhttp refuses and RFC 9112 section 7.1.1 allows: blanks around its parts. */
export function hasBlankExtension(text: string): boolean {
  return /\n[0-9a-f]+(?:[ \t]+;|[^\r\n"]*;[ \t]|;[^\r\n]*[ \t]+[;=]|;[^\r\n]*=[ \t])/i.test(text)
}

/** The data in chunks, with an odd one here and there. */
export function randomChunks(random: Random, data: string): string {
  let chunks = ''
  for (let at = 0; at < data.length; ) {
    const size = Math.min(data.length - at, 1 + random.below(12))
    const extension = random.chance(0.1) ? random.pick(EXTENSIONS) : ''
    const digits = size.toString(16)
    const [before, behind] = [randomLineEnd(random), randomLineEnd(random)]
    chunks += `${random.chance(0.05) ? `0${digits}` : digits}${extension}${before}${data.slice(at, at + size)}${behind}`
    at += size
  }
  const trailer = random.chance(0.1)
    ? random.pick(['X: y\r\n', 'Content-Length: 1\r\n', 'Host: b\r\n', 'X\r\n', 'X: a\r\n b\r\n'])
    : ''
  return `${chunks}0\r\n${trailer}\r\n`
}

function randomLineEnd(random: Random): string {
  return random.chance(0.97) ? '\r\n' : random.pick(['\r', '\n', '', '\r\r\n', '\r\n\r\n', ' \r\n'])
}

/** The text with one to three bytes put in, out or both. */
export function mutated(random: Random, text: string): string {
  let mutant = text
  for (let times = 1 + random.below(3); times > 0; times--) {
    const at = random.below(mutant.length + 1)
    const removed = random.chance(0.5) ? random.below(3) : 0
    const added = random.chance(0.8) ? random.pick(STRANGE) : ''
    mutant = mutant.slice(0, at) + added + mutant.slice(at + removed)
  }
  return mutant
}
