// What visitors get instead of an answer.

import { expect, test } from 'bun:test'
import { ERRORS, type ErrorCode } from '../../src/errors.ts'
import { errorAnswer, wantsHtml } from '../../src/http/error-answer.ts'
import { parseRequestHead, parseResponseHead, RequestHead, ResponseHead } from '../../src/http/head.ts'
import {
  COPY_SCRIPT,
  COPY_SCRIPT_HASH,
  errorPage,
  INFO_POLICY,
  infoPage,
  PAGE_SCRIPT,
  PAGE_SCRIPT_HASH,
  PAGE_STYLE,
  PAGE_STYLE_HASH,
} from '../../src/http/pages.ts'

const limits = { maxHeadBytes: 65_536, maxHeaderCount: 200, maxTargetBytes: 16_384 }
const options = { head: false, keepAlive: true, host: 'a.example' }

function read(bytes: Uint8Array, method = 'GET'): { head: ResponseHead; body: string } {
  const head = new ResponseHead()
  const end = parseResponseHead(head, bytes, 0, bytes.length, limits, method)
  expect(end).toBeGreaterThan(0)
  return { head, body: new TextDecoder().decode(bytes.subarray(end)) }
}

test('every code has an answer that is framed right, as JSON and as a page', () => {
  for (const code of Object.keys(ERRORS) as ErrorCode[]) {
    for (const html of [false, true]) {
      const bytes = errorAnswer(code, { ...options, page: html ? errorPage : undefined })
      const { head } = read(bytes)
      expect(head.status).toBe(ERRORS[code].status)
      expect(head.header('x-localtunnels-error')).toBe(code)
      expect(head.header('cache-control')).toBe('no-store')
      expect(head.header('set-cookie')).toBeUndefined()
      expect(head.end + head.contentLength).toBe(bytes.length)
    }
  }
})

test('JSON says what, whose fault, and what to do', () => {
  const { head, body } = read(errorAnswer('ORIGIN_REFUSED', options))
  expect(head.header('content-type')).toStartWith('application/json')
  const { meaning, action } = ERRORS.ORIGIN_REFUSED
  expect(JSON.parse(body)).toEqual({
    error: { code: 'ORIGIN_REFUSED', message: meaning, action, fault: 'origin', retryable: true },
  })
})

test('HEAD gets the same head and no body', () => {
  const whole = errorAnswer('TUNNEL_NOT_FOUND', { ...options, page: errorPage })
  const short = errorAnswer('TUNNEL_NOT_FOUND', { ...options, page: errorPage, head: true })
  expect(Buffer.from(whole).toString()).toStartWith(Buffer.from(short).toString())
  expect(read(short, 'HEAD').body).toBe('')
})

test('the connection and the pause before another try are said', () => {
  expect(read(errorAnswer('BAD_REQUEST', { ...options, keepAlive: false })).head.keepAlive).toBeFalse()
  expect(read(errorAnswer('BAD_REQUEST', options)).head.keepAlive).toBeTrue()
  const { head } = read(errorAnswer('CLIENT_RECONNECTING', { ...options, retryAfterSeconds: 2 }))
  expect(head.header('retry-after')).toBe('2')
})

test('nothing that came from outside is markup', () => {
  const evil = `"><script>alert('1')</script>&`
  const { body } = read(errorAnswer('BAD_REQUEST', { ...options, page: errorPage, host: evil, detail: evil }))
  expect(body).not.toContain('<script>')
  expect(body).toContain('&quot;&gt;&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&amp;')
})

