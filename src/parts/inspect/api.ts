// The inspector's API: turns requests into responses. open-api.ts describes it, exchange.ts has its types.

import { ERRORS, optionInvalid, TunnelError } from '../../errors.ts'
import type { Edit } from '../../exchange.ts'
import { type Filter, isFilterFault, parseFilter } from '../../exchange-filter.ts'
import { proofOf, refusalOf, SAFE_HEADERS } from './access.ts'
import { compare, verdictOf } from './compare.ts'
import { shownContent } from './content.ts'
import type { Entry } from './entry.ts'
import { eventStream } from './event-stream.ts'
import { exported, harEntry, harOf, hidesSecrets, isFormat } from './export.ts'
import type { Inspector } from './inspector.ts'
import { loadPage } from './page.ts'
import type { Showing } from './secrets.ts'
import { detailOf, rowOf } from './view.ts'
import { MAX_WAIT_MS, waitForExchange } from './wait.ts'

const MAX_REPLAYS = 100
const MAX_NOTE_CHARS = 2_000
/** The maximum size of an API request: an edited body, as base64 and with room for its fields. */
const MAX_REQUEST_BYTES = 16_777_216

interface Asked {
  readonly request: Request
  readonly query: URLSearchParams
  /** The exchange that the path names. */
  readonly entry: Entry
  readonly format: string
}

type Operation = (asked: Asked) => Response | Promise<Response>

export class InspectApi {
  readonly #inspector: Inspector
  readonly #port: () => number
  readonly #token: string
  readonly operations: Readonly<Record<string, Operation>>

