// A client of an inspector's API, as a command or the page is one.

import type { ExchangeDetail, ExchangeRow, InspectEvent } from '../../src/exchange.ts'
import type { TunnelClient } from '../../src/index.ts'
import { within } from './within.ts'

export interface ApiAnswer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
  // What a test looks at is its own affair.
  // biome-ignore lint/suspicious/noExplicitAny: JSON of the API
  readonly json: any
}

/** Headers as a record, to which those of the helper are added. */
export type AskInit = Omit<RequestInit, 'headers'> & { readonly headers?: Record<string, string> }

export class InspectorApi {
  readonly base: string
  readonly token: string

  constructor(client: TunnelClient) {
    const [base = '', token = ''] = (client.inspectorUrl ?? '').split('/#')
    this.base = base
    this.token = token
  }

  async ask(path: string, init: AskInit = {}): Promise<ApiAnswer> {
    const headers = { authorization: `Bearer ${this.token}`, ...init.headers }
    const answer = await fetch(`${this.base}/api/v1/${path}`, { ...init, headers, redirect: 'manual' })
    const text = await answer.text()
    const isJson = answer.headers.get('content-type') === 'application/json'
    return {
      status: answer.status,
      headers: answer.headers,
      text,
      json: isJson ? JSON.parse(text) : undefined,
    }
  }

  send(method: 'POST' | 'PUT' | 'DELETE', path: string, body?: unknown): Promise<ApiAnswer> {
    return this.ask(path, {
      method,
      headers: { 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
  }

  async rows(query = ''): Promise<ExchangeRow[]> {
    return (await this.ask(`exchanges${query}`)).json.exchanges
  }

  async detail(id: string, query = ''): Promise<ExchangeDetail> {
    return (await this.ask(`exchanges/${id}${query}`)).json
  }

  /** Waits for one that has ended. */
  async ended(filter = '', after = '0'): Promise<ExchangeRow> {
    const { json } = await within(this.send('POST', 'wait', { filter, after, timeoutMs: 4_000 }), filter)
    return json.exchange
  }

  async bytes(path: string): Promise<Uint8Array> {
    const answer = await fetch(`${this.base}/api/v1/${path}`, {
      headers: { authorization: `Bearer ${this.token}` },
    })
    return answer.bytes()
  }

  /** Lines of `GET events`, until `stop`. */
  async events(
    query = '',
  ): Promise<{ readonly next: () => Promise<InspectEvent>; readonly stop: () => void }> {
    const abort = new AbortController()
    const answer = await fetch(`${this.base}/api/v1/events${query}`, {
      headers: { authorization: `Bearer ${this.token}` },
      signal: abort.signal,
    })
    const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader()
    let text = ''
    const next = async (): Promise<InspectEvent> => {
      for (;;) {
        const end = text.indexOf('\n')
        if (end >= 0) {
          const line = text.slice(0, end)
          text = text.slice(end + 1)
          return JSON.parse(line)
        }
        const { value, done } = await within(reader.read(), 'a line of the events')
        if (done) throw new Error('the events ended')
        text += value
      }
    }
    return { next, stop: () => abort.abort() }
  }
}
