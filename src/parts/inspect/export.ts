// Exports an exchange as text. Secrets are left out unless they are requested.

import { type Field, MASK } from '../../exchange.ts'
import { joined } from '../../http/characters.ts'
import { VERSION } from '../../version.ts'
import { contentOf } from './content.ts'
import type { Entry } from './entry.ts'
import { MASK_BYTES, maskedForm } from './form-secrets.ts'
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

/** Returns the fields for the tools. Secrets are left out, because the mask would be sent. */
function sentFields(entry: Entry, showing: Showing): Field[] {
  return fieldsOf(entry.requestHead, showing).filter(
    ({ name, isSecret }) =>
      !NOT_THE_VISITORS.has(name.toLowerCase()) && (showing.reveals || isSecret !== true),
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

/** Returns the captured bytes, with secret fields of a form or of JSON masked. */
function bodyOf(entry: Entry, { secrets, reveals }: Showing): Uint8Array {
  const { bytes } = entry.requestBody
  return reveals ? bytes : maskedForm(bytes, headerOf(entry.requestHead, 'content-type'), secrets)
}

/** Returns the captured response, decoded, with secret fields of a form or of JSON masked. */
function answerOf(
  entry: Entry,
  { secrets, reveals }: Showing,
): { readonly bytes: Uint8Array; readonly isMasked: boolean } {
  const content = contentOf(entry, 'response', true).bytes
  const bytes = reveals ? content : maskedForm(content, headerOf(entry.responseHead, 'content-type'), secrets)
  return { bytes, isMasked: bytes !== content }
}

function base64Of(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64')
}

function cutNote(entry: Entry): string {
  const { isCut, keptBytes, totalBytes } = entry.requestBody
  return isCut ? `the body was cut: ${keptBytes} of ${totalBytes} bytes` : ''
}

// ── curl ─────────────────────────────────────────────────────────────────────────────────────────────────────

function curl(entry: Entry, showing: Showing, baseUrl: string): string {
  const words = [`curl -X ${shellWord(entry.method)}`]
  if (entry.method === 'HEAD') words[0] = 'curl --head'
  // A path such as /a/../b is sent unchanged.
  const url = urlOf(entry, showing, baseUrl).replaceAll(MASK, MASK_BYTES)
  words.push('--path-as-is', '-g', shellWord(url))
  // curl leaves out a field with an empty value, unless it ends with a semicolon.
  for (const { name, value } of sentFields(entry, showing))
    words.push(`-H ${shellWord(value === '' ? `${name};` : `${name}: ${value}`)}`)
  if (entry.requestBody.keptBytes === 0) return `${note(entry)}${words.join(' \\\n  ')}\n`
  // curl adds a Content-Type of its own to a body.
  if (headerOf(entry.requestHead, 'content-type') === '') words.push("-H 'Content-Type:'")
  const text = textBody(bodyOf(entry, showing))
  // curl takes a text that begins with an at sign for the name of a file.
  if (text !== undefined && !text.startsWith('@') && isSafeInQuotes(text))
    return `${note(entry)}${[...words, `--data-binary ${inQuotes(text)}`].join(' \\\n  ')}\n`
  const lines = base64Of(bodyOf(entry, showing)).replace(/.{76}(?=.)/g, '$&\n')
  return `${note(entry)}printf %s '${lines}' | base64 -d | ${[...words, '--data-binary @-'].join(' \\\n  ')}\n`
}

function note(entry: Entry): string {
  const cut = cutNote(entry)
  return cut === '' ? '' : `# ${cut}\n`
}

/**
 * A pattern for control characters, and those that change how text is shown: a terminal reads ^C as a key even in
 * quotes.
 */
const UNSAFE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\ufffd]/u

/**
 * Whether a text is safe in quotes. Old shells look for `!` in each further line of a text as if it were not in
 * quotes.
 */
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

function requestInit(entry: Entry, showing: Showing): string[] {
  const lines = [`  method: ${literal(entry.method)},`, "  redirect: 'manual',"]
  const fields = sentFields(entry, showing)
  if (fields.length > 0) {
    lines.push('  headers: [')
    for (const { name, value } of fields) lines.push(`    [${literal(name)}, ${literal(value)}],`)
    lines.push('  ],')
  }
  const hasBody = entry.requestBody.keptBytes > 0 && entry.method !== 'GET' && entry.method !== 'HEAD'
  if (hasBody) {
    const text = textBody(bodyOf(entry, showing))
    if (text !== undefined) lines.push(`  body: ${literal(text)},`)
    else
      lines.push(
        `  body: Uint8Array.from(atob('${base64Of(bodyOf(entry, showing))}'), one => one.charCodeAt(0)),`,
      )
  }
  return lines
}

function fetchCall(entry: Entry, showing: Showing, baseUrl: string): string {
  const cut = cutNote(entry)
  return [
    ...(cut === '' ? [] : [`// ${cut}`]),
    `const answer = await fetch(${literal(urlOf(entry, showing, baseUrl))}, {`,
    ...requestInit(entry, showing),
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
  const { bytes, isMasked } = answerOf(entry, showing)
  // A test of a masked body would fail.
  const isWhole =
    !isMasked && !entry.responseBody.isCut && entry.responseBody.isComplete && entry.method !== 'HEAD'
  const text = new TextDecoder().decode(bytes)
  const json = isWhole && /json/i.test(type) ? jsonOf(text) : undefined
  const expectations = [is('answer.status', `${entry.status}`)]
  if (type !== '') expectations.push(is("answer.headers.get('content-type')", literal(type)))
  if (json !== undefined) expectations.push(equals('await answer.json()', json))
  else if (isWhole && !text.includes('\ufffd')) expectations.push(is('await answer.text()', literal(text)))
  const cut = cutNote(entry)
  return [
    imports,
    '',
    `const app = process.env.APP_URL ?? ${literal(baseUrl)}`,
    '',
    ...(cut === '' ? [] : [`// ${cut}`]),
    `test(${literal(`${entry.method} ${path}`)}, async () => {`,
    `  const answer = await fetch(app + ${literal(path)}, {`,
    ...requestInit(entry, showing).map(line => `  ${line}`),
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
  const body = bodyOf(entry, showing)
  const isMasked = body !== entry.requestBody.bytes
  const head = lines
    .filter((line, index) => index === 0 || !(line.includes(MASK) || /^trailer:/i.test(line)))
    .map(line =>
      /^transfer-encoding:/i.test(line) || (isMasked && /^content-length:/i.test(line))
        ? `Content-Length: ${body.length}`
        : line,
    )
    .join('\r\n')
    .replaceAll(MASK, MASK_BYTES)
  return joined([Buffer.from(head, 'latin1'), body])
}

// ── HAR 1.2 ──────────────────────────────────────────────────────────────────────────────────────────────────

export function harEntry(entry: Entry, showing: Showing, baseUrl: string): unknown {
  const row = rowOf(entry, showing)
  const url = urlOf(entry, showing, baseUrl)
  const answer = answerOf(entry, showing).bytes
  const text = textBody(bodyOf(entry, showing))
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
          ...(text === undefined ? { text: base64Of(bodyOf(entry, showing)), encoding: 'base64' } : { text }),
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
    bodyOf(entry, showing) !== entry.requestBody.bytes ||
    answerOf(entry, showing).isMasked ||
    [entry.requestHead, entry.responseHead].some(head => headText(head, showing).includes(MASK))
  )
}