  constructor(inspector: Inspector, token: string, port: () => number) {
    this.#inspector = inspector
    this.#token = token
    this.#port = port
    this.operations = {
      'GET /proof': asked => this.#proof(asked),
      'GET /session': () => json(inspector.session),
      'GET /exchanges': asked => this.#list(asked),
      'GET /exchanges.har': asked => this.#har(asked),
      'DELETE /exchanges': asked => this.#clear(asked),
      'GET /exchanges/{id}': ({ entry, query }) => json(detailOf(entry, this.#showing(query))),
      'DELETE /exchanges/{id}': ({ entry }) => this.#remove([entry]),
      'GET /exchanges/{id}/request.body': asked => this.#body(asked, 'request'),
      'GET /exchanges/{id}/response.body': asked => this.#body(asked, 'response'),
      'GET /exchanges/{id}/frames': asked => this.#frames(asked),
      'GET /exchanges/{id}/as/{format}': asked => this.#as(asked),
      'POST /exchanges/{id}/replay': asked => this.#replay(asked),
      'PUT /exchanges/{id}/pin': asked => this.#pin(asked),
      'PUT /exchanges/{id}/note': asked => this.#note(asked),
      'GET /diff': asked => this.#diff(asked),
      'GET /events': ({ query }) => this.#events(query),
      'POST /wait': asked => this.#wait(asked),
      'GET /openapi.json': async () => json((await import('./open-api.ts')).OPEN_API),
    }
  }

  /** Responds to every request; never throws. */
  readonly fetch = async (request: Request): Promise<Response> => {
    try {
      const { pathname, searchParams } = new URL(request.url)
      const isApi = pathname.startsWith('/api/')
      const needsToken = isApi && pathname !== '/api/v1/proof'
      const refusal = refusalOf(request, this.#port(), this.#token, needsToken)
      if (refusal !== undefined) return failure(refusal)
      if (!isApi) return await this.#page(request, pathname)
      return await this.#operate(request, pathname, searchParams)
    } catch (cause) {
      return failure(cause instanceof TunnelError ? cause : new TunnelError('INTERNAL', undefined, { cause }))
    }
  }

  async #page(request: Request, path: string): Promise<Response> {
    if (path !== '/' || request.method !== 'GET') return notThere()
    const page = await loadPage()
    const headers = { 'content-type': 'text/html; charset=utf-8', 'content-security-policy': page.policy }
    return new Response(page.html, { headers: { ...SAFE_HEADERS, ...headers } })
  }

  async #operate(request: Request, path: string, query: URLSearchParams): Promise<Response> {
    const found = /^\/api\/v1(\/[a-z.]+)(?:\/([^/]+)((?:\/[a-z.-]+)*))?$/.exec(path)
    if (found === null) return notThere()
    const [, first = '', id, rest = ''] = found
    const as = /^\/as\/([a-z-]+)$/.exec(rest)
    const shape = id === undefined ? first : `${first}/{id}${as === null ? rest : '/as/{format}'}`
    const operation = this.operations[`${request.method === 'HEAD' ? 'GET' : request.method} ${shape}`]
    if (operation === undefined) return notThere()
    // Operations without an id do not use it.
    const entry = id === undefined ? (undefined as unknown as Entry) : this.#entry(id)
    return await operation({ request, query, entry, format: as?.[1] ?? '' })
  }

  #proof({ request, query }: Asked): Response {
    const nonce = query.get('nonce') ?? ''
    if (!/^[0-9a-f]{64}$/.test(nonce))
      throw optionInvalid('nonce must be 32 random bytes, in lower-case hex.')
    // Host is one of this inspector's own, which `refusalOf` has checked.
    return json({ proof: proofOf(this.#token, `http://${request.headers.get('host')}`, nonce) })
  }

  #entry(id: string | null): Entry {
    const { store, capture } = this.#inspector
    capture.flush()
    const entry =
      id === 'latest' ? store.latest : /^\d{1,15}$/.test(id ?? '') ? store.get(Number(id)) : undefined
    if (entry === undefined) throw new TunnelError('EXCHANGE_NOT_FOUND')
    return entry
  }

  #showing(query: URLSearchParams): Showing {
    return { secrets: this.#inspector.settings.secrets, reveals: query.get('reveal') === '1' }
  }

  // ── Lists ──────────────────────────────────────────────────────────────────────────────────────────────────

  async #list({ query, request }: Asked): Promise<Response> {
    const filter = filterOf(query.get('filter'))
    const before = numberOf(query, 'before', Number.MAX_SAFE_INTEGER)
    const limit = limitOf(query, 100)
    const { capture, store } = this.#inspector
    capture.flush()
    const showing = this.#showing(query)
    const exchanges: unknown[] = []
    let hasMore = false
    const older = store.newestFirst().filter(entry => entry.id < before)
    for await (const entry of this.#inspector.matching(filter, older, request.signal)) {
      hasMore = exchanges.length === limit
      if (hasMore) break
      exchanges.push(rowOf(entry, showing))
    }
    return json({ exchanges, hasMore })
  }

  async #clear({ query, request }: Asked): Promise<Response> {
    const filter = filterOf(query.get('filter'))
    const withPinned = query.get('pinned') === '1'
    const upTo = numberOf(query, 'upTo', Number.MAX_SAFE_INTEGER)
    const all = this.#inspector.store.newestFirst().filter(({ id }) => id <= upTo)
    const entries: Entry[] = []
    for await (const entry of this.#inspector.matching(filter, all, request.signal))
      if (withPinned || !entry.isPinned) entries.push(entry)
    // Hidden exchanges are deleted together with the visible ones.
    if (filter.text.trim() === '') entries.push(...all.filter(({ isProbe }) => isProbe))
    return this.#remove(entries)
  }

  async #har({ query, request }: Asked): Promise<Response> {
    const filter = filterOf(query.get('filter'))
    const showing = this.#showing(query)
    const entries: unknown[] = []
    let isRedacted = false
    const { capture, store } = this.#inspector
    capture.flush()
    for await (const entry of this.#inspector.matching(filter, store.newestFirst(), request.signal)) {
      // Refused requests, and connections, have no bytes here.
      if (entry.requestHead.length === 0) continue
      entries.push(harEntry(entry, showing, this.#inspector.urlOf(entry)))
      isRedacted ||= !showing.reveals && hidesSecrets(entry, showing)
    }
    return new Response(harOf(entries.reverse()), {
      headers: {
        ...SAFE_HEADERS,
        'content-type': 'application/json',
        ...(isRedacted && { 'x-secrets-left-out': '1' }),
      },
    })
  }

  #remove(entries: readonly Entry[]): Response {
    this.#inspector.store.remove(entries)
    return json({ removed: entries.length })
  }

  #frames({ entry, query }: Asked): Response {
    const from = numberOf(query, 'from', 0)
    const limit = limitOf(query, 200)
    const { frames, totalFrames: total } = entry
    const [text = '', by = ''] = [query.get('text')?.toLowerCase(), query.get('by') ?? undefined]
    if (by !== '' && by !== 'visitor' && by !== 'app') throw optionInvalid('by must be visitor or app.')
    if (text !== '' || by !== '') {
      const found = frames.filter(
        frame =>
          frame.index >= from &&
          (by === '' || frame.from === by) &&
          `${frame.event ?? ''} ${frame.text ?? ''}`.toLowerCase().includes(text),
      )
      return json({ frames: found.slice(-limit), total, matching: found.length })
    }
    const first = Math.max(0, from - entry.droppedFrames)
    return json({ frames: frames.slice(first, first + limit), total })
  }

