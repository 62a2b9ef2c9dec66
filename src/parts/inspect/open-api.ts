// The OpenAPI document of the inspector's API, served at /api/v1/openapi.json. Its types are in exchange.ts.

import {
  content,
  count,
  each,
  flag,
  type Json,
  list,
  oneOf,
  record,
  ref,
  text,
  time,
} from '../../json-schema.ts'

const number: Json = { type: 'number' }
const kept = each(count, 'totalBytes keptBytes')
const verdict = oneOf('same', 'fixed', 'regressed', 'different')
const compared = (value: Json): Json => record({ ...each(value, 'a b'), isSame: flag })

const row: Readonly<Record<string, Json>> = {
  id: { type: 'string', pattern: '^[0-9]+$' },
  kind: oneOf('http', 'websocket', 'sse', 'tcp', 'tls', 'udp'),
  state: oneOf('open', 'done', 'failed'),
  startedAt: time,
  ...each(text, 'tunnel service method path host reason code? visitor? type replayOf? note event?'),
  ...each(count, 'status bytesIn bytesOut'),
  ...each(flag, 'isRefused isProbe isPinned isIncomplete'),
  ...each(ref('Kept'), 'requestBody responseBody'),
  times: ref('Times'),
  frames: record({ ...kept, ...each(count, 'total kept') }),
  'verified?': ref('Verified'),
}

const schemas: Readonly<Record<string, Json>> = {
  Kept: record(kept),
  Field: record({ ...each(text, 'name value'), 'isSecret?': flag }),
  Body: record({ ...kept, isComplete: flag, ...each(text, 'type encoding') }),
  Message: record({ head: text, ...each(list(ref('Field')), 'fields trailers'), body: ref('Body') }),
  Times: record(each(number, 'requestMs? waitingMs? appMs? transferMs? totalMs?')),
  Verified: record({
    provider: oneOf('standard', 'stripe', 'github', 'slack', 'shopify'),
    isValid: flag,
    'reason?': text,
  }),
  ExchangeRow: record(row),
  ExchangeDetail: record({
    ...row,
    ...each(ref('Message'), 'request? response?'),
    interim: list(text),
    'websocket?': record({ protocol: text, isCompressed: flag }),
    explanation: text,
    replayable: { description: 'true, or the code that says why not', type: ['boolean', 'string'] },
  }),
  Frame: record({
    ...kept,
    ...each(count, 'index closeCode?'),
    atMs: number,
    from: oneOf('visitor', 'app'),
    type: oneOf('text', 'binary', 'ping', 'pong', 'close', 'event'),
    ...each(text, 'text? base64? event? eventId?'),
    'isCompressed?': flag,
  }),
  Session: record({
    ...each(text, 'version store?'),
    startedAt: time,
    tunnels: list(record({ kind: oneOf('http', 'tcp', 'tls', 'udp'), ...each(text, 'name url service') })),
    bounds: record(each(count, 'memoryBytes maxBodyBytes maxExchanges maxFrames rate')),
    used: record(each(count, 'memoryBytes exchanges frames pinned')),
    dropped: record(each(count, 'exchanges bytes unsampled')),
    isSampling: flag,
  }),
  Edit: record({
    ...each(text, 'method? path? body? bodyBase64?'),
    'fields?': list(record(each(text, 'name value'))),
  }),
  ReplayRequest: record({
    'edit?': ref('Edit'),
    'times?': { type: 'integer', minimum: 1, maximum: 100 },
    'resign?': flag,
  }),
  ReplayResult: record({ replays: list(record({ exchange: ref('ExchangeRow'), verdict })) }),
  MessageDiff: record({
    first: compared(text),
    fields: list(record({ name: text, ...each({ type: ['string', 'null'] }, 'a b'), isSame: flag })),
    body: record({
      isSame: flag,
      kind: oneOf('text', 'json', 'binary', 'cut'),
      parts: list(record({ op: oneOf('same', 'removed', 'added'), text })),
    }),
  }),
  Diff: record({
    ...each(ref('ExchangeRow'), 'a b'),
    verdict,
    ...each(ref('MessageDiff'), 'request response'),
  }),
  WaitRequest: record({
    ...each(text, 'filter? after?'),
    'timeoutMs?': { type: 'integer', minimum: 1, maximum: 600_000 },
  }),
  Error: record({ error: record(each(text, 'code message')) }),
}

const query = (name: string, schema: Json, description: string): Json => ({
  name,
  in: 'query',
  schema,
  description,
})
const id: Json = { name: 'id', in: 'path', required: true, schema: text, description: 'An id, or `latest`' }
const reveal = query('reveal', oneOf('1'), 'Shows secrets; without it they are masked')
const filter = query('filter', text, 'See docs/inspector.md; 400 OPTION_INVALID')

const json = (schema: Json, description = 'It worked'): Json => ({ description, content: content(schema) })
const failed = json(ref('Error'), 'It did not; see the code')
const body = (schema: Json, required = true): Json => ({
  requestBody: { required, content: content(schema) },
})

interface Operation {
  readonly summary: string
  readonly parameters?: readonly Json[]
  readonly body?: Json
  readonly ok: Json
  /** Whether it needs no token. */
  readonly isOpen?: boolean
}

function operation({ summary, parameters = [], body: sent, ok, isOpen }: Operation): Json {
  // A request body is a property of an operation.
  const more = (sent ?? {}) as { readonly [key: string]: Json }
  const open: { readonly [key: string]: Json } = isOpen === true ? { security: [] } : {}
  return { summary, parameters, ...more, ...open, responses: { '200': ok, default: failed } }
}

