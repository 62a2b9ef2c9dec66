// The response to a visitor whose request failed: JSON that says who is responsible, or a page that does.

import type { Branding } from '../branding.ts'
import { ERRORS, type ErrorCode } from '../errors.ts'
import type { RequestHead } from './head.ts'

export interface ErrorAnswerOptions {
  /** Makes a page if `wantsHtml` is true; otherwise the response is JSON. */
  readonly page?: ErrorPage | undefined
  /** Whether the request was HEAD, so that the response has no body. */
  readonly head: boolean
  readonly keepAlive: boolean
  /** The requested host, shown on the page. */
  readonly host: string
  /** The operator's name, contact and logo, for a page. */
  readonly branding?: Branding | undefined
  /** Replaces the meaning of the code. It must contain nothing internal, because strangers read it. */
  readonly detail?: string
  readonly retryAfterSeconds?: number
  /** Replaces the status of the code. */
  readonly status?: number
  /** Header lines to add, or to replace those that every response has. */
  readonly headers?: readonly (readonly [name: string, value: string])[]
}

/** Makes a page in place of JSON, with its Content-Security-Policy. */
export type ErrorPage = (
  code: ErrorCode,
  options: ErrorAnswerOptions & { readonly retryAfterSeconds: number | undefined },
) => { readonly html: string; readonly policy: string }

/** Returns the reason phrase of a status; empty for a status that this server does not use. */
export function reasonOf(status: number): string {
  return REASONS[status] ?? ''
}

const REASONS: Readonly<Record<number, string>> = {
  200: 'OK',
  303: 'See Other',
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  405: 'Method Not Allowed',
  408: 'Request Timeout',
  409: 'Conflict',
  410: 'Gone',
  413: 'Content Too Large',
  414: 'URI Too Long',
  429: 'Too Many Requests',
  431: 'Request Header Fields Too Large',
  500: 'Internal Server Error',
  501: 'Not Implemented',
  502: 'Bad Gateway',
  503: 'Service Unavailable',
  504: 'Gateway Timeout',
  505: 'HTTP Version Not Supported',
}

/** The seconds for Retry-After, for codes where waiting helps. */
const RETRY_AFTER_SECONDS: Partial<Record<ErrorCode, number>> = {
  SERVER_STARTING: 5,
  VISITOR_LIMIT: 5,
}
/** The seconds until a client that sent too many requests may try again. */
const THROTTLED_SECONDS = 5

/**
 * The header between servers that marks an app's response to a stored webhook: then `x-localtunnels-error` in it
 * comes from the app.
 */
export const APP_ANSWERED_HEADER = 'localtunnels-app-answered'

const encoder = new TextEncoder()

/** Returns a whole HTTP/1.1 response for a failed exchange. */
export function errorAnswer(code: ErrorCode, options: ErrorAnswerOptions): Uint8Array {
  const entry = ERRORS[code]
  const { status = entry.status, headers = [] } = options
  const standard = entry.status === 429 ? THROTTLED_SECONDS : RETRY_AFTER_SECONDS[code]
  const { retryAfterSeconds = standard } = options
  const page = options.page?.(code, { ...options, retryAfterSeconds })
  const body = encoder.encode(page?.html ?? errorJson(code, options.detail))
  const lines = [
    `HTTP/1.1 ${status} ${reasonOf(status)}`,
    `content-type: ${page === undefined ? 'application/json' : 'text/html'}; charset=utf-8`,
    `content-length: ${body.length}`,
    `x-localtunnels-error: ${code}`,
    'cache-control: no-store',
    'x-content-type-options: nosniff',
    'referrer-policy: no-referrer',
    `content-security-policy: ${page?.policy ?? "default-src 'none'"}`,
  ]
  if (retryAfterSeconds !== undefined) lines.push(`retry-after: ${retryAfterSeconds}`)
  // RFC 9110 section 15.5.6: a 405 lists the allowed methods, which are all but CONNECT.
  if (entry.status === 405) lines.push('allow: GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS')
  lines.push(options.keepAlive ? 'connection: keep-alive' : 'connection: close')
  const names = headers.map(([name]) => `${name.toLowerCase()}:`)
  const own = names.length === 0 ? lines : lines.filter(line => !names.some(name => line.startsWith(name)))
  const given = headers.map(([name, value]) => `${name}: ${value}`)
  const head = encoder.encode([...own, ...given, '', ''].join('\r\n'))
  if (options.head) return head
  const answer = new Uint8Array(head.length + body.length)
  answer.set(head)
  answer.set(body, head.length)
  return answer
}

/** Whether the visitor is a browser that will show the response as a page. */
export function wantsHtml(head: RequestHead): boolean {
  // Browsers mark page loads with this header. A script's fetch or an image of the same browser wants no page.
  const mode = head.header('sec-fetch-mode')
  if (mode !== undefined) return mode === 'navigate'
  return head.header('accept')?.toLowerCase().includes('text/html') ?? false
}

/** Returns the body of a response for programs. */
export function errorJson(code: ErrorCode, detail?: string): string {
  const { meaning, action, fault, retryable } = ERRORS[code]
  return `${JSON.stringify({ error: { code, message: detail ?? meaning, action, fault, retryable: retryable === true } })}\n`
}
