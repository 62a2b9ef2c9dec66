// The inspector's API for this page. The token was after # in the address, which no server sees. A server gets it
// only after a proof that it knows it, because after the client has ended, any user's program may have its port.

import type {
  ApiError,
  Diff,
  Edit,
  ExchangeDetail,
  ExchangeRow,
  Frame,
  InspectEvent,
  ReplayResult,
} from '../../exchange.ts'

export type Side = 'request' | 'response'

/** The number of messages in one response. */
export const FRAMES_AT_ONCE = 1_000

const KEY = 'localtunnels inspector'
/** The time in milliseconds for a proof. */
const PROOF_MS = 5_000

let token = sessionStorage.getItem(KEY) ?? ''
/** The number of event streams from a server that has proved itself. When they end, another server may respond. */
let streams = 0
/** Stays between two streams when this page ended the first one, for another filter. */
let isProven = false

// A reload keeps the token only for a proved server: another program's page at this address could read the tab's storage.
sessionStorage.removeItem(KEY)
addEventListener('pagehide', () => {
  if (isProven) sessionStorage.setItem(KEY, token)
})

/** Takes the token out of the address. Returns whether there was one. */
export function takeToken(): boolean {
  const [, given] = /^#([\w-]{20,})$/.exec(location.hash) ?? []
  if (given === undefined) return false
  token = given
  history.replaceState(null, '', '#/requests')
  return true
}

/** The error that the API returned. */
export class Refused extends Error {
  readonly code: string

  constructor({ error: { code, message } }: ApiError) {
    super(message)
    this.code = code
  }
}

/** The error for a server that has not proved that it knows the token. */
export class Unproven extends Error {}

/** Rejects unless the server proves that it knows the token, for this origin and a new number. */
async function prove(): Promise<void> {
  if (token === '')
    throw new Refused({ error: { code: 'INSPECT_TOKEN_REFUSED', message: 'This page has no token.' } })
  const nonce = hex(crypto.getRandomValues(new Uint8Array(32)))
  const signal = AbortSignal.timeout(PROOF_MS)
  const answer = await fetch(`/api/v1/proof?nonce=${nonce}`, { signal })
  const { proof } = await answer.json().catch(() => ({}))
  const text = new TextEncoder()
  const algorithm = { name: 'HMAC', hash: 'SHA-256' }
  // Browsers have `subtle` for the loopback addresses, and the inspector uses no others.
  const key = await crypto.subtle.importKey('raw', text.encode(token), algorithm, false, ['sign'])
  const wanted = text.encode(`inspector\n${location.origin}\n${nonce}`)
  if (proof !== hex(new Uint8Array(await crypto.subtle.sign('HMAC', key, wanted)))) throw new Unproven()
}

function hex(bytes: Uint8Array): string {
  return Array.from(bytes, byte => byte.toString(16).padStart(2, '0')).join('')
}

async function ask(path: string, init: RequestInit = {}): Promise<Response> {
  if (streams === 0) await prove()
  const answer = await fetch(`/api/v1/${path}`, {
    ...init,
    headers: {
      authorization: `Bearer ${token}`,
      ...(init.body != null && { 'content-type': 'application/json' }),
    },
  })
  if (answer.ok) return answer
  // Any response of 400 and above contains one. Others came from another program at this port.
  throw new Refused(
    await answer.json().catch(() => ({ error: { code: 'UNKNOWN', message: answer.statusText } })),
  )
}

async function read<Value>(path: string, init?: RequestInit): Promise<Value> {
  return (await ask(path, init)).json()
}

function write<Value>(method: 'POST' | 'PUT', path: string, body: unknown): Promise<Value> {
  return read(path, { method, body: JSON.stringify(body) })
}

const query = (fields: Readonly<Record<string, string | number | boolean | undefined>>): string => {
  const given = Object.entries(fields).filter(
    ([, value]) => value !== undefined && value !== '' && value !== false,
  )
  return new URLSearchParams(
    given.map(([name, value]) => [name, value === true ? '1' : `${value}`]),
  ).toString()
}

