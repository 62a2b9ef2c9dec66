// The OpenAPI document of the admin API, served at /api/v1/openapi.json.

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
import { VERSION } from '../../version.ts'

const number: Json = { type: 'number', minimum: 0 }
const kind = oneOf('http', 'tcp', 'udp', 'tls', 'private')

/** A pattern for an address with a prefix length. */
const OCTET = '(?:25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])'
const GROUP = '[0-9A-Fa-f]{1,4}'
const NETWORK = `^(?:(?:${OCTET}\\.){3}${OCTET}/(?:3[0-2]|[12]?[0-9])|(?:(?:${GROUP}:){7}${GROUP}|(?:${GROUP}:){1,6}:(?:${GROUP})?|::(?:${GROUP})?)/(?:12[0-8]|1[01][0-9]|[1-9]?[0-9]))$`

const schemas: Readonly<Record<string, Json>> = {
  Error: record({ error: record(each(text, 'code message')) }),
  Status: record({
    status: oneOf('operational', 'draining', 'stopped'),
    ...each(text, 'domain version uptime'),
    ...each(count, 'connections totalConnections activeSubdomains rawVisitors totalRawVisitors flows'),
    ...each(count, 'droppedDatagrams pendingResponses requests uptimeSeconds bytesIn bytesOut'),
  }),
  Node: record({
    ...each(text, 'id url version?'),
    ...each(flag, 'isSelf isReachable'),
    ...each(count, 'inFlight uptimeSeconds? clients? tunnels? requests? pending?'),
    'recent?': ref('Recent'),
  }),
  Probe: record({ at: time, status: count, durationMs: number, 'code?': text }),
  Tunnel: record({
    kind,
    state: oneOf('up', 'reconnecting', 'unhealthy'),
    ...each(text, 'name url server? token?'),
    ...each(count, 'inFlight requests errors bytesIn bytesOut'),
    clients: list(count),
    isGuarded: flag,
    recent: ref('Recent'),
    codes: { type: 'object', additionalProperties: count },
    'lastProvenAt?': time,
    'lastProbe?': ref('Probe'),
  }),
  Recent: record({
    ...each(number, 'seconds processors?'),
    ...each(count, 'requests errors bytesIn bytesOut memoryBytes?'),
    durations: list(count),
  }),
  Client: record({
    number: count,
    wire: oneOf('streams', 'json'),
    ...each(text, 'address server? agent? token?'),
    connectedAt: time,
    'roundTripMs?': number,
    tunnels: list(text),
  }),
  Traffic: record({
    at: time,
    tunnel: text,
    ...each(count, 'requests errors bytesIn bytesOut'),
    'durations?': list(count),
  }),
  Ban: record({
    id: count,
    kind: oneOf('address', 'tunnel'),
    ...each(text, 'value reason'),
    ...each(time, 'since until?'),
  }),
  NewBan: {
    type: 'object',
    required: ['value'],
    properties: {
      kind: oneOf('address', 'tunnel'),
      value: { type: 'string', minLength: 1, maxLength: 255 },
      reason: { type: 'string', maxLength: 1_000 },
      forSeconds: { type: 'integer', minimum: 1, maximum: 315_360_000 },
    },
    if: { required: ['kind'], properties: { kind: { const: 'tunnel' } } },
    else: {
      properties: { value: { anyOf: [{ format: 'ipv4' }, { format: 'ipv6' }, { pattern: NETWORK }] } },
    },
  },
  Token: record({ name: text, ...each(time, 'createdAt expiresAt? lastUsedAt?'), scope: { type: 'object' } }),
  NewToken: {
    type: 'object',
    required: ['name'],
    properties: {
      name: { type: 'string', pattern: '^[A-Za-z0-9_.-]{1,64}$' },
      names: { ...list({ type: 'string', pattern: '^[A-Za-z0-9*-]+$' }), minItems: 1, maxItems: 100 },
      kinds: { ...list(kind), minItems: 1, maxItems: 100 },
      reserve: flag,
      forSeconds: { type: 'integer', minimum: 1, maximum: 315_360_000 },
    },
  },
  TokenSecret: record(each(text, 'name token')),
  Certificate: record({ name: text, notAfter: time, daysLeft: { type: 'integer' } }),
  AuditEntry: record({ at: time, ...each(text, 'action actor subject detail?') }),
}

const query = (name: string, schema: Json): Json => ({ name, in: 'query', schema })
const named: readonly Json[] = [{ name: 'id', in: 'path', required: true, schema: text }]
const numbered: readonly Json[] = [{ name: 'id', in: 'path', required: true, schema: count }]
const limit = query('limit', { type: 'integer', minimum: 1, maximum: 1_000 })

interface Shape {
  readonly summary: string
  readonly parameters?: Json
  readonly body?: Json
  readonly status?: number
}

