// The id of a request, and its place in a trace: what apps, logs and visitors tell one request from another by.

import { ascii } from './characters.ts'
import type { RequestHead } from './head.ts'

/** What ids of one visitor's connection are made of. */
export interface Tracing {
  /** 19 hexadecimal digits, random for each connection. */
  readonly seed: string
  /** The visitor is a trusted proxy, whose ids are kept. */
  readonly keepsIds: boolean
}

/** Ids of proxies that are kept: what cannot end a line or fill a log. */
const KEPT_ID = /^[\w.:/+=@-]{1,128}$/
/** https://www.w3.org/TR/trace-context/, version 00; another version that has more is none that could be continued. */
const TRACEPARENT = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-([0-9a-f]{2})$/

/** Counts the requests of this thread; with a connection's seed and the thread's mark it makes an id. */
let count = 0

/**
 * Gives the request its id and its traceparent, which `forwardRequestHead` writes. A trace that the visitor began goes on; without
 * one it begins here, sampled: nothing is recorded by this server itself. `mark`: a digit that threads differ in.
 */
export function identify(head: RequestHead, { seed, keepsIds }: Tracing, mark: '0' | '1'): void {
  count = (count + 1) % 0x1_0000_0000_0000
  const number = count.toString(16).padStart(12, '0')
  const own = `${mark}${seed}${number}`
  const given = keepsIds ? head.header('x-request-id') : undefined
  const [, trace = own, flags = '01'] = TRACEPARENT.exec(head.header('traceparent') ?? '') ?? []
  head.requestId = given !== undefined && KEPT_ID.test(given) ? given : own
  head.traceparent = `00-${trace}-${mark}${seed.slice(0, 3)}${number}-${flags}`
}

/** The `traceparent` that came with the request, if it is one that can go on. */
export function parentOf(head: RequestHead): string | undefined {
  const parent = head.header('traceparent')
  return parent !== undefined && TRACEPARENT.test(parent) ? parent : undefined
}

/** The line for the head of the answer. */
export function requestIdLine(id: string): Uint8Array {
  return ascii(`X-Request-Id: ${id}\r\n`)
}