export const api = {
  list: (filter: string, { before, signal }: { before?: string; signal?: AbortSignal | undefined } = {}) =>
    read<{ exchanges: ExchangeRow[]; hasMore: boolean }>(
      `exchanges?${query({ filter, before, limit: 1_000 })}`,
      signal && { signal },
    ),
  detail: (id: string, reveal: boolean) => read<ExchangeDetail>(`exchanges/${id}?${query({ reveal })}`),
  remove: (id: string, keepalive: boolean) => read(`exchanges/${id}`, { method: 'DELETE', keepalive }),
  /** Deletes exchanges. `keepalive`: the request continues when the page closes. */
  clear: (filter: string, upTo: string, keepalive: boolean) =>
    read(`exchanges?${query({ filter, upTo })}`, { method: 'DELETE', keepalive }),
  har: async (filter: string, reveal: boolean) => {
    const answer = await ask(`exchanges.har?${query({ filter, reveal })}`)
    return { blob: await answer.blob(), isRedacted: answer.headers.has('x-secrets-left-out') }
  },
  body: async (id: string, side: Side, reveal = false) => {
    const answer = await ask(`exchanges/${id}/${side}.body?${query({ decoded: true, reveal })}`)
    return {
      bytes: new Uint8Array(await answer.arrayBuffer()),
      fault: answer.headers.get('x-decode-fault') ?? undefined,
    }
  },
  /** Reads the unchanged body, for a file. */
  rawBody: async (id: string, side: Side) => (await ask(`exchanges/${id}/${side}.body`)).blob(),
  frames: (id: string, from: number) =>
    read<{ frames: Frame[]; total: number }>(`exchanges/${id}/frames?from=${from}&limit=${FRAMES_AT_ONCE}`),
  /** Finds messages, at most the 1,000 newest. `by`: `''` for both directions. */
  findFrames: (id: string, text: string, by: '' | Frame['from']) =>
    read<{ frames: Frame[]; matching: number }>(
      `exchanges/${id}/frames?${query({ text, by, limit: '1000' })}`,
    ),
  as: async (id: string, format: string, reveal: boolean) => {
    const answer = await ask(`exchanges/${id}/as/${format}?${query({ reveal })}`)
    return { text: await answer.text(), isRedacted: answer.headers.has('x-secrets-left-out') }
  },
  /** Replays an exchange. `resign` is as in `ReplayRequest`. */
  replay: (id: string, edit: Edit | undefined, times: number, resign: boolean | undefined) =>
    write<ReplayResult>('POST', `exchanges/${id}/replay`, {
      ...(edit && { edit }),
      times,
      ...(resign !== undefined && { resign }),
    }),
  pin: (id: string, isPinned: boolean) => write<ExchangeRow>('PUT', `exchanges/${id}/pin`, { isPinned }),
  note: (id: string, note: string) => write<ExchangeRow>('PUT', `exchanges/${id}/note`, { note }),
  diff: (a: string, b: string) => read<Diff>(`diff?${query({ a, b })}`),
}

/** Calls `heard` for each event until `signal` is aborted. Resolves when the stream ends; rejects if there is none. */
export async function listen(
  filter: string,
  signal: AbortSignal,
  heard: (event: InspectEvent) => void,
): Promise<void> {
  let [rest, begun] = ['', 0]
  try {
    const { body } = await ask(`events?${query({ filter, frames: true })}`, { signal })
    if (body === null) return
    const reader = body.pipeThrough(new TextDecoderStream()).getReader()
    begun = 1
    streams++
    isProven = true
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      const lines = (rest + value).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) if (line !== '') heard(JSON.parse(line))
    }
  } finally {
    streams -= begun
    if (!signal.aborted) isProven = false
  }
}