  #events(query: URLSearchParams): Response {
    const filter = filterOf(query.get('filter'))
    const stream = eventStream(this.#inspector, filter, query.get('frames') === '1')
    return new Response(stream, { headers: { ...SAFE_HEADERS, 'content-type': 'application/x-ndjson' } })
  }

  // ── One exchange ───────────────────────────────────────────────────────────────────────────────────────────

  #body({ entry, query }: Asked, side: 'request' | 'response'): Response {
    const { bytes, fault, hides } = shownContent(
      entry,
      side,
      query.get('decoded') === '1',
      this.#showing(query),
    )
    const isDownload = query.get('download') === '1'
    return new Response(new Uint8Array(bytes), {
      headers: {
        ...SAFE_HEADERS,
        // Never the captured type, because a captured page must not run with this origin.
        'content-type': 'application/octet-stream',
        ...(isDownload && { 'content-disposition': `attachment; filename="${side}-${entry.id}.bin"` }),
        ...(hides && { 'x-secrets-left-out': '1' }),
        ...(fault !== undefined && { 'x-decode-fault': fault.replace(/[^\x20-\x7e]/g, '?').slice(0, 200) }),
      },
    })
  }

  #as({ entry, format, query }: Asked): Response {
    if (!isFormat(format)) return notThere()
    if (entry.requestHead.length === 0) throw new TunnelError('REPLAY_IMPOSSIBLE')
    if (format.endsWith('test') && (entry.responseHead.length === 0 || entry.status === 101))
      throw new TunnelError('REPLAY_IMPOSSIBLE', 'There is no answer that a test could expect.')
    const showing = this.#showing(query)
    const text = exported(entry, format, showing, this.#inspector.urlOf(entry))
    return new Response(typeof text === 'string' ? text : new Uint8Array(text), {
      headers: {
        ...SAFE_HEADERS,
        'content-type': format === 'har' ? 'application/json' : 'text/plain; charset=utf-8',
        ...(!showing.reveals && hidesSecrets(entry, showing) && { 'x-secrets-left-out': '1' }),
      },
    })
  }

  async #replay({ entry, request }: Asked): Promise<Response> {
    const { edit, times = 1, resign } = await fieldsIn(request)
    if (!Number.isSafeInteger(times) || Number(times) < 1 || Number(times) > MAX_REPLAYS)
      throw optionInvalid(`times must be a whole number from 1 to ${MAX_REPLAYS}.`)
    if (resign !== undefined && typeof resign !== 'boolean')
      throw optionInvalid('resign must be true or false.')
    const replays: unknown[] = []
    for (let left = Number(times); left > 0; left--) {
      const again = await this.#inspector.replay(entry, editOf(edit), resign)
      replays.push({ exchange: rowOf(again, this.#inspector.masked), verdict: verdictOf(entry, again) })
    }
    return json({ replays })
  }

  async #pin({ entry, request }: Asked): Promise<Response> {
    const { isPinned } = await fieldsIn(request)
    if (typeof isPinned !== 'boolean') throw optionInvalid('isPinned must be true or false.')
    this.#inspector.store.pin(entry, isPinned)
    return json(rowOf(entry, this.#inspector.masked))
  }

  async #note({ entry, request }: Asked): Promise<Response> {
    const { note } = await fieldsIn(request)
    if (typeof note !== 'string' || note.length > MAX_NOTE_CHARS)
      throw optionInvalid(`note must be a text of at most ${MAX_NOTE_CHARS} characters.`)
    entry.note = note
    this.#inspector.store.changed(entry)
    return json(rowOf(entry, this.#inspector.masked))
  }

  async #diff({ query }: Asked): Promise<Response> {
    const [a, b] = [this.#entry(query.get('a')), this.#entry(query.get('b'))]
    return json(await compare(a, b, this.#showing(query)))
  }

  async #wait({ request }: Asked): Promise<Response> {
    const { filter, timeoutMs = 30_000, after } = await fieldsIn(request)
    if (!Number.isSafeInteger(timeoutMs) || Number(timeoutMs) < 1 || Number(timeoutMs) > MAX_WAIT_MS)
      throw optionInvalid(`timeoutMs must be a whole number from 1 to ${MAX_WAIT_MS}.`)
    if (after !== undefined && (typeof after !== 'string' || !/^\d{1,15}$/.test(after)))
      throw optionInvalid('after must be the id of an exchange.')
    const wanted = filterOf(typeof filter === 'string' ? filter : null)
    const entry = await waitForExchange(this.#inspector, {
      takes: one => this.#inspector.matches(wanted, one),
      timeoutMs: Number(timeoutMs),
      ...(after !== undefined && { after: Number(after) }),
      signal: request.signal,
    })
    return json({ exchange: rowOf(entry, this.#inspector.masked) })
  }
}

/** Parses a filter. Throws `OPTION_INVALID`. */
export function filterOf(text: string | null): Filter {
  const filter = parseFilter(text ?? '')
  if (!isFilterFault(filter)) return filter
  throw optionInvalid(
    `Character ${filter.at + 1} of the filter: ${filter.message}. docs/inspector.md lists the terms.`,
  )
}

function numberOf(query: URLSearchParams, name: string, otherwise: number): number {
  const text = query.get(name)
  if (text === null) return otherwise
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw optionInvalid(`${name} must be a whole number.`)
}

/** Returns the maximum number of rows in a response. */
function limitOf(query: URLSearchParams, otherwise: number): number {
  const limit = numberOf(query, 'limit', otherwise)
  if (limit >= 1 && limit <= 1_000) return limit
  throw optionInvalid('limit must be from 1 to 1000.')
}

/** Returns the JSON object of a request; empty without a body. */
async function fieldsIn(request: Request): Promise<Record<string, unknown>> {
  const pieces: Uint8Array[] = []
  let count = 0
  for await (const piece of request.body ?? []) {
    count += piece.length
    if (count > MAX_REQUEST_BYTES) throw new TunnelError('BODY_TOO_LARGE')
    pieces.push(piece)
  }
  if (count === 0) return {}
  try {
    const fields: unknown = JSON.parse(new TextDecoder().decode(Buffer.concat(pieces)))
    // A JSON object has string keys.
    if (typeof fields === 'object' && fields !== null && !Array.isArray(fields))
      return fields as Record<string, unknown>
  } catch {
    // Text that is not JSON is refused below, like other invalid values.
  }
  throw optionInvalid('The body must be a JSON object.')
}

function editOf(given: unknown): Edit | undefined {
  if (given === undefined || given === null) return undefined
  const isText = (value: unknown) => value === undefined || typeof value === 'string'
  if (typeof given === 'object') {
    const { method, path, body, bodyBase64, fields } = given as Record<string, unknown>
    const areFields =
      fields === undefined ||
      (Array.isArray(fields) &&
        fields.every(
          one =>
            typeof one === 'object' &&
            one !== null &&
            typeof one.name === 'string' &&
            typeof one.value === 'string',
        ))
    // Each field was checked above.
    if ([method, path, body, bodyBase64].every(isText) && areFields) return given as Edit
  }
  throw optionInvalid('edit has method, path, fields ([{ name, value }]), and body or bodyBase64.')
}

function json(value: unknown, status = 200): Response {
  return new Response(JSON.stringify(value), {
    status,
    headers: { ...SAFE_HEADERS, 'content-type': 'application/json' },
  })
}

function failure({ code, message }: TunnelError): Response {
  return json({ error: { code, message } }, ERRORS[code].status)
}

function notThere(): Response {
  return json(
    { error: { code: 'BAD_REQUEST', message: 'The API has no such operation. See /api/v1/openapi.json.' } },
    404,
  )
}
