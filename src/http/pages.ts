// What a visitor gets instead of an answer: a page that says whose doing it is, or the same as JSON.

import { ERRORS, type ErrorCode, type ErrorEntry } from '../errors.ts'
import type { RequestHead } from './head.ts'

export interface ErrorAnswerOptions {
  /** A page for people, as `wantsHtml` told; else JSON. */
  readonly html: boolean
  /** The request was HEAD: the same head, no body. */
  readonly head: boolean
  readonly keepAlive: boolean
  /** Host that was asked for, shown on the page. */
  readonly host: string
  /** Replaces the meaning of the code. Nothing internal: strangers read it. */
  readonly detail?: string
  readonly retryAfterSeconds?: number
  /** Replaces the status of the code. */
  readonly status?: number
  /** More lines, or others for those that an answer has anyway. */
  readonly headers?: readonly (readonly [name: string, value: string])[]
}

/** The reason phrase of a status; empty for one that this server has no words for. */
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

/** When waiting helps, as far as it is known. */
const RETRY_AFTER_SECONDS: Partial<Record<ErrorCode, number>> = {
  SERVER_STARTING: 5,
  VISITOR_LIMIT: 5,
}
/** What to do is to wait for the time in Retry-After. */
const TIMED: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'RATE_LIMITED',
  'CREDENTIALS_THROTTLED',
  'CIRCUIT_OPEN',
])
/** When a caller may try again that asked too often. */
const THROTTLED_SECONDS = 5

/** Between servers, in an answer that the app gave to a kept webhook: `x-localtunnels-error` in it is the app's own. */
export const APP_ANSWERED_HEADER = 'localtunnels-app-answered'

const encoder = new TextEncoder()

