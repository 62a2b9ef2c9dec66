// Sends an HTTPS request with a limited time and response size, for authorities and DNS providers.

import { messageOf } from '../errors.ts'
import type { Clock } from './clock.ts'

export interface BoundedRequest {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  /** The PEM text of the only roots that are trusted. Default: those of the system. */
  readonly ca?: string | undefined
  /** The time for the whole response. */
  readonly timeoutMs: number
  readonly maxBytes: number
  readonly signal?: AbortSignal | undefined
}

export interface BoundedAnswer {
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

/** Sends the request. Rejects with the reason in plain words. Redirects are responses like any other. */
export async function boundedRequest(url: string, request: BoundedRequest): Promise<BoundedAnswer> {
  const { method = 'GET', headers = {}, body, ca, timeoutMs, maxBytes, signal } = request
  const timeout = AbortSignal.timeout(timeoutMs)
  const init: BunFetchRequestInit = {
    method,
    headers: { 'user-agent': 'localtunnels', ...headers },
    redirect: 'manual',
    signal: signal === undefined ? timeout : AbortSignal.any([timeout, signal]),
  }
  if (body !== undefined) init.body = body
  if (ca !== undefined) init.tls = { ca }
  try {
    const response = await fetch(url, init)
    return { status: response.status, headers: response.headers, text: await boundedText(response, maxBytes) }
  } catch (cause) {
    if (signal?.aborted) throw signal.reason
    const { host } = new URL(url)
    if (timeout.aborted) throw new Error(`${host} did not answer within ${timeoutMs} ms`, { cause })
    const reason = messageOf(cause)
    // Bun adds a question to the user: Is the computer able to access the url?
    throw new Error(`${host}: ${reason.replace(/\. Is the computer .*$/, '')}`, { cause })
  }
}

async function boundedText(response: Response, maxBytes: number): Promise<string> {
  if (response.body === null) return ''
  const parts: Uint8Array[] = []
  let length = 0
  for await (const part of response.body) {
    length += part.length
    // Leaving the loop cancels the rest.
    if (length > maxBytes) throw new Error(`the answer is larger than ${maxBytes} bytes`)
    parts.push(part)
  }
  return Buffer.concat(parts).toString()
}

/** Returns the milliseconds until the time in `Retry-After`: seconds or a date. `undefined` if it is missing or invalid. */
export function retryAfterMs(headers: Headers, clock: Clock): number | undefined {
  const value = headers.get('retry-after')?.trim()
  if (!value) return undefined
  if (/^[0-9]{1,9}$/.test(value)) return Number(value) * 1_000
  // Date.parse accepts almost anything; an HTTP date begins with the day of the week.
  const date = /^[A-Z][a-z]{2}/.test(value) ? Date.parse(value) : Number.NaN
  return Number.isNaN(date) ? undefined : Math.max(0, date - clock.now())
}
