// The inspector's API, as this page asks it. The token stood behind # in the address, which no server ever sees; this tab keeps it.

import type {
  ApiError,
  Diff,
  Edit,
  ExchangeDetail,
  ExchangeRow,
  Frame,
  InspectEvent,
  ReplayResult,
} from '../../client/inspect/exchange.ts'

export type Side = 'request' | 'answer'

/** Messages of one answer. */
export const FRAMES_AT_ONCE = 1_000

const KEY = 'localtunnels inspector'

/** Takes the token out of the address. `true`: there was one. */
export function takeToken(): boolean {
  const [, token] = /^#([\w-]{20,})$/.exec(location.hash) ?? []
  if (token === undefined) return false
  sessionStorage.setItem(KEY, token)
  history.replaceState(null, '', '#/requests')
  return true
}

/** What the API answered instead of what was asked for. */
export class Refused extends Error {
  readonly code: string

  constructor({ error: { code, message } }: ApiError) {
    super(message)
    this.code = code
  }
}

async function ask(path: string, init: RequestInit = {}): Promise<Response> {
  const answer = await fetch(`/api/v1/${path}`, {
    ...init,
    headers: {
      authorization: `Bearer ${sessionStorage.getItem(KEY) ?? ''}`,
      ...(init.body != null && { 'content-type': 'application/json' }),
    },
  })
  if (answer.ok) return answer
  // Any answer of 400 and above is one; what is not came from something else at this port.
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
  /** `keepalive`: the page goes away meanwhile. */
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
  /** The body as it came, for a file. */
  rawBody: async (id: string, side: Side) => (await ask(`exchanges/${id}/${side}.body`)).blob(),
  frames: (id: string, from: number) =>
    read<{ frames: Frame[]; total: number }>(`exchanges/${id}/frames?from=${from}&limit=${FRAMES_AT_ONCE}`),
  as: async (id: string, format: string, reveal: boolean) => {
    const answer = await ask(`exchanges/${id}/as/${format}?${query({ reveal })}`)
    return { text: await answer.text(), isRedacted: answer.headers.has('x-secrets-left-out') }
  },
  /** `resign`: as `ReplayRequest` has it. */
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

/** Calls `heard` for each event until `signal` is aborted. Resolves when the stream ends; rejects when there is none. */
export async function listen(
  filter: string,
  signal: AbortSignal,
  heard: (event: InspectEvent) => void,
): Promise<void> {
  const { body } = await ask(`events?${query({ filter, frames: true })}`, { signal })
  if (body === null) return
  const reader = body.pipeThrough(new TextDecoderStream()).getReader()
  let rest = ''
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    const lines = (rest + value).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) if (line !== '') heard(JSON.parse(line))
  }
}
