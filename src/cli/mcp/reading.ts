// The tools that read captured exchanges and change nothing.

import { optionInvalid } from '../../errors.ts'
import type { Diff, ExchangeDetail, ExchangeRow, Frame, Session } from '../../exchange.ts'
import { diffLines } from '../captured/diff-lines.ts'
import type { InspectorSession } from '../captured/inspector-session.ts'
import { bytesOf, cutAt } from './answer.ts'
import { explained } from './explain.ts'
import { redacted, redactedValue } from './redact.ts'
import { allSessions, SESSION_ARGUMENT, type Sessions, sessionOf } from './sessions.ts'
import type { Tool } from './tool.ts'

const FILTER =
  'Filter, all terms must hold: POST, /hooks, path:/hooks/*, status:5xx, body:"text", header:name, slower:500ms, code:ORIGIN_REFUSED, is:error, is:refused, is:replay, -is:open'
const ID = { type: 'string', description: 'Id of the request, or: latest' } as const
/** The size of the rows in a reply. */
const ROWS_BYTES = 17_000
const DEFAULT_BODY_BYTES = 6_000
const MAX_BODY_BYTES = 16_000
/** The maximum length of a body that is read. With more, an agent would need hundreds of calls. */
const MAX_TEXT_CHARS = 1_048_576
/** The longest wait in seconds. Most agents' clients cancel a call after a minute. */
const MAX_WAIT_S = 300

