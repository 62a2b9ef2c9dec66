// Exports an exchange as text. Secrets are left out unless they are requested.

import { type Field, MASK } from '../../exchange.ts'
import { joined } from '../../http/characters.ts'
import { VERSION } from '../../version.ts'
import { type ShownContent, shownContent } from './content.ts'
import type { Entry } from './entry.ts'
import { MASK_BYTES } from './form-secrets.ts'
import { fieldsOf, headerOf, headText, type Showing, targetOf } from './secrets.ts'
import { rowOf } from './view.ts'

export const FORMATS = ['curl', 'fetch', 'har', 'http', 'bun-test', 'vitest', 'node-test'] as const
export type Format = (typeof FORMATS)[number]

/** The headers that the server added, and those that the tools set themselves. */
const NOT_THE_VISITORS = new Set([
  'host',
  'content-length',
  'transfer-encoding',
  'connection',
  'expect',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-proto',
  'forwarded',
])

/** Exports an entry. `baseUrl` is the URL at which the client reaches the service. */
export function exported(
  entry: Entry,
  format: Format,
  showing: Showing,
  baseUrl: string,
): string | Uint8Array {
  switch (format) {
    case 'curl':
      return curl(entry, showing, baseUrl)
    case 'fetch':
      return fetchCall(entry, showing, baseUrl)
    case 'har':
      return harOf([harEntry(entry, showing, baseUrl)])
    case 'http':
      return http(entry, showing)
    case 'bun-test':
    case 'vitest':
    case 'node-test':
      return testOf(entry, RUNNERS[format], showing, baseUrl)
  }
}

/** Fields for the tools; secrets are left out, or a mask would be sent. A body that is masked has no coding. */
function sentFields(entry: Entry, showing: Showing, body: ShownContent): Field[] {
  return fieldsOf(entry.requestHead, showing).filter(
    ({ name, isSecret }) =>
      !NOT_THE_VISITORS.has(name.toLowerCase()) &&
      !(body.hides && name.toLowerCase() === 'content-encoding') &&
      (showing.reveals || isSecret !== true),
  )
}

function pathOf(entry: Entry, showing: Showing): string {
  const target = targetOf(entry.path, showing)
  return target.startsWith('/') ? target : `/${target}`
}

function urlOf(entry: Entry, showing: Showing, baseUrl: string): string {
  return `${baseUrl}${pathOf(entry, showing)}`
}

/** Returns text if the bytes are UTF-8 without NUL. */
function textBody(bytes: Uint8Array): string | undefined {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
    return text.includes('\0') ? undefined : text
  } catch {
    return undefined
  }
}

/** The captured bytes; decoded, where fields of a form or of JSON are masked. */
function bodyOf(entry: Entry, showing: Showing): ShownContent {
  return shownContent(entry, 'request', false, showing)
}

/** The captured response, decoded; fields of a form or of JSON that are secrets are masked. */
function answerOf(entry: Entry, showing: Showing): ShownContent {
  return shownContent(entry, 'response', true, showing)
}

function base64Of(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64')
}

function cutNote(entry: Entry, { hides, fault }: ShownContent): string {
  const { isCut, keptBytes, totalBytes } = entry.requestBody
  if (hides && fault !== undefined) return `the body is left out: ${fault.replace(/[^ -~]/g, '?')}`
  return isCut ? `the body was cut: ${keptBytes} of ${totalBytes} bytes` : ''
}

// ── curl ─────────────────────────────────────────────────────────────────────────────────────────────────────

function curl(entry: Entry, showing: Showing, baseUrl: string): string {
  const words = [`curl -X ${shellWord(entry.method)}`]
  if (entry.method === 'HEAD') words[0] = 'curl --head'
  // A path such as /a/../b is sent unchanged.
  const url = urlOf(entry, showing, baseUrl).replaceAll(MASK, MASK_BYTES)
  words.push('--path-as-is', '-g', shellWord(url))
  // curl leaves a field with an empty value out, unless it ends with a semicolon.
  const body = bodyOf(entry, showing)
  for (const { name, value } of sentFields(entry, showing, body))
    words.push(`-H ${shellWord(value === '' ? `${name};` : `${name}: ${value}`)}`)
  if (body.bytes.length === 0) return `${note(entry, body)}${words.join(' \\\n  ')}\n`
  // curl adds a type of its own to a body.
  if (headerOf(entry.requestHead, 'content-type') === '') words.push("-H 'Content-Type:'")
  const text = textBody(body.bytes)
  // curl reads a file whose name begins with an at sign.
  if (text !== undefined && !text.startsWith('@') && isSafeInQuotes(text))
    return `${note(entry, body)}${[...words, `--data-binary ${inQuotes(text)}`].join(' \\\n  ')}\n`
  const lines = base64Of(body.bytes).replace(/.{76}(?=.)/g, '$&\n')
  return `${note(entry, body)}printf %s '${lines}' | base64 -d | ${[...words, '--data-binary @-'].join(' \\\n  ')}\n`
}

