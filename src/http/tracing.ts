// The id of a request, and its place in a trace: what apps, logs and visitors tell one request from another by.

import { ascii } from './characters.ts'
import type { RequestHead } from './head.ts'

/** The material for request ids of one visitor's connection. */
export interface Tracing {
  /** The seed: 19 hexadecimal digits, random for each connection. */
  readonly seed: string
  /** The visitor is a trusted proxy, whose ids are kept. */
  readonly keepsIds: boolean
}

/** Ids of proxies that are kept: what cannot end a line or fill a log. */
const KEPT_ID = /^[\w.:/+=@-]{1,128}$/
/**
 * A pattern for https://www.w3.org/TR/trace-context/ section 3.2: version, trace, parent, flags, and the further fields of
 * later versions.
 */
const TRACEPARENT =
  /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})((?:-.*)?)$/

/** Counts the requests of this thread; with a connection's seed and the thread's mark it makes an id. */
let count = 0

/**
 * Gives the request its id and its traceparent, which `forwardRequestHead` writes. A trace that the visitor started goes on; without
 * one it begins here, sampled: nothing is recorded by this server itself. `mark`: a digit that threads differ in.
 */
export function identify(head: RequestHead, { seed, keepsIds }: Tracing, mark: '0' | '1'): void {
  count = (count + 1) % 0x1_0000_0000_0000
  const number = count.toString(16).padStart(12, '0')
  const own = `${mark}${seed}${number}`
  const given = keepsIds ? head.header('x-request-id') : undefined
  const { trace = own, flags = '01' } = traceOf(head) ?? {}
  head.requestId = given !== undefined && KEPT_ID.test(given) ? given : own
  head.traceparent = `00-${trace}-${mark}${seed.slice(0, 3)}${number}-${flags}`
}

/** The `traceparent` that came with the request, as version 00 has it, if it is one that can go on. */
export function parentOf(head: RequestHead): string | undefined {
  const found = traceOf(head)
  return found && `00-${found.trace}-${found.parent}-${found.flags}`
}

interface Trace {
  readonly trace: string
  readonly parent: string
  readonly flags: string
}

/**
 * Returns the trace of a head. Section 4.3: a later version is used by its first fields. Of its flags only the first one
 * (sampled) is known.
 */
function traceOf(head: RequestHead): Trace | undefined {
  const [, version, trace = '', parent = '', flags = '', more] =
    TRACEPARENT.exec(head.header('traceparent') ?? '') ?? []
  if (version === undefined || (version === '00' && more !== '')) return undefined
  if (version === '00') return { trace, parent, flags }
  return { trace, parent, flags: Number.parseInt(flags, 16) & 1 ? '01' : '00' }
}

/** The line for the head of the response. */
export function requestIdLine(id: string): Uint8Array {
  return ascii(`X-Request-Id: ${id}\r\n`)
}
