// Stores requests without a length until they are complete, and sends them with a length, for apps that cannot read
// chunked bodies.

import { ascii, joined } from '../../http/characters.ts'
import type { RequestHead } from '../../http/head.ts'
import type { Judge } from './judged-connection.ts'

/** Returns a judge that accepts every request. */
export function lengthJudge(maxBodyBytes: number): Judge {
  return {
    readsBody: true,
    maxBodyBytes,
    matches: (_target, head) => head.body === 'chunked',
    refusalOf: () => undefined,
    rewritten: (head, body) => [withLength(head, body.length), body],
  }
}

/** The names of the lines that describe chunks. */
const CHUNKED = ['transfer-encoding', 'trailer']

function withLength({ bytes, fields, start, end }: RequestHead, length: number): Uint8Array {
  const pieces: Uint8Array[] = []
  let from = start
  for (let line = 0; line < fields.count; line++) {
    if (!CHUNKED.some(name => fields.isNamed(line, name))) continue
    pieces.push(bytes.subarray(from, fields.lineStart(line)))
    from = fields.lineEnd(line)
  }
  return joined([...pieces, bytes.subarray(from, end - 2), ascii(`Content-Length: ${length}\r\n\r\n`)])
}