function operation({ summary, parameters, body, status = 200 }: Shape, answer: Json): Json {
  const refused = { description: 'Why not.', content: content(ref('Error')) }
  return {
    summary,
    ...(parameters !== undefined && { parameters }),
    ...(body !== undefined && { requestBody: { required: true, content: content(body) } }),
    responses: {
      [status]: { description: 'Done.', content: content(answer) },
      '400': refused,
      '401': refused,
      '429': refused,
      ...(Array.isArray(parameters) && [named[0], numbered[0]].some(one => parameters.includes(one))
        ? { '404': refused }
        : {}),
    },
  }
}

export const OPEN_API: { readonly [key: string]: Json } = {
  openapi: '3.1.0',
  info: {
    title: 'localtunnels admin API',
    version: VERSION,
    description:
      'For the operator of a tunnel server, at its admin listener. `/metrics` beside it is for Prometheus.',
  },
  servers: [{ url: '/api/v1', description: 'At the address of this document.' }],
  security: [{ token: [] }],
  paths: {
    '/status': { get: operation({ summary: 'Counters of the server.' }, ref('Status')) },
    '/recent': {
      get: operation(
        { summary: 'What all tunnels did in the last five minutes.' },
        record({ recent: ref('Recent') }),
      ),
    },
    '/views/{id}': {
      get: operation(
        {
          summary:
            'All that one view of the page shows, such as `overview`. It may change with each version.',
          parameters: [
            ...named,
            query('q', text),
            query('sort', text),
            query('only', oneOf('all', 'errors', 'down', 'raw', 'open')),
            query('range', oneOf('hour', 'day', 'week')),
            query('tunnel', text),
            limit,
          ],
        },
        { type: 'object' },
      ),
    },
    '/tunnels': { get: operation({ summary: 'All tunnels.' }, record({ tunnels: list(ref('Tunnel')) })) },
    '/tunnels/{id}': {
      get: operation({ summary: 'One tunnel, by its name.', parameters: named }, ref('Tunnel')),
      delete: operation(
        {
          summary:
            'Takes a tunnel back. Its client gets the reason, and may ask again: ban the name to keep it.',
          parameters: named,
        },
        record({ closed: text }),
      ),
    },
    '/tunnels/{id}/probe': {
      post: operation(
        { summary: 'Asks the app of an HTTP tunnel for HEAD / now, through its client.', parameters: named },
        ref('Probe'),
      ),
    },
    '/clients': {
      get: operation({ summary: 'Clients that are connected.' }, record({ clients: list(ref('Client')) })),
    },
    '/clients/{id}': {
      delete: operation(
        { summary: 'Closes the connection of a client.', parameters: numbered },
        record({ closed: count }),
      ),
    },
    '/traffic': {
      get: operation(
        {
          summary:
            'Traffic by the minute (a day), the hour (60 days) or the day (three years), the newest first; of all servers, one of them, or a tunnel; of other servers 60 minutes and 168 hours.',
          parameters: [
            query('by', oneOf('minute', 'hour', 'day')),
            query('tunnel', text),
            query('server', text),
            limit,
          ],
        },
        record({ by: text, isKept: flag, traffic: list(ref('Traffic')) }),
      ),
    },
    '/bans': {
      get: operation({ summary: 'The bans: who is kept away.' }, record({ bans: list(ref('Ban')) })),
      post: operation(
        { summary: 'Keeps an address, a network or a name away.', body: ref('NewBan'), status: 201 },
        ref('Ban'),
      ),
    },
    '/bans/{id}': {
      delete: operation({ summary: 'Takes a ban back.', parameters: numbered }, record({ removed: count })),
    },
    '/tokens': {
      get: operation(
        { summary: 'Tokens of clients, without their secrets.' },
        record({ isKept: flag, tokens: list(ref('Token')) }),
      ),
      post: operation(
        { summary: 'Makes a token. Its secret is shown this once.', body: ref('NewToken'), status: 201 },
        ref('TokenSecret'),
      ),
    },
    '/tokens/{id}': {
      delete: operation(
        { summary: 'Takes a token back: its tunnels close within a second.', parameters: named },
        record({ revoked: text }),
      ),
    },
    '/tokens/{id}/rotate': {
      post: operation(
        { summary: 'Gives a token another secret, shown this once.', parameters: named },
        ref('TokenSecret'),
      ),
    },
    '/nodes': {
      get: operation(
        { summary: 'The servers of the cluster, as this one sees them; none, if it is alone.' },
        record({ isClustered: flag, nodes: list(ref('Node')) }),
      ),
    },
    '/certificates': {
      get: operation(
        { summary: 'Certificates of the server.' },
        record({ certificates: list(ref('Certificate')) }),
      ),
    },
    '/audit': {
      get: operation(
        { summary: 'What was done, the newest first.', parameters: [query('before', time), limit] },
        record({ isKept: flag, entries: list(ref('AuditEntry')) }),
      ),
    },
    '/upgrade': {
      post: operation(
        { summary: 'Starts the program again, and hands everything over to it once it serves.' },
        record({ pid: count }),
      ),
    },
    '/openapi.json': { get: operation({ summary: 'This document.' }, { type: 'object' }) },
  },
  components: {
    schemas,
    securitySchemes: { token: { type: 'http', scheme: 'bearer' } },
  },
}
