// The inspector for programs: yields exchanges as they end, and waits for one.

import type { Watched } from '../../client/contracts/part.ts'
import type { Exchange, SeenMessage, WaitOptions } from '../../client/contracts/watching.ts'
import { optionInvalid, TunnelError } from '../../errors.ts'
import { filterOf } from './api.ts'
import { contentOf, textOfContent } from './content.ts'
import type { Entry } from './entry.ts'
import type { Inspector } from './inspector.ts'
import { fieldsOf, headerOf, REVEALING, trailersOf } from './secrets.ts'
import { rowOf } from './view.ts'
import { MAX_WAIT_MS, waitForExchange } from './wait.ts'

const DEFAULT_TIMEOUT_MS = 30_000
/** The maximum number of other requests in the message of a failed wait. */
const MAX_NAMED = 5

/** Yields exchanges until the inspector or the tunnel closes. */
export async function* exchangesOf(
  inspector: Inspector,
  { tunnel, over }: Watched,
): AsyncGenerator<Exchange, void, undefined> {
  const { store, capture } = inspector
  capture.flush()
  const isOurs = (entry: Entry) =>
    !entry.isProbe && (tunnel() === undefined || entry.place.tunnel === tunnel())
  /** The ids of waiting exchanges, which use no memory beyond the store's. There are at most as many as the store keeps. */
  const waiting = [...store.entries()].filter(one => one.state !== 'open' && isOurs(one)).map(({ id }) => id)
  let wake = () => {}
  const stops = [
    store.on('ended', entry => {
      if (!isOurs(entry)) return
      waiting.push(entry.id)
      if (waiting.length > store.bounds.maxExchanges) waiting.shift()
      wake()
    }),
    inspector.on('closed', () => wake()),
  ]
  const end = () => wake()
  over.addEventListener('abort', end)
  try {
    for (;;) {
      const id = waiting.shift()
      const entry = id === undefined ? undefined : store.get(id)
      if (entry !== undefined) yield exchangeOf(entry)
      else if (id === undefined && (over.aborted || inspector.isClosed)) return
      else if (id === undefined)
        await new Promise<void>(resolve => {
          wake = resolve
        })
    }
  } finally {
    for (const stop of stops) stop()
    over.removeEventListener('abort', end)
  }
}

const taken = new WeakMap<Entry, Set<string>>()

export async function waitFor(
  inspector: Inspector,
  { tunnel, over }: Watched,
  text: string,
  { timeout = DEFAULT_TIMEOUT_MS, fresh = false, signal }: WaitOptions = {},
): Promise<Exchange> {
  if (!(timeout >= 1 && timeout <= MAX_WAIT_MS))
    throw optionInvalid(`timeout must be from 1 to ${MAX_WAIT_MS} ms, not ${timeout}.`)
  const filter = filterOf(text)
  const key = `${tunnel() ?? ''} ${text}`
  const takes = (entry: Entry) => {
    if (tunnel() !== undefined && entry.place.tunnel !== tunnel()) return false
    if (taken.get(entry)?.has(key) === true || !inspector.matches(filter, entry)) return false
    const keys = taken.get(entry) ?? new Set()
    taken.set(entry, keys.add(key))
    return true
  }
  inspector.capture.flush()
  const ends = [over, ...(signal === undefined ? [] : [signal])]
  const after = fresh ? undefined : 0
  try {
    const wait = { takes, timeoutMs: timeout, ...(after !== undefined && { after }) }
    return exchangeOf(await waitForExchange(inspector, { ...wait, signal: AbortSignal.any(ends) }))
  } catch (error) {
    if (!(error instanceof TunnelError) || error.code !== 'WAIT_TIMEOUT') throw error
    const seen = inspector.store
      .newestFirst()
      .filter(entry => tunnel() === undefined || entry.place.tunnel === tunnel())
      .slice(0, MAX_NAMED)
      .map(({ method, kind, path, status, state }) =>
        `${method || kind} ${path} ${status || (state === 'open' ? 'under way' : 'no answer')}`.slice(0, 200),
      )
    const instead = seen.length === 0 ? 'Nothing came.' : `Last came: ${seen.join(', ')}.`
    throw new TunnelError('WAIT_TIMEOUT', `Nothing that matches "${text}" ended in ${timeout} ms. ${instead}`)
  }
}

export function exchangeOf(entry: Entry): Exchange {
  return {
    ...rowOf(entry, REVEALING),
    request: entry.requestHead.length > 0 ? messageOf(entry, 'request') : undefined,
    response: entry.responseHead.length > 0 ? messageOf(entry, 'response') : undefined,
    messages: [...entry.frames],
  }
}

function messageOf(entry: Entry, side: 'request' | 'response'): SeenMessage {
  const isRequest = side === 'request'
  const body = isRequest ? entry.requestBody : entry.responseBody
  const fields = fieldsOf(isRequest ? entry.requestHead : entry.responseHead, REVEALING)
  const text = () => {
    if (body.isCut) throw new TunnelError('BODY_TRUNCATED')
    const content = contentOf(entry, side, true)
    if (content.fault !== undefined)
      throw new TunnelError('BODY_TRUNCATED', `The body cannot be decoded: ${content.fault}.`)
    return textOfContent(
      content,
      headerOf(isRequest ? entry.requestHead : entry.responseHead, 'content-type'),
    )
  }
  return {
    headers: new Headers(fields.map(({ name, value }): [string, string] => [name, value])),
    fields,
    trailers: trailersOf(isRequest ? entry.requestTrailers : entry.responseTrailers, REVEALING),
    bytes: body.bytes,
    isCut: body.isCut,
    text,
    json: () => JSON.parse(text()),
  }
}
