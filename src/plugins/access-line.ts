// One line of the access log.

import type { Outcome, Seen } from '../plugin.ts'

type Middle = Pick<Seen, 'kind' | 'tunnel' | 'address' | 'method' | 'host'>
type Served = Pick<Outcome, 'client' | 'token'>

/** The duration, in hundredths of a millisecond, below which its text is cached, because formatting a fraction is slow. */
const MAX_KEPT_HUNDREDTHS = 1_000

/** The middle of the previous line, which most lines share. */
let last: { readonly seen: Middle; readonly outcome: Served; readonly text: string } | undefined
let lastMs = 0
let lastTime = ''
const keptTimes: string[] = []

/**
 * Returns a line, composed by hand: `JSON.stringify` takes three times as long. `writer`: a field about the writing
 * process, with a comma before it; or empty.
 */
export function accessLine(seen: Seen, outcome: Outcome, withQuery: boolean, writer = ''): string {
  const { id, kind, target, requestId } = seen
  const { status, durationMs, waitMs, appMs, requestBytes, responseBytes, code, reason } = outcome
  const ofRequest =
    kind === 'http' ? `,"path":${quoted(withQuery ? target : pathOf(target))},"status":${status}` : ''
  return (
    `{"time":"${timeNow()}","id":${id}${requestId === undefined ? '' : `,"requestId":${quoted(requestId)}`}${writer}${middleOf(seen, outcome)}${ofRequest}` +
    `,"ms":${timeOf(durationMs)},"waitMs":${timeOf(waitMs)},"appMs":${timeOf(appMs)},"transferMs":${timeOf(durationMs - waitMs - appMs)}` +
    `,"requestBytes":${requestBytes},"responseBytes":${responseBytes}${code === undefined ? '' : `,"code":"${code}"`}${reason === undefined ? '' : `,"reason":${quoted(reason)}`}}\n`
  )
}

/** Returns the fields of a line without the path. */
export function middleOf(seen: Middle, outcome: Served): string {
  if (last !== undefined && isAlike(last.seen, seen) && isServedAlike(last.outcome, outcome)) return last.text
  const { kind, tunnel, address, method, host } = seen
  const { client, token } = outcome
  const text =
    `,"kind":"${kind}","tunnel":${quoted(tunnel)}${client === undefined ? '' : `,"client":${client}`}` +
    `${token === undefined ? '' : `,"token":${quoted(token)}`},"address":${quoted(address)}` +
    `${kind === 'http' ? `,"method":${quoted(method)},"host":${quoted(host)}` : ''}`
  last = { seen, outcome, text }
  return text
}

function isAlike(one: Middle, other: Middle): boolean {
  return (
    one.kind === other.kind &&
    one.tunnel === other.tunnel &&
    one.address === other.address &&
    one.method === other.method &&
    one.host === other.host
  )
}

function isServedAlike(one: Served, other: Served): boolean {
  return one.client === other.client && one.token === other.token
}

function pathOf(target: string): string {
  const query = target.indexOf('?')
  const fragment = target.indexOf('#')
  if (query < 0 && fragment < 0) return target
  return target.slice(0, fragment < 0 ? query : query < 0 ? fragment : Math.min(query, fragment))
}

/** Quotes a text. Nearly all texts need no escapes. */
function quoted(text: string): string {
  return /^[\x20-\x21\x23-\x5b\x5d-\x7e]*$/.test(text) ? `"${text}"` : JSON.stringify(text)
}

/** Returns milliseconds rounded to hundredths. */
function timeOf(ms: number): string {
  const hundredths = Math.max(0, Math.round(ms * 100))
  if (hundredths >= MAX_KEPT_HUNDREDTHS) return String(hundredths / 100)
  keptTimes[hundredths] ??= String(hundredths / 100)
  return keptTimes[hundredths]
}

/** Returns the time as text. Many lines have the same millisecond. */
function timeNow(): string {
  const now = Date.now()
  if (now !== lastMs) {
    lastMs = now
    lastTime = new Date(now).toISOString()
  }
  return lastTime
}
