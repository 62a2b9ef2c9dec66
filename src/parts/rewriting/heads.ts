// Applies `Rewriting` to the lines of heads. Every other byte stays.

import type { ErrorCode } from '../../errors.ts'
import { latin1 } from '../../http/characters.ts'
import { parseRequestHead, RequestHead } from '../../http/head.ts'
import type { Rewriting } from '../../paths/rewriting.ts'

/** Returns the head for the app, which is the given one if nothing changes; or why the app gets none. */
export function rewrittenHead(head: RequestHead, rewriting: Rewriting): RequestHead | ErrorCode {
  const { bytes, fields, pathStart, targetEnd } = head
  const pieces: Uint8Array[] = []
  let from = head.start
  const replace = (start: number, end: number, text: string): void => {
    pieces.push(bytes.subarray(from, start), Buffer.from(text, 'latin1'))
    from = end
  }
  // A URL without a path, to which forwarding would add the slash.
  const isBare = pathStart === targetEnd && head.method !== 'OPTIONS'
  const path = isBare ? '/' : latin1(bytes, pathStart, targetEnd)
  const target = rewriting.target(path)
  if (target === undefined) return 'FILTERED_OUT'
  if (target !== path) replace(pathStart, targetEnd, target)
  for (let line = 0; line < fields.count; line++) {
    const name = latin1(bytes, fields.lineStart(line), fields.nameEnd(line)).toLowerCase()
    const value = fields.value(line)
    const own = rewriting.requestValue(name, value, head.hostWithPort)
    if (own !== value) replace(fields.valueStart(line), fields.valueEnd(line), own)
  }
  if (pieces.length === 0) return head
  pieces.push(bytes.subarray(from, head.end))
  return parsed(Buffer.concat(pieces), head) ?? 'BAD_REQUEST'
}

function parsed(bytes: Uint8Array, { requestId, traceparent }: RequestHead): RequestHead | undefined {
  const head = new RequestHead()
  const { length } = bytes
  // The visitor's head was within its limits.
  const limits = { maxHeadBytes: length, maxHeaderCount: length, maxTargetBytes: length }
  if (parseRequestHead(head, bytes, 0, length, limits) !== length) return undefined
  head.requestId = requestId
  head.traceparent = traceparent
  return head
}

/** Translates the head at the start of a final response, and adds the lines `ours` to it. `undefined` if nothing changes. */
export function rewrittenResponse(
  bytes: Uint8Array,
  start: number,
  end: number,
  rewriting: Rewriting,
  origin: string,
  ours: Uint8Array = NOTHING,
): Uint8Array | undefined {
  const headEnd = start + Buffer.from(bytes.buffer, bytes.byteOffset + start, end - start).indexOf('\r\n\r\n')
  if (headEnd < start) return undefined
  let isChanged = ours.length > 0
  const lines = latin1(bytes, start, headEnd).split('\r\n')
  const changed = lines.map(line => {
    const colon = line.indexOf(':')
    const value = line.slice(colon + 1).trim()
    const own = rewriting.responseValue(line.slice(0, colon).toLowerCase(), value, origin)
    if (own === value) return line
    isChanged = true
    return `${line.slice(0, colon)}: ${own}`
  })
  if (!isChanged) return undefined
  const head = Buffer.from(`${changed.join('\r\n')}\r\n`, 'latin1')
  return Buffer.concat([head, ours, bytes.subarray(headEnd + 2, end)])
}

const NOTHING = new Uint8Array(0)