export function readingTools(sessions: Sessions): readonly Tool[] {
  const hidden = (value: unknown) => (sessions.reveals ? value : redactedValue(value))
  const reveal = sessions.reveals ? 'reveal=1' : ''
  const detailOf = (session: InspectorSession, id: string, signal: AbortSignal) =>
    session.ask<ExchangeDetail>(`exchanges/${encodeURIComponent(id)}?${reveal}`, undefined, signal)
  return [
    {
      name: 'list_tunnels',
      title: 'List tunnels',
      description: 'Lists the public URLs that run on this machine with an inspector, and where they lead.',
      arguments: {},
      required: [],
      isReading: true,
      call: async (_, signal) => {
        const found = await Promise.all(
          allSessions(sessions).map(async ([pid, session]) => {
            const { tunnels } = await session.ask<Session>('session', undefined, signal)
            const isOwn = pid === process.pid
            return {
              session: pid,
              ...(isOwn && { sharedHere: true }),
              tunnels: tunnels.map(({ name, kind, url, service }) => ({ name, kind, url, service })),
            }
          }),
        )
        if (found.length === 0)
          return {
            said: 'No tunnel runs here with an inspector. share_port makes one; a user runs: localtunnels 3000',
          }
        return { said: JSON.stringify(found, null, 1) }
      },
    },
    {
      name: 'list_requests',
      title: 'List requests',
      description: 'Lists requests that came through a tunnel, newest first, one short row each.',
      arguments: {
        filter: { type: 'string', description: FILTER },
        limit: { type: 'integer', description: 'The maximum number. Default 20.', minimum: 1, maximum: 200 },
        before: { type: 'string', description: 'Only those older than this id: the next page.' },
        session: SESSION_ARGUMENT,
      },
      required: [],
      isReading: true,
      call: async (given, signal) => {
        const query = new URLSearchParams({
          filter: given.text('filter') ?? '',
          limit: `${given.number('limit') ?? 20}`,
        })
        const before = given.text('before')
        if (before !== undefined) query.set('before', before)
        const { exchanges, hasMore } = await sessionOf(sessions, given).ask<{
          exchanges: readonly ExchangeRow[]
          hasMore: boolean
        }>(`exchanges?${query.toString()}`, undefined, signal)
        if (exchanges.length === 0) return { said: 'No request matches.' }
        const rows: unknown[] = []
        let room = ROWS_BYTES
        for (const row of exchanges) {
          const short = hidden(shortRow(row))
          room -= bytesOf(JSON.stringify(short)) + 1
          if (room < 0) break
          rows.push(short)
        }
        const isMore = hasMore || rows.length < exchanges.length
        const last = exchanges[rows.length - 1]?.id
        return {
          said: `${rows.length} of them${isMore ? `; older ones: before = "${last}"` : ''}.`,
          captured: rows,
        }
      },
    },
    {
      name: 'get_request',
      title: 'Get a request',
      description:
        'One request with its response: heads, and the first bytes of the bodies, decoded. Secrets are masked. With part and offset: more of one body, or WebSocket messages and server-sent events.',
      arguments: {
        id: ID,
        part: {
          type: 'string',
          description: 'Default: all',
          enum: ['all', 'request.body', 'response.body', 'messages'],
        },
        offset: {
          type: 'integer',
          description: 'Of a body: from this character. Of messages: from this one. Default 0.',
          minimum: 0,
        },
        max_bytes: {
          type: 'integer',
          description: `Of each body. Default ${DEFAULT_BODY_BYTES}.`,
          minimum: 1,
          maximum: MAX_BODY_BYTES,
        },
        session: SESSION_ARGUMENT,
      },
      required: ['id'],
      isReading: true,
      call: async (given, signal) => {
        const session = sessionOf(sessions, given)
        const detail = await detailOf(session, given.text('id') ?? '', signal)
        const [offset, maxBytes] = [
          given.number('offset') ?? 0,
          given.number('max_bytes') ?? DEFAULT_BODY_BYTES,
        ]
        const part = given.text('part') ?? 'all'
        const bodyOf = async (side: 'request' | 'response') => {
          const { body } = detail[side] ?? {}
          if (body === undefined || body.totalBytes === 0) return undefined
          const bytes = await session.bytes(`exchanges/${detail.id}/${side}.body?decoded=1&${reveal}`)
          return excerpt(bytes, body, offset, maxBytes, sessions.reveals)
        }
        if (part === 'messages') {
          const query = `from=${offset}&limit=50`
          const { frames, total } = await session.ask<{ frames: readonly Frame[]; total: number }>(
            `exchanges/${detail.id}/frames?${query}`,
            undefined,
            signal,
          )
          return { said: `${frames.length} of ${total} messages, from ${offset}.`, captured: hidden(frames) }
        }
        if (part !== 'all') {
          const body = await bodyOf(part === 'request.body' ? 'request' : 'response')
          return body === undefined ? { said: 'There is no such body.' } : { captured: body }
        }
        const messageOf = async (side: 'request' | 'response') => {
          const message = detail[side]
          if (message === undefined) return undefined
          const body = await bodyOf(side)
          const trailers = message.trailers.length > 0 ? { trailers: hidden(message.trailers) } : {}
          return { head: hidden(message.head.trimEnd().split('\r\n')), ...trailers, ...(body && { body }) }
        }
        const [request, response] = await Promise.all([messageOf('request'), messageOf('response')])
        return {
          said: `Request ${detail.id}. ${explained(detail, [])[0] ?? ''}`,
          captured: { row: hidden(shortRow(detail)), request, response },
        }
      },
    },
    {
      name: 'wait_for_request',
      title: 'Wait for a request',
      description:
        'Waits until a matching request has got its response. With after: also those that are here already and newer than that id.',
      arguments: {
        filter: { type: 'string', description: FILTER },
        timeout_seconds: {
          type: 'integer',
          description: 'The maximum time. Default 30.',
          minimum: 1,
          maximum: MAX_WAIT_S,
        },
        after: { type: 'string', description: 'Id of a request, from the last list_requests.' },
        session: SESSION_ARGUMENT,
      },
      required: ['filter'],
      isReading: true,
      call: async (given, signal) => {
        const after = given.text('after')
        const asked = {
          filter: given.text('filter'),
          timeoutMs: (given.number('timeout_seconds') ?? 30) * 1_000,
          ...(after !== undefined && { after }),
        }
        const { exchange } = await sessionOf(sessions, given).ask<{ exchange: ExchangeRow }>(
          'wait',
          asked,
          signal,
        )
        return { said: `Request ${exchange.id} came.`, captured: hidden(shortRow(exchange)) }
      },
    },
    {
      name: 'explain_request',
      title: 'Explain a request',
      description:
        'Explains the result of a request: who responded, what failed and what to do, and where the time went.',
      arguments: { id: ID, session: SESSION_ARGUMENT },
      required: ['id'],
      isReading: true,
      call: async (given, signal) => {
        const session = sessionOf(sessions, given)
        const detail = await detailOf(session, given.text('id') ?? '', signal)
        const path = detail.path.split('?', 1)[0]!
        const alike = new URLSearchParams({
          filter: `method:${quoted(detail.method)} path:${quoted(path)}`,
          limit: '20',
        })
        const { exchanges } =
          detail.method === ''
            ? { exchanges: [] }
            : await session.ask<{ exchanges: readonly ExchangeRow[] }>(
                `exchanges?${alike.toString()}`,
                undefined,
                signal,
              )
        const others = exchanges.filter(({ id }) => id !== detail.id)
        return { said: explained(detail, others).join('\n'), captured: hidden(shortRow(detail)) }
      },
    },
    {
      name: 'diff_requests',
      title: 'Compare two requests',
      description: 'How two requests and their responses differ, line by line.',
      arguments: { a: ID, b: ID, session: SESSION_ARGUMENT },
      required: ['a', 'b'],
      isReading: true,
      call: async (given, signal) => {
        const query = new URLSearchParams({ a: given.text('a') ?? '', b: given.text('b') ?? '' })
        const session = sessionOf(sessions, given)
        const diff = await session.ask<Diff>(`diff?${query.toString()}&${reveal}`, undefined, signal)
        const lines = diffLines(diff)
        if (lines.length === 0) return { said: 'They are equal.' }
        return { said: `From a to b: ${diff.verdict}. - is of a, + of b.`, captured: hidden(lines) }
      },
    },
  ]
}

