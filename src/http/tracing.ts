// The id of a request, and its place in a trace, by which apps, logs and visitors identify it.

import { ascii } from './characters.ts'
import type { RequestHead } from './head.ts'

/** The data from which the request ids of one visitor's connection are made. */
export interface Tracing {
  /** The seed: 19 hexadecimal digits, random for each connection. */
  readonly seed: string
  /** Whether the visitor is a trusted proxy, whose ids are kept. */
  readonly keepsIds: boolean
}

/** A pattern for ids of proxies that are kept: they can neither end a line nor fill a log. */
const KEPT_ID = /^[\w.:/+=@-]{1,128}$/
/**
 * A pattern for `traceparent` (https://www.w3.org/TR/trace-context/ section 3.2): version, trace, parent, flags, and
 * further fields of later versions.
 */
const TRACEPARENT =
  /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})((?:-.*)?)$/

/** The number of requests of this thread. With the connection's seed and the thread's mark, it makes an id. */
let count = 0

/**
 * Gives the request its id and its traceparent, which `forwardRequestHead` writes. A trace that the visitor started
 * continues; otherwise one begins here, marked as sampled, although this server records nothing. `mark`: a digit that
 * differs between threads.
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

/** Returns the `traceparent` of the request in the form of version 00. `undefined` if it cannot be continued. */
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
 * Returns the trace of a head. Section 4.3: of a later version, the known fields are used. Of the flags, only the
 * first (sampled) is known.
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