const bytes = (part: string): Operation => ({
  summary: `The ${part}, as far as it is kept`,
  parameters: [
    id,
    query('decoded', oneOf('1'), 'gzip, deflate, br and zstd undone; at most 16 times maxBody'),
    query('download', oneOf('1'), 'As an attachment, with a file name'),
    reveal,
  ],
  ok: {
    description:
      'Always as application/octet-stream, with `X-Content-Type-Options: nosniff`: a captured page must not run here',
    content: { 'application/octet-stream': {} },
  },
})

/** The operations of the API: the only list, which tests compare with the routes. */
export const OPEN_API: Json = {
  openapi: '3.1.0',
  info: {
    title: 'localtunnels inspector',
    version: '1',
    description:
      'Exchanges that came through the tunnels of one client. Only on the loopback addresses, with a token.',
  },
  servers: [{ url: '/api/v1' }],
  security: [{ token: [] }],
  paths: {
    '/proof': {
      get: operation({
        summary: 'Without a token: proof that the inspector knows it, to ask for before the token is sent',
        parameters: [
          query('nonce', { type: 'string', pattern: '^[0-9a-f]{64}$' }, '32 random bytes, new each time'),
        ],
        ok: json(
          record({ proof: { type: 'string', pattern: '^[0-9a-f]{64}$' } }),
          'HMAC-SHA-256 with the token as key, of the lines `inspector`, origin and nonce, without a last newline',
        ),
        isOpen: true,
      }),
    },
    '/session': {
      get: operation({ summary: 'Tunnels, bounds and what of them is used', ok: json(ref('Session')) }),
    },
    '/exchanges': {
      get: operation({
        summary: 'Rows, newest first',
        parameters: [
          filter,
          query('before', text, 'Only those with a smaller id: the last one of the page before'),
          query('limit', { type: 'integer', minimum: 1, maximum: 1_000, default: 100 }, 'At most so many'),
        ],
        ok: json(record({ exchanges: list(ref('ExchangeRow')), hasMore: flag })),
      }),
      delete: operation({
        summary: 'Forgets all that are not pinned; with a filter, those of them that match',
        parameters: [
          filter,
          query('pinned', oneOf('1'), 'Pinned ones, too'),
          query('upTo', text, 'None with a greater id: the newest that was seen'),
        ],
        ok: json(record({ removed: count })),
      }),
    },
    '/exchanges.har': {
      get: operation({
        summary: 'All that match as HAR 1.2, oldest first; secrets are left out unless revealed',
        parameters: [filter, reveal],
        ok: json({ type: 'object' }),
      }),
    },
    '/exchanges/{id}': {
      get: operation({ summary: 'One in full', parameters: [id, reveal], ok: json(ref('ExchangeDetail')) }),
      delete: operation({ summary: 'Forgets one', parameters: [id], ok: json(record({ removed: count })) }),
    },
    '/exchanges/{id}/request.body': { get: operation(bytes('body of the request')) },
    '/exchanges/{id}/response.body': { get: operation(bytes('body of the answer')) },
    '/exchanges/{id}/frames': {
      get: operation({
        summary: 'WebSocket messages or server-sent events, oldest first',
        parameters: [
          id,
          query('from', count, 'The first index wanted. Default 0'),
          query('limit', { type: 'integer', minimum: 1, maximum: 1_000, default: 200 }, 'At most so many'),
          query('text', text, 'Only those with this text; with it or `by` the newest, and how many match'),
          query('by', oneOf('visitor', 'app'), 'Only those that it sent'),
        ],
        ok: json(record({ frames: list(ref('Frame')), ...each(count, 'total matching?') })),
      }),
    },
    '/exchanges/{id}/as/{format}': {
      get: operation({
        summary: 'For use elsewhere; secrets are left out unless revealed',
        parameters: [
          id,
          {
            name: 'format',
            in: 'path',
            required: true,
            schema: oneOf('curl', 'fetch', 'har', 'http', 'bun-test', 'vitest', 'node-test'),
          },
          reveal,
        ],
        ok: { description: 'Text', content: { 'text/plain': {}, 'application/json': {} } },
      }),
    },
    '/exchanges/{id}/replay': {
      post: operation({
        summary: 'Sends it again, to the service that it went to; answers when all are over',
        parameters: [id],
        body: body(ref('ReplayRequest'), false),
        ok: json(ref('ReplayResult')),
      }),
    },
    '/exchanges/{id}/pin': {
      put: operation({
        summary:
          'Keeps it when older ones are dropped, or not any more. Pins use at most half of each bound: else 409',
        parameters: [id],
        body: body(record({ isPinned: flag })),
        ok: json(ref('ExchangeRow')),
      }),
    },
    '/exchanges/{id}/note': {
      put: operation({
        summary: 'Up to 2,000 characters about it; empty removes the note',
        parameters: [id],
        body: body(record({ note: { type: 'string', maxLength: 2_000 } })),
        ok: json(ref('ExchangeRow')),
      }),
    },
    '/diff': {
      get: operation({
        summary: 'Two exchanges side by side',
        parameters: [query('a', text, 'An id'), query('b', text, 'An id'), reveal],
        ok: json(ref('Diff')),
      }),
    },
    '/events': {
      get: operation({
        summary: 'What happens from now on, as lines of JSON (InspectEvent of exchange.ts)',
        parameters: [filter, query('frames', oneOf('1'), 'Also lines for frames')],
        ok: { description: 'A stream that ends with the client', content: { 'application/x-ndjson': {} } },
      }),
    },
    '/wait': {
      post: operation({
        summary: 'Answers with the first exchange that matches and has ended; 408 WAIT_TIMEOUT',
        body: body(ref('WaitRequest'), false),
        ok: json(record({ exchange: ref('ExchangeRow') })),
      }),
    },
    '/openapi.json': { get: operation({ summary: 'This document', ok: json({ type: 'object' }) }) },
  },
  components: {
    securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
    schemas,
  },
}