/** A whole HTTP/1.1 answer for a failed exchange. */
export function errorAnswer(code: ErrorCode, options: ErrorAnswerOptions): Uint8Array {
  const entry = ERRORS[code]
  const { status = entry.status, headers = [] } = options
  const standard = entry.status === 429 ? THROTTLED_SECONDS : RETRY_AFTER_SECONDS[code]
  const { retryAfterSeconds = standard } = options
  const body = encoder.encode(
    options.html ? page(code, entry, { ...options, retryAfterSeconds }) : errorJson(code, options.detail),
  )
  const lines = [
    `HTTP/1.1 ${status} ${reasonOf(status)}`,
    `content-type: ${options.html ? 'text/html; charset=utf-8' : 'application/json; charset=utf-8'}`,
    `content-length: ${body.length}`,
    `x-localtunnels-error: ${code}`,
    'cache-control: no-store',
    'x-content-type-options: nosniff',
    'referrer-policy: no-referrer',
    `content-security-policy: ${options.html ? PAGE_POLICY : "default-src 'none'"}`,
  ]
  if (retryAfterSeconds !== undefined) lines.push(`retry-after: ${retryAfterSeconds}`)
  // RFC 9110 section 15.5.6: a 405 lists what would have been served. Which is everything but CONNECT.
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

/** Whether the visitor is a browser that will show the answer as a page. */
export function wantsHtml(head: RequestHead): boolean {
  // Browsers say it outright; a script's fetch or an image of the same browser wants no page.
  const mode = head.header('sec-fetch-mode')
  if (mode !== undefined) return mode === 'navigate'
  return head.header('accept')?.toLowerCase().includes('text/html') ?? false
}

/** The body of an answer for programs. */
export function errorJson(code: ErrorCode, detail?: string): string {
  const { meaning, action, fault, retryable } = ERRORS[code]
  return `${JSON.stringify({ error: { code, message: detail ?? meaning, action, fault, retryable: retryable === true } })}\n`
}

const FAULTS: Readonly<Record<ErrorEntry['fault'], string>> = {
  visitor: 'Nothing is broken, but this request did not get to the app.',
  server: 'The tunnel server has a problem. The app behind it does not.',
  client:
    'The tunnel server is fine, and so is your connection. The computer behind the tunnel is not connected.',
  origin: 'The tunnel is fine, and so is your connection. The app behind it did not answer properly.',
  user: 'The tunnel server is fine, and so is your connection.',
}

// Style and script are constants, so that their hashes can stand in the policy and nothing else may run. They were
// computed with SHA-256 over the exact text; a test computes them again.
export const PAGE_STYLE = `
:root{color-scheme:light dark;--ink:#1c1b19;--soft:#6b6760;--paper:#faf9f6;--line:#e4e1da;--mark:#b4431f}
@media(prefers-color-scheme:dark){:root{--ink:#ece9e2;--soft:#9d988e;--paper:#171614;--line:#33302b;--mark:#ff9166}}
*{box-sizing:border-box}
body{margin:0;min-height:100vh;display:grid;place-items:center;padding:2rem;background:var(--paper);color:var(--ink);
font:1.0625rem/1.6 system-ui,sans-serif}
main{max-width:34rem;width:100%}
p{margin:0 0 1rem}
.code{font:600 .8125rem/1 ui-monospace,monospace;color:var(--mark);letter-spacing:.04em}
h1{font-size:1.75rem;line-height:1.25;margin:0 0 1rem;text-wrap:balance}
.flag{white-space:nowrap}
.soft{color:var(--soft)}
.todo{border-left:3px solid var(--mark);padding-left:1rem}
.dot{display:inline-block;width:.5em;height:.5em;margin-right:.5em;border-radius:50%;background:var(--mark);
animation:beat 1s infinite}
@keyframes beat{50%{opacity:.3}}
footer{margin-top:2rem;padding-top:1rem;border-top:1px solid var(--line);font-size:.875rem;color:var(--soft);
overflow-wrap:anywhere}
`

// The beat of the pulsing dot is the clock: it stops by itself while the page is hidden.
export const PAGE_SCRIPT = `
var beats=0,busy=false
function look(){
if(busy||++beats>300&&beats%10)return
busy=true
fetch(location.href,{method:'HEAD',cache:'no-store',redirect:'manual'}).then(function(answer){
busy=false
if(!answer.headers.has('x-localtunnels-error'))location.reload()},function(){busy=false})}
document.querySelector('.dot').addEventListener('animationiteration',look)
`

export const PAGE_STYLE_HASH = 'sha256-WPLdn8OR2F42sN/W6Gl7wet9St0AzGRud7MMvaQBybU='
export const PAGE_SCRIPT_HASH = 'sha256-ejXW8aLu8mu0STe8v7nBT3IWuUsPtgs8NYL4yELaAFI='

const PAGE_POLICY =
  `default-src 'none'; style-src '${PAGE_STYLE_HASH}'; script-src '${PAGE_SCRIPT_HASH}'; ` +
  "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

function page(
  code: ErrorCode,
  entry: ErrorEntry,
  options: ErrorAnswerOptions & { readonly retryAfterSeconds: number | undefined },
): string {
  // A request that was refused for what it is will be refused again; anything else may work in a second.
  const polls =
    entry.retryable && (entry.fault === 'client' || entry.fault === 'origin' || entry.fault === 'server')
  // Visitors read it who cannot do anything about it.
  const whose = entry.fault === 'visitor' ? '' : 'If this is yours: '
  // A person does not see that header.
  const [, given] = options.headers?.find(([name]) => name.toLowerCase() === 'retry-after') ?? []
  const seconds = Number(given ?? options.retryAfterSeconds)
  // It may be a date.
  const isTimed = seconds > 0 && TIMED.has(code)
  const todo = isTimed ? `Try again in ${seconds} s.` : `${whose}${withFlags(entry.action)}`
  return shell(
    `${entry.status} ${code}`,
    `<p class="code">${entry.status} ${escapeHtml(code)}</p>
<h1>${escapeHtml(options.detail ?? entry.meaning)}</h1>
<p>${escapeHtml(FAULTS[entry.fault])}</p>
<p class="todo">${todo}</p>
${polls ? '<p class="soft" role="status"><i class="dot"></i>This page looks again every second and reloads when it works.</p>' : ''}
<footer>${escapeHtml(options.host)} · answered by localtunnels, not by the app</footer>`,
    polls ? `<script>${PAGE_SCRIPT}</script>\n` : '',
  )
}

/** What a page of our own that is no error says. Goes with `INFO_POLICY`. */
export interface Info {
  readonly title: string
  readonly text: string
  readonly footer: string
}

export const INFO_POLICY: string = `default-src 'none'; style-src '${PAGE_STYLE_HASH}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`

/** A page in the same clothes as the errors. */
export function infoPage({ title, text, footer }: Info): string {
  return shell(
    title,
    `<h1>${escapeHtml(title)}</h1>
<p>${withFlags(text)}</p>
<footer>${escapeHtml(footer)}</footer>`,
    '',
  )
}

/** Text whose flags are not broken at their dashes. */
const withFlags = (text: string): string =>
  escapeHtml(text).replace(/(?<=^|\s)--[a-z-]+/g, '<span class="flag">$&</span>')

function shell(title: string, main: string, script: string): string {
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="robots" content="noindex">
<title>${escapeHtml(title)}</title>
<style>${PAGE_STYLE}</style>
<main>
${main}
</main>
${script}</html>
`
}

/** Text for HTML, in elements and in quoted attributes. */
export function escapeHtml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;')
}
