// Writes the response of a JSON client as HTTP/1.1, with a head of our own, so that no message can break the framing.

import { STATUS_CODES } from 'node:http'
import type { Visit } from '../../server/contracts/upstream.ts'
import type { Bounds } from '../../server/settings/bounds.ts'
import { type JsonAnswer, LEFT_OUT, latin1Text, nominatedBy } from './json.ts'

/** Returns the head in Latin-1, with the right length. `undefined` if it is larger than an origin's may be. */
export function answerHead(
  answer: JsonAnswer,
  visit: Visit,
  bodyBytes: number,
  limits: Bounds,
): string | undefined {
  const { status, headers } = answer
  if (headers.length > limits.maxHeaderCount) return undefined
  const nominated = nominatedBy(headers)
  let head = `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}\r\n`
  let { hstsLine, altSvcLine } = visit
  for (const [name, value] of headers) {
    const lower = name.toLowerCase()
    if (LEFT_OUT.has(lower) || nominated?.has(lower)) continue
    if (lower === 'strict-transport-security') hstsLine = undefined
    if (lower === 'alt-svc') altSvcLine = undefined
    head += `${name}: ${value}\r\n`
  }
  const { answerLines } = visit
  if (answerLines !== undefined) head += latin1Text(answerLines, 0, answerLines.length)
  if (hstsLine !== undefined) head += latin1Text(hstsLine, 0, hstsLine.length)
  if (altSvcLine !== undefined) head += latin1Text(altSvcLine, 0, altSvcLine.length)
  head += lengthLine(answer, visit.head.method, bodyBytes)
  if (!visit.keepsAlive) head += 'Connection: close\r\n'
  else if (visit.head.minorVersion === 0) head += 'Connection: keep-alive\r\n'
  head += '\r\n'
  return head.length > limits.maxHeadBytes ? undefined : head
}

/** Whether the response has a body on the wire (RFC 9110 section 6.4.1). A body in the message is otherwise not sent. */
export function hasBody(status: number, method: string): boolean {
  return method !== 'HEAD' && status !== 204 && status !== 205 && status !== 304
}

function lengthLine(answer: JsonAnswer, method: string, bodyBytes: number): string {
  if (hasBody(answer.status, method)) return `Content-Length: ${bodyBytes}\r\n`
  if (answer.status === 205) return 'Content-Length: 0\r\n'
  if (answer.status === 204) return ''
  // The length of the response to a GET, which only the origin knows.
  const length = answer.headers.find(([name]) => name.toLowerCase() === 'content-length')?.[1]
  return length !== undefined && /^\d{1,15}$/.test(length) ? `Content-Length: ${length}\r\n` : ''
}