function note(entry: Entry, body: ShownContent): string {
  const cut = cutNote(entry, body)
  return cut === '' ? '' : `# ${cut}\n`
}

/** A pattern for control characters, and those that change how text is shown: a terminal reads ^C as a key even in quotes. */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\ufffd]/u

/** Whether a text is safe in quotes. Old shells look for `!` in each further line of a text as if it were not in quotes. */
function isSafeInQuotes(text: string): boolean {
  return !UNSAFE.test(text.replaceAll('\n', '')) && !/\n(?:.*!|\^)/s.test(text)
}

/** Returns a word of a command that runs nothing else when it is pasted into a terminal. Each character is a byte. */
function shellWord(bytes: string): string {
  const text = Buffer.from(bytes, 'latin1').toString()
  if (!UNSAFE.test(text)) return inQuotes(text)
  const octal = (character: string) => `\\${character.charCodeAt(0).toString(8).padStart(3, '0')}`
  return piecesOf(bytes, piece => `"$(printf '${piece.replace(/[^ -~]|[%\\']/g, octal)}')"`)
}

function inQuotes(text: string): string {
  return piecesOf(text, piece => `'${piece.replaceAll("'", `'\\''`)}'`)
}

/** Splits a text, because a terminal without an editor cuts lines at 4,096 bytes, possibly before a quote. */
function piecesOf(text: string, quoted: (piece: string) => string): string {
  const pieces = text.match(/.{1,300}/gsu) ?? ['']
  return pieces.map(quoted).join('\\\n')
}

// ── fetch and tests ──────────────────────────────────────────────────────────────────────────────────────────

function requestInit(entry: Entry, showing: Showing, body: ShownContent): string[] {
  const lines = [`  method: ${literal(entry.method)},`, "  redirect: 'manual',"]
  const fields = sentFields(entry, showing, body)
  if (fields.length > 0) {
    lines.push('  headers: [')
    for (const { name, value } of fields) lines.push(`    [${literal(name)}, ${literal(value)}],`)
    lines.push('  ],')
  }
  const hasBody = body.bytes.length > 0 && entry.method !== 'GET' && entry.method !== 'HEAD'
  if (hasBody) {
    const text = textBody(body.bytes)
    if (text !== undefined) lines.push(`  body: ${literal(text)},`)
    else lines.push(`  body: Uint8Array.from(atob('${base64Of(body.bytes)}'), one => one.charCodeAt(0)),`)
  }
  return lines
}

function fetchCall(entry: Entry, showing: Showing, baseUrl: string): string {
  const body = bodyOf(entry, showing)
  const cut = cutNote(entry, body)
  return [
    ...(cut === '' ? [] : [`// ${cut}`]),
    `const answer = await fetch(${literal(urlOf(entry, showing, baseUrl))}, {`,
    ...requestInit(entry, showing, body),
    '})',
    '',
  ].join('\n')
}

interface Runner {
  readonly imports: string
  readonly is: (actual: string, expected: string) => string
  readonly equals: (actual: string, expected: string) => string
}

const EXPECTING: Pick<Runner, 'is' | 'equals'> = {
  is: (actual, expected) => `expect(${actual}).toBe(${expected})`,
  equals: (actual, expected) => `expect(${actual}).toEqual(${expected})`,
}
const RUNNERS: Readonly<Record<'bun-test' | 'vitest' | 'node-test', Runner>> = {
  'bun-test': { imports: "import { expect, test } from 'bun:test'", ...EXPECTING },
  vitest: { imports: "import { expect, test } from 'vitest'", ...EXPECTING },
  'node-test': {
    imports: "import assert from 'node:assert/strict'\nimport { test } from 'node:test'",
    is: (actual, expected) => `assert.equal(${actual}, ${expected})`,
    equals: (actual, expected) => `assert.deepEqual(${actual}, ${expected})`,
  },
}

/**
 * Returns a test file that runs by itself: it calls the app at APP_URL, by default at its captured address, and
 * expects the same response.
 */
function testOf(entry: Entry, { imports, is, equals }: Runner, showing: Showing, baseUrl: string): string {
  const path = pathOf(entry, showing)
  const type = headerOf(entry.responseHead, 'content-type')
  const { bytes, hides } = answerOf(entry, showing)
  // A test of a masked body would fail.
  const isWhole =
    !hides && !entry.responseBody.isCut && entry.responseBody.isComplete && entry.method !== 'HEAD'
  const text = new TextDecoder().decode(bytes)
  const json = isWhole && /json/i.test(type) ? jsonOf(text) : undefined
  const expectations = [is('answer.status', `${entry.status}`)]
  if (type !== '') expectations.push(is("answer.headers.get('content-type')", literal(type)))
  if (json !== undefined) expectations.push(equals('await answer.json()', json))
  else if (isWhole && !text.includes('\ufffd')) expectations.push(is('await answer.text()', literal(text)))
  const body = bodyOf(entry, showing)
  const cut = cutNote(entry, body)
  return [
    imports,
    '',
    `const app = process.env.APP_URL ?? ${literal(baseUrl)}`,
    '',
    ...(cut === '' ? [] : [`// ${cut}`]),
    `test(${literal(`${entry.method} ${path}`)}, async () => {`,
    `  const answer = await fetch(app + ${literal(path)}, {`,
    ...requestInit(entry, showing, body).map(line => `  ${line}`),
    '  })',
    ...expectations.map(line => `  ${line}`),
    '})',
    '',
  ].join('\n')
}

