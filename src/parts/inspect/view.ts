// Turns entries into the API's form.

import { ERRORS, type ErrorCode } from '../../errors.ts'
import type { ExchangeDetail, ExchangeRow, Kept, Message, Times } from '../../exchange.ts'
import type { Part } from '../../exchange-filter.ts'
import { SEARCHED_FLOOR_BYTES, shownContent, textOfContent } from './content.ts'
import type { Entry, KeptBytes } from './entry.ts'
import { fieldsOf, headerOf, headText, type Showing, targetOf, trailersOf } from './secrets.ts'

export function rowOf(entry: Entry, showing: Showing): ExchangeRow {
  return {
    id: String(entry.id),
    kind: entry.kind,
    state: entry.state,
    startedAt: new Date(entry.startedAt).toISOString(),
    tunnel: entry.place.tunnel,
    service: entry.place.service,
    method: entry.method,
    path: targetOf(entry.path, showing),
    host: entry.host,
    status: entry.status,
    reason: entry.reason,
    ...(entry.code !== undefined && { code: entry.code }),
    isRefused: entry.isRefused,
    isProbe: entry.isProbe,
    ...(entry.visitor !== undefined && { visitor: entry.visitor }),
    requestBody: keptOf(entry.requestBody),
    responseBody: keptOf(entry.responseBody),
    type: headerOf(entry.responseHead, 'content-type'),
    times: timesOf(entry),
    frames: {
      total: entry.totalFrames,
      kept: entry.frames.length,
      totalBytes: entry.framesTotalBytes,
      keptBytes: entry.framesKeptBytes,
    },
    bytesIn: entry.bytesIn,
    bytesOut: entry.bytesOut,
    ...(entry.replayOf !== undefined && { replayOf: String(entry.replayOf) }),
    isPinned: entry.isPinned,
    note: entry.note,
    ...(entry.verified !== undefined && { verified: entry.verified }),
    isIncomplete: entry.isIncomplete,
    ...(entry.event !== undefined && { event: entry.event }),
  }
}

export function detailOf(entry: Entry, showing: Showing): ExchangeDetail {
  const { requestHead, responseHead, websocket } = entry
  return {
    ...rowOf(entry, showing),
    ...(requestHead.length > 0 && {
      request: messageOf(requestHead, entry.requestBody, entry.requestTrailers, showing),
    }),
    interim: entry.interim.map(head => headText(head, showing)),
    ...(responseHead.length > 0 && {
      response: messageOf(responseHead, entry.responseBody, entry.responseTrailers, showing),
    }),
    ...(websocket !== undefined && { websocket }),
    ...(entry.code !== undefined && { explanation: explanationOf(entry.code, entry.fault) }),
    replayable: whyNotReplayable(entry) ?? true,
  }
}

function explanationOf(code: ErrorCode, fault: string | undefined): string {
  const { meaning, action } = ERRORS[code]
  return fault === undefined ? `${meaning} ${action}` : `${meaning.slice(0, -1)}: ${fault}. ${action}`
}

function messageOf(head: Uint8Array, body: KeptBytes, trailers: Uint8Array, showing: Showing): Message {
  return {
    head: headText(head, showing),
    fields: fieldsOf(head, showing),
    body: {
      ...keptOf(body),
      isComplete: body.isComplete,
      type: headerOf(head, 'content-type'),
      encoding: headerOf(head, 'content-encoding'),
    },
    trailers: trailersOf(trailers, showing),
  }
}

/** Returns the text of a part for filters, without secrets: a user who may not see a value must not find it by guessing. */
export function partOf(entry: Entry, part: Part, showing: Showing): string {
  switch (part) {
    case 'request.head':
      return headText(entry.requestHead, showing)
    case 'response.head':
      return headText(entry.responseHead, showing)
    case 'request.body':
      return searchedBody(entry, 'request', entry.requestHead, showing)
    case 'response.body':
      return searchedBody(entry, 'response', entry.responseHead, showing)
    case 'frames':
      return entry.frames.map(({ text = '' }) => text).join('\n')
  }
}

function searchedBody(
  entry: Entry,
  side: 'request' | 'response',
  head: Uint8Array,
  { secrets }: Showing,
): string {
  const content = shownContent(entry, side, true, { secrets, reveals: false }, SEARCHED_FLOOR_BYTES)
  return textOfContent(content, headerOf(head, 'content-type'))
}

function keptOf({ totalBytes, keptBytes }: KeptBytes): Kept {
  return { totalBytes, keptBytes }
}

function timesOf(entry: Entry): Times {
  const { startMark, requestEndMark, responseStartMark, endMark, waitingMs } = entry
  const between = (from: number, to: number) => Math.max(0, Math.round((to - from) * 100) / 100)
  const askedMark = requestEndMark ?? startMark
  return {
    ...(requestEndMark !== undefined && { requestMs: between(startMark, requestEndMark) }),
    ...(waitingMs !== undefined && { waitingMs }),
    ...(responseStartMark !== undefined && {
      appMs: between(askedMark > responseStartMark ? startMark : askedMark, responseStartMark),
    }),
    ...(responseStartMark !== undefined &&
      endMark !== undefined && { transferMs: between(responseStartMark, endMark) }),
    ...(endMark !== undefined && {
      totalMs: between(startMark, Math.max(endMark, requestEndMark ?? endMark)),
    }),
  }
}

/** Returns why an entry cannot be replayed. `undefined` if it can. */
export function whyNotReplayable(entry: Entry): ErrorCode | undefined {
  const isHttp = entry.kind === 'http' || entry.kind === 'sse'
  if (entry.place.isHttp2 === true) return 'REPLAY_IMPOSSIBLE'
  if (!isHttp || entry.requestHead.length === 0 || !entry.requestBody.isComplete) return 'REPLAY_IMPOSSIBLE'
  return entry.requestBody.isCut ? 'BODY_TRUNCATED' : undefined
}
