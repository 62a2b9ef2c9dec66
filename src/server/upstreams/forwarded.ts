// One array for all heads that the server forwards: a head is built in it and sent on within one call.

import { copyBytes } from '../../bytes.ts'
import { CR, LF } from '../../http/characters.ts'
import {
  type AnswerStyle,
  forwardRequestHead,
  forwardResponseHead,
  maxForwardedBytes,
} from '../../http/forward.ts'
import type { RequestHead, ResponseHead } from '../../http/head.ts'
import type { Rewrite, Visit } from '../contracts/upstream.ts'

/** The beginning of a body that arrived with its head is sent with it in one write, up to this size together. */
const SCRATCH_BYTES = 262_144

/** Reused: to keep bytes of it, copy them. A longer head replaces it by a longer array. */
export let scratch: Uint8Array = new Uint8Array(SCRATCH_BYTES)

/** Writes the head of a request as the origin gets it. Returns where it ends. */
export function writeRequestHead(visit: Visit, rewrite: Rewrite | undefined): number {
  makeRoomFor(visit.head)
  return forwardRequestHead(visit.head, visit.hop(rewrite), scratch, 0)
}

/** Writes the head of a request unchanged, with a line in front of the others. Returns where it ends. */
export function writeHeadWithLine({ head }: Visit, line: Uint8Array): number {
  const { bytes, start, end, fields } = head
  const firstLine = fields.count === 0 ? end - 2 : fields.lineStart(0)
  makeRoomFor(head)
  copyBytes(bytes, start, firstLine, scratch, 0)
  scratch.set(line, firstLine - start)
  copyBytes(bytes, firstLine, end, scratch, firstLine - start + line.length)
  return end - start + line.length
}

/** Writes the head of an interim response as the visitor gets it. Returns where it ends. */
export function writeInterimHead(answer: ResponseHead, style: AnswerStyle): number {
  makeRoomFor(answer)
  return forwardResponseHead(answer, style, scratch, 0)
}

/** Writes the head of the final response, with the server's own lines. Returns where it ends. */
export function writeAnswerHead(answer: ResponseHead, style: AnswerStyle, visit: Visit): number {
  let end = addLine(writeInterimHead(answer, style), visit.answerLines)
  const { hstsLine, altSvcLine } = visit
  if (hstsLine !== undefined && answer.header('strict-transport-security') === undefined)
    end = addLine(end, hstsLine)
  if (altSvcLine !== undefined && answer.header('alt-svc') === undefined) end = addLine(end, altSvcLine)
  return end
}

/** Puts a piece of the body behind a head that ends at `end`. `false`: it does not fit. */
export function addBody(end: number, bytes: Uint8Array, from: number, to: number): boolean {
  if (end + to - from > scratch.length) return false
  if (to > from) copyBytes(bytes, from, to, scratch, end)
  return true
}

/** Adds whole header lines to the head that ends at `end`, in front of its blank line. Returns its new end. */
function addLine(end: number, lines: Uint8Array | undefined): number {
  if (lines === undefined) return end
  // The room that `maxForwardedBytes` leaves is for a request's own lines: a response has hardly any.
  scratch.set(lines, end - 2)
  scratch[end + lines.length - 2] = CR
  scratch[end + lines.length - 1] = LF
  return end + lines.length
}

function makeRoomFor(head: RequestHead | ResponseHead): void {
  const needed = maxForwardedBytes(head.end - head.start)
  if (scratch.length < needed) scratch = new Uint8Array(needed)
}
