// The filter of the requests that an app gets: the inspector's grammar, with the keys that concern a request.

import { optionInvalid, type TunnelError } from '../../errors.ts'
import type { ExchangeRow } from '../../exchange.ts'
import { isFilterFault, parseFilter } from '../../exchange-filter.ts'
import { latin1 } from '../../http/characters.ts'
import type { RequestHead } from '../../http/head.ts'
import { hasOneReading, readingsOf } from '../../paths/path-readings.ts'
import type { Judge } from './judged-connection.ts'

/** The keys whose values are known before the response. */
const KEYS: ReadonlySet<string> = new Set([
  '',
  'method',
  'path',
  'host',
  'header',
  'request.header',
  'body',
  'request.body',
])
const PATH_KEYS: ReadonlySet<string> = new Set(['', 'path'])
const BODY_KEYS: ReadonlySet<string> = new Set(['body', 'request.body'])
const MAX_BODY_BYTES = 1_048_576

/** Makes a judge from a filter. Throws `OPTION_INVALID`. */
export function filterJudge(text: string): Judge {
  const filter = parseFilter(text)
  if (isFilterFault(filter)) throw invalid(`${filter.message} (at ${filter.at + 1})`)
  for (const key of filter.keys)
    if (!KEYS.has(key))
      throw invalid(
        `${key}: is not known before there is an answer; keys are ${[...KEYS].filter(Boolean).join(', ')}`,
      )
  const readsPath = filter.keys.some(key => PATH_KEYS.has(key))
  return {
    readsBody: filter.keys.some(key => BODY_KEYS.has(key)),
    maxBodyBytes: MAX_BODY_BYTES,
    matches: () => true,
    refusalOf(head, body) {
      const textOf = (part: string) =>
        part === 'request.head'
          ? latin1(head.bytes, head.start, head.end)
          : part === 'request.body'
            ? new TextDecoder().decode(body)
            : ''
      const isTaken = (path: string) => filter.matches(rowOf(head, path), textOf)
      // All readings of the path count: a request that the filter refuses must not pass in another spelling.
      const readings = readsPath ? readingsWithQueryOf(head.path) : [head.path]
      return readings?.every(isTaken) ? undefined : { code: 'FILTERED_OUT' }
    },
  }
}

/** Returns the readings of the path, with the query. `undefined` if there are too many. */
function readingsWithQueryOf(target: string): readonly string[] | undefined {
  const end = target.search(/[?#]/)
  const path = end < 0 ? target : target.slice(0, end)
  if (hasOneReading(path)) return [target]
  return readingsOf(path)?.map(reading => reading + target.slice(path.length))
}

function rowOf(head: RequestHead, path: string): ExchangeRow {
  const nothing = { totalBytes: 0, keptBytes: 0 }
  return {
    id: '',
    kind: 'http',
    state: 'open',
    startedAt: '',
    tunnel: '',
    service: '',
    method: head.method,
    path,
    host: head.host,
    status: 0,
    reason: '',
    type: '',
    requestBody: nothing,
    responseBody: nothing,
    bytesIn: 0,
    bytesOut: 0,
    frames: { ...nothing, total: 0, kept: 0 },
    times: {},
    isRefused: false,
    isProbe: false,
    isPinned: false,
    isIncomplete: false,
    note: '',
  }
}

function invalid(what: string): TunnelError {
  return optionInvalid(`filter: ${what}.`)
}