/** Returns a JavaScript literal, in characters that are visible. */
function literal(value: unknown): string {
  return JSON.stringify(value).replace(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu,
    character => `\\u{${character.codePointAt(0)?.toString(16)}}`,
  )
}

function jsonOf(text: string): string | undefined {
  try {
    return literal(JSON.parse(text))
  } catch {
    return undefined
  }
}

// ── As sent ──────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Exports HTTP byte for byte, with characters as bytes. Secrets are left out. A chunked body gets a length instead,
 * because chunks are not stored.
 */
function http(entry: Entry, showing: Showing): Uint8Array {
  const lines = headText(entry.requestHead, showing).split('\r\n')
  const { bytes, hides } = bodyOf(entry, showing)
  const head = lines
    .filter(
      (line, index) =>
        index === 0 ||
        !(line.includes(MASK) || /^trailer:/i.test(line) || (hides && /^content-encoding:/i.test(line))),
    )
    .map(line =>
      /^transfer-encoding:/i.test(line) || (hides && /^content-length:/i.test(line))
        ? `Content-Length: ${bytes.length}`
        : line,
    )
    .join('\r\n')
    .replaceAll(MASK, MASK_BYTES)
  return joined([Buffer.from(head, 'latin1'), bytes])
}

// ── HAR 1.2 ──────────────────────────────────────────────────────────────────────────────────────────────────

export function harEntry(entry: Entry, showing: Showing, baseUrl: string): unknown {
  const row = rowOf(entry, showing)
  const url = urlOf(entry, showing, baseUrl)
  const { bytes: answer, fault } = answerOf(entry, showing)
  const body = bodyOf(entry, showing)
  const text = textBody(body.bytes)
  const list = (head: Uint8Array) => fieldsOf(head, showing).map(({ name, value }) => ({ name, value }))
  const query = URL.canParse(url)
    ? [...new URL(url).searchParams].map(([name, value]) => ({ name, value }))
    : []
  const answerText = new TextDecoder().decode(answer)
  const isText = !answerText.includes('\ufffd')
  return {
    startedDateTime: row.startedAt,
    time: row.times.totalMs ?? 0,
    request: {
      method: entry.method,
      url,
      httpVersion: 'HTTP/1.1',
      cookies: [],
      headers: list(entry.requestHead),
      queryString: query,
      headersSize: entry.requestHead.length,
      bodySize: entry.requestBody.totalBytes,
      ...(entry.requestBody.keptBytes > 0 && {
        postData: {
          mimeType: headerOf(entry.requestHead, 'content-type'),
          ...(text === undefined ? { text: base64Of(body.bytes), encoding: 'base64' } : { text }),
          ...(body.fault !== undefined && { comment: body.fault }),
        },
      }),
    },
    response: {
      status: entry.status,
      statusText: entry.reason,
      httpVersion: 'HTTP/1.1',
      cookies: [],
      headers: list(entry.responseHead),
      content: {
        size: answer.length,
        mimeType: row.type,
        ...(isText ? { text: answerText } : { text: base64Of(answer), encoding: 'base64' }),
        ...(fault !== undefined && { comment: fault }),
      },
      redirectURL: headerOf(entry.responseHead, 'location', showing),
      headersSize: entry.responseHead.length,
      bodySize: entry.responseBody.totalBytes,
    },
    cache: {},
    timings: {
      send: row.times.requestMs ?? 0,
      wait: row.times.appMs ?? 0,
      receive: row.times.transferMs ?? 0,
    },
    ...(entry.note !== '' && { comment: entry.note }),
  }
}

export function harOf(entries: readonly unknown[]): string {
  const creator = { name: 'localtunnels', version: VERSION }
  return `${JSON.stringify({ log: { version: '1.2', creator, entries } }, null, 2)}\n`
}

export function isFormat(text: string): text is Format {
  return FORMATS.some(format => format === text)
}

/** Whether anything in the text is hidden, which the caller should say next to it. */
export function hidesSecrets(entry: Entry, { secrets }: Showing): boolean {
  const showing = { secrets, reveals: false }
  return (
    bodyOf(entry, showing).hides ||
    answerOf(entry, showing).hides ||
    [entry.requestHead, entry.responseHead].some(head => headText(head, showing).includes(MASK))
  )
}
