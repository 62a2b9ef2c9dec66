// Compares two exchanges.

import type { Diff, DiffPart, MessageDiff, ReplayResult } from '../../exchange.ts'
import { contentOf, shownContent, textOfContent } from './content.ts'
import type { Entry } from './entry.ts'
import { formatJson } from './json-text.ts'
import { fieldsOf, headerOf, REVEALING, type Showing, targetOf } from './secrets.ts'
import { rowOf } from './view.ts'

type Side = 'request' | 'response'
type Verdict = ReplayResult['replays'][number]['verdict']

/** The maximum length of texts that are compared by line. Lines of two megabytes each would keep the client busy for seconds. */
const MAX_TEXT_CHARS = 1_000_000
/** The time in milliseconds for finding differing lines. After it, the whole texts count as different. */
const DIFF_TIMEOUT_MS = 500

/** Returns the verdict on a replay. An error is a status of 500 or above, or no response. */
export function verdictOf(before: Entry, after: Entry): Verdict {
  const [was, is] = [isError(before), isError(after)]
  if (was && !is) return 'fixed'
  if (!was && is) return 'regressed'
  return before.status === after.status && isSameBody(before, after, 'response') ? 'same' : 'different'
}

function isError({ status, state }: Entry): boolean {
  return state === 'failed' || status === 0 || status >= 500
}

export async function compare(a: Entry, b: Entry, { secrets }: Showing): Promise<Diff> {
  const masked: Showing = { secrets, reveals: false }
  return {
    a: rowOf(a, masked),
    b: rowOf(b, masked),
    verdict: verdictOf(a, b),
    request: await compareMessages(a, b, 'request', masked),
    response: await compareMessages(a, b, 'response', masked),
  }
}

async function compareMessages(a: Entry, b: Entry, side: Side, showing: Showing): Promise<MessageDiff> {
  const first = (entry: Entry, one: Showing) =>
    side === 'request'
      ? `${entry.method} ${targetOf(entry.path, one)}`
      : `${entry.status || ''} ${entry.reason}`.trim()
  return {
    first: {
      a: first(a, showing),
      b: first(b, showing),
      isSame: first(a, REVEALING) === first(b, REVEALING),
    },
    fields: compareFields(headOf(a, side), headOf(b, side), showing),
    body: await compareBodies(a, b, side, showing),
  }
}

function headOf(entry: Entry, side: Side): Uint8Array {
  return side === 'request' ? entry.requestHead : entry.responseHead
}

function compareFields(a: Uint8Array, b: Uint8Array, masked: Showing): MessageDiff['fields'] {
  // The real values are compared, and the masked values are shown.
  const list = (head: Uint8Array) => {
    const shown = fieldsOf(head, masked)
    return fieldsOf(head, REVEALING).map((field, index) => ({ ...field, shown: shown[index]!.value }))
  }
  const rest = list(b)
  const both = list(a).map(({ name, value, shown }) => {
    const index = rest.findIndex(other => other.name.toLowerCase() === name.toLowerCase())
    const [other] = index < 0 ? [] : rest.splice(index, 1)
    return { name, a: shown, b: other?.shown ?? null, isSame: other?.value === value }
  })
  return [...both, ...rest.map(({ name, shown }) => ({ name, a: null, b: shown, isSame: false }))]
}

function isSameBody(a: Entry, b: Entry, side: Side): boolean {
  const [one, other] = [a, b].map(entry => (side === 'request' ? entry.requestBody : entry.responseBody))
  if (one!.totalBytes !== other!.totalBytes) return false
  return Buffer.compare(contentOf(a, side, true).bytes, contentOf(b, side, true).bytes) === 0
}

async function compareBodies(a: Entry, b: Entry, side: Side, masked: Showing): Promise<MessageDiff['body']> {
  const bodyOf = (entry: Entry) => (side === 'request' ? entry.requestBody : entry.responseBody)
  const isCut = bodyOf(a).isCut || bodyOf(b).isCut
  const [one, other] = [contentOf(a, side, true), contentOf(b, side, true)]
  const isSame = Buffer.compare(one.bytes, other.bytes) === 0 && bodyOf(a).totalBytes === bodyOf(b).totalBytes
  const textOf = (entry: Entry) =>
    textOfContent(shownContent(entry, side, true, masked), headerOf(headOf(entry, side), 'content-type'))
  const [text, otherText] = [textOf(a), textOf(b)]
  if (isBinary(text) || isBinary(otherText)) return { isSame, kind: isCut ? 'cut' : 'binary', parts: [] }
  const [json, otherJson] = [formatJson(text), formatJson(otherText)]
  const isJson = json !== undefined && otherJson !== undefined
  const parts = await linesOf(isJson ? `${json}\n` : text, isJson ? `${otherJson}\n` : otherText)
  return { isSame, kind: isCut ? 'cut' : isJson ? 'json' : 'text', parts }
}

async function linesOf(a: string, b: string): Promise<DiffPart[]> {
  if (a === b) return a === '' ? [] : [{ op: 'same', text: a }]
  const whole: DiffPart[] = [
    { op: 'removed', text: a },
    { op: 'added', text: b },
  ]
  if (a.length + b.length > MAX_TEXT_CHARS) return whole
  const { diffLines } = await import('diff')
  // Two texts without common lines would take quadratic time.
  const parts = diffLines(a, b, { timeout: DIFF_TIMEOUT_MS })
  return (
    parts?.map(({ added, removed, value }) => ({
      op: added ? 'added' : removed ? 'removed' : 'same',
      text: value,
    })) ?? whole
  )
}

/** Whether the bytes are not text. A few invalid characters do not make a text binary. */
function isBinary(text: string): boolean {
  return text.includes('\u0000') || (text.match(/\ufffd/g)?.length ?? 0) > text.length / 10
}

/** Returns the Content-Type without parameters, in lower case. */
export function typeOf(head: Uint8Array): string {
  return headerOf(head, 'content-type').split(';')[0]!.trim().toLowerCase()
}