/** Returns the fields of a row that an agent needs. */
export function shortRow(row: ExchangeRow): object {
  const { id, startedAt, tunnel, method, kind, path, status, state, code, times, replayOf, note, verified } =
    row
  return {
    id,
    at: startedAt,
    tunnel,
    ...(kind !== 'http' && { kind }),
    ...(method !== '' && { method, path }),
    status,
    ...(state !== 'done' && { state }),
    ...(code !== undefined && { code }),
    ...(times.totalMs !== undefined && { ms: times.totalMs }),
    requestBytes: row.requestBody.totalBytes,
    responseBytes: row.responseBody.totalBytes,
    ...(row.frames.total > 0 && { messages: row.frames.total }),
    ...(replayOf !== undefined && { replayOf }),
    ...(verified !== undefined && { signature: verified.isValid ? 'valid' : (verified.reason ?? 'invalid') }),
    ...(note !== '' && { note }),
  }
}

function excerpt(
  bytes: Uint8Array,
  {
    totalBytes,
    keptBytes,
    type,
  }: { readonly totalBytes: number; readonly keptBytes: number; readonly type: string },
  offset: number,
  maxBytes: number,
  reveals: boolean,
): object {
  const about = { type, totalBytes, ...(keptBytes < totalBytes && { keptBytes }) }
  const whole = new TextDecoder().decode(bytes).slice(0, MAX_TEXT_CHARS)
  if (/[\0\ufffd]/.test(whole.slice(0, 1_000))) return { ...about, text: '(binary)' }
  // Masked as a whole, so that no excerpt begins with a part of a secret.
  const text = reveals ? whole : redacted(whole)
  const shown = cutAt(text.slice(offset, offset + maxBytes), maxBytes)
  const next = offset + shown.length
  return { ...about, text: shown, ...(next < text.length && { nextOffset: next }) }
}

/** Quotes a value for a filter. A character that would end it matches any character. */
function quoted(value: string): string {
  return `"${value.replace(/["\\]/g, '*')}"`
}

export function checkPath(path: string | undefined): void {
  // Only the app itself: an absolute URL could make an app that is a proxy call another one.
  if (path !== undefined && !path.startsWith('/'))
    throw optionInvalid('path must begin with /: replays go to the app alone.')
}
