// A visitor's request as the JSON wire tells it: forwarded like any other, then taken apart into a path and pairs.

import { latin1, SP } from '../../http/characters.ts'
import {
  CONNECTION,
  CONTENT_LENGTH,
  EXPECT,
  HOST,
  TE,
  TRANSFER_ENCODING,
  UPGRADE,
} from '../../http/field-names.ts'
import { Fields } from '../../http/fields.ts'
import { forwardRequestHead, maxForwardedBytes } from '../../http/forward.ts'
import type { HeaderList } from '../../wire/json.ts'
import type { Visit } from '../upstream.ts'

/** What a message says of a request, besides its body. */
export interface RequestParts {
  readonly path: string
  readonly headers: HeaderList
}

/** The message frames the body, the connection to the origin is the client's, and Host is in X-Forwarded-Host. */
const LEFT_OUT: ReadonlySet<number> = new Set([
  HOST,
  CONNECTION,
  UPGRADE,
  TE,
  EXPECT,
  CONTENT_LENGTH,
  TRANSFER_ENCODING,
])
/** Lines that forwarding may add. */
const MAX_ADDED_LINES = 8
const LF = 10
const ASTERISK = 0x2a

// Shared by all requests: one is taken apart within one call.
let scratch = new Uint8Array(16_384)
const fields = new Fields()

/** `undefined` for `OPTIONS *`: a path of this wire begins with a slash, whatever clients make of others. */
export function requestParts(visit: Visit): RequestParts | undefined {
  const { head } = visit
  const needed = maxForwardedBytes(head.end - head.start)
  if (scratch.length < needed) scratch = new Uint8Array(needed)
  const end = forwardRequestHead(head, visit.hop(undefined), scratch, 0)
  const pathStart = scratch.indexOf(SP) + 1
  if (scratch[pathStart] === ASTERISK) return undefined
  const path = latin1(scratch, pathStart, scratch.indexOf(SP, pathStart))
  fields.begin(scratch, scratch.indexOf(LF) + 1)
  fields.scan(scratch, fields.nextLine, end, head.headerCount + MAX_ADDED_LINES)
  const headers: [string, string][] = []
  for (let line = 0; line < fields.count; line++) {
    if (!LEFT_OUT.has(fields.kind(line))) headers.push([fields.name(line), fields.value(line)])
  }
  return { path: escaped(path), headers }
}

/** Raw bytes above ASCII would become other bytes on their way through a client's URL; escaped ones stay the same. */
function escaped(path: string): string {
  return path.replace(/[\x80-\xff]/g, byte => `%${byte.charCodeAt(0).toString(16).toUpperCase()}`)
}