test('a page may run its own style and script and load nothing', async () => {
  const hash = async (text: string): Promise<string> =>
    `sha256-${Buffer.from(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text))).toString('base64')}`
  expect(PAGE_STYLE_HASH).toBe(await hash(PAGE_STYLE))
  expect(PAGE_SCRIPT_HASH).toBe(await hash(PAGE_SCRIPT))
  expect(COPY_SCRIPT_HASH).toBe(await hash(COPY_SCRIPT))
  const { head, body } = read(errorAnswer('CLIENT_GONE', { ...options, page: errorPage }))
  const policy = head.header('content-security-policy')
  expect(policy).toContain("default-src 'none'")
  expect(policy).toContain(PAGE_STYLE_HASH)
  expect(policy).toContain(PAGE_SCRIPT_HASH)
  expect(body).toContain(`<style>${PAGE_STYLE}</style>`)
  expect(body).toContain(`<script>${PAGE_SCRIPT}</script>`)
  expect(body).not.toMatch(/https?:|(?:src|href)="(?!data:)|style=| on\w+=/)
})

test('only what may work in a moment looks again', () => {
  const looks = (code: ErrorCode): boolean =>
    read(errorAnswer(code, { ...options, page: errorPage })).body.includes('<script>')
  for (const code of ['CLIENT_GONE', 'ORIGIN_REFUSED', 'TUNNEL_NOT_FOUND'] as const)
    expect(looks(code)).toBeTrue()
  for (const code of ['BAD_REQUEST', 'ORIGIN_INVALID', 'REQUEST_TIMEOUT'] as const)
    expect(looks(code)).toBeFalse()
})

test('a page is for who navigates', () => {
  const wants = (lines: string): boolean => {
    const head = new RequestHead()
    const bytes = Buffer.from(`GET / HTTP/1.1\r\nHost: a\r\n${lines}\r\n\r\n`)
    expect(parseRequestHead(head, bytes, 0, bytes.length, limits)).toBe(bytes.length)
    return wantsHtml(head)
  }
  expect(wants('Accept: text/html,*/*;q=0.8')).toBeTrue()
  expect(wants('Accept: */*')).toBeFalse()
  expect(wants('X: y')).toBeFalse()
  expect(wants('Sec-Fetch-Mode: navigate')).toBeTrue()
  expect(wants('Sec-Fetch-Mode: cors\r\nAccept: text/html')).toBeFalse()
})

test('a page that is no error has the same style, copies commands, and shows no markup of others', () => {
  const page = infoPage({ title: 'A <b>', text: 'below "x"', host: '<i>', steps: [['<u>', '<s>']] })
  expect(page).toContain('<h1>A &lt;b&gt;</h1>')
  expect(page).toContain(`<style>${PAGE_STYLE}</style>`)
  expect(page.replace(`<script>${COPY_SCRIPT}</script>`, '')).not.toContain('<script')
  expect(page).not.toMatch(/<[bius]>/)
  expect(INFO_POLICY).toContain(PAGE_STYLE_HASH)
  expect(INFO_POLICY).toContain(COPY_SCRIPT_HASH)
  expect(infoPage({ title: 'A', text: 'b', host: 'c' })).not.toContain('<script')
})

test('what to do is said to the owner of a tunnel, not to its visitors', () => {
  const bodyOf = (code: ErrorCode) => read(errorAnswer(code, { ...options, page: errorPage })).body
  expect(bodyOf('ORIGIN_REFUSED')).toContain('<h1>The app is not running</h1>')
  expect(bodyOf('ORIGIN_REFUSED')).toContain('<h2>Is it yours?</h2><p>Start the app')
  expect(bodyOf('HOST_UNKNOWN')).not.toContain('Is it yours')
  expect(bodyOf('RATE_LIMITED')).toContain('<code>localtunnels 3000 --rate 300/1m</code>')
})

test('a page says when to try again, because a person does not see the header', () => {
  const pageOf = (code: ErrorCode, headers?: readonly (readonly [string, string])[]) =>
    read(errorAnswer(code, { ...options, page: errorPage, ...(headers !== undefined && { headers }) })).body
  expect(pageOf('RATE_LIMITED', [['Retry-After', '58']])).toContain(
    'You can try again in <b class="left">58 s</b>.',
  )
  const date = 'Fri, 31 Dec 1999 23:59:59 GMT'
  expect(pageOf('RATE_LIMITED', [['retry-after', date]])).not.toMatch(/NaN|class="again"/)
  expect(pageOf('RATE_LIMITED', [['retry-after', '3600']])).toContain('You can try again in <b>60 min</b>.')
  expect(pageOf('RATE_LIMITED')).toContain('<b class="left">5 s</b>')
  expect(pageOf('CIRCUIT_OPEN', [['retry-after', '30']])).toContain('<b class="left">30 s</b>')
  expect(pageOf('CIRCUIT_OPEN')).toContain('<h2>Is it yours?</h2><p>The app failed too often')
})

test('a flag in what to do is one word on a narrow screen', () => {
  const { body } = read(errorAnswer('ORIGIN_TIMEOUT', { ...options, page: errorPage }))
  expect(body).toContain('<span class="flag">--origin-timeout</span> of the server')
})
