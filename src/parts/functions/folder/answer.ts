// Responds with a file: the whole, a part, or that the visitor has it already.

import { extname } from 'node:path'
import { mimes } from 'mrmime'
import { INFO_POLICY, infoPage } from '../../../http/pages.ts'
import { conditionalStatus, lastModified, mayBeRange, rangeOf } from './conditions.ts'
import { bytesOf, type OpenFile, openFile, type Place } from './file.ts'

type Fields = Readonly<Record<string, string>>

/** The facts about a file, and the part of its bytes to send. */
interface Part {
  readonly status: 200 | 206 | 304 | 412 | 416
  readonly fields: Fields
  readonly start: number
  readonly end: number
}

/** Responds with the file at a place. `undefined` if it was removed since. */
export async function fileAnswer(
  request: Request,
  place: Place,
  more: Fields = {},
): Promise<Response | undefined> {
  const file = await openFile(place)
  if (file === undefined) return undefined
  let isHandedOn = false
  try {
    const nowMs = Date.now()
    const { status, fields, start, end } = partOf(request, file, nowMs, contentTypeOf(place.path))
    const isBodyWanted = request.method === 'GET' && end > start
    const body = isBodyWanted ? bytesOf(file.handle, start, end) : null
    const answer = new Response(body, { status, headers: { ...common(nowMs), ...fields, ...more } })
    isHandedOn = isBodyWanted
    return answer
  } finally {
    if (!isHandedOn) await file.handle.close()
  }
}

function partOf({ method, headers }: Request, file: OpenFile, nowMs: number, type: string): Part {
  const { size, etag } = file
  const nothing = { start: 0, end: 0 }
  const validators = { etag, 'last-modified': lastModified(file, nowMs) }
  const ended = conditionalStatus(headers, file)
  if (ended === 304) return { status: 304, fields: validators, ...nothing }
  if (ended === 412) return { status: 412, fields: { 'content-length': '0' }, ...nothing }

  // RFC 9110 section 14.2: Range has a meaning only for GET.
  const isRangeAllowed = method === 'GET' && mayBeRange(headers, file, nowMs)
  const range = isRangeAllowed ? rangeOf(headers.get('range'), size) : undefined
  if (range === 'unsatisfiable') {
    const fields = { 'accept-ranges': 'bytes', 'content-range': `bytes */${size}`, 'content-length': '0' }
    return { status: 416, fields, ...nothing }
  }
  const { start, end } = range ?? { start: 0, end: size }
  const fields = {
    ...validators,
    'accept-ranges': 'bytes',
    'content-type': type,
    'content-length': String(end - start),
  }
  if (range === undefined) return { status: 200, fields, start, end }
  const contentRange = `bytes ${start}-${end - 1}/${size}`
  return { status: 206, fields: { ...fields, 'content-range': contentRange }, start, end }
}

/** Whether a browser wants a page, rather than an image or a script. */
export function isPageAccepted(headers: Headers): boolean {
  return headers.get('accept')?.toLowerCase().includes('text/html') ?? false
}

/** Returns a 404: a page for a browser that opens the URL, a line of text for others. */
export function notFoundAnswer({ headers }: Request): Response {
  const vary = { vary: 'accept' }
  if (!isPageAccepted(headers)) return plainAnswer(404, 'There is no such file.', vary)
  const title = 'There is no such page'
  const text = 'Check the address. The site is shared from a folder of files, and this one is not among them.'
  const page = infoPage({ title, text, host: headers.get('host') ?? '', who: '' })
  return answerOf(404, page, 'text/html', { ...vary, 'content-security-policy': INFO_POLICY })
}

export function plainAnswer(status: number, text: string, more: Fields): Response {
  return answerOf(status, `${text}\n`, 'text/plain', more)
}

function answerOf(status: number, text: string, type: string, more: Fields): Response {
  const body = new TextEncoder().encode(text)
  const fields = {
    ...common(Date.now()),
    'content-type': `${type}; charset=utf-8`,
    // The length for HEAD, which has the fields without the body.
    'content-length': String(body.length),
    ...more,
  }
  return new Response(body, { status, headers: fields })
}

/**
 * Returns the fields of every response. Files change while their author works on them, so a browser must ask each
 * time, and gets 304 for an unchanged one.
 */
function common(nowMs: number): Fields {
  return { date: new Date(nowMs).toUTCString(), 'cache-control': 'no-cache' }
}

/** Returns the Content-Type. Text is UTF-8, because browsers would guess any other encoding. */
export function contentTypeOf(path: string): string {
  const extension = extname(path).slice(1).toLowerCase()
  // `lookup` would not do: it takes a file named `html` for that type, and finds `constructor` in the object's prototype.
  const type = Object.hasOwn(mimes, extension) ? mimes[extension] : undefined
  if (type === undefined) return 'application/octet-stream'
  return type.startsWith('text/') ? `${type}; charset=utf-8` : type
}
