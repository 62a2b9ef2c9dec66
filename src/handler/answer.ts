// Writes a web Response as HTTP/1.1 bytes: with its length if that is known in time, otherwise in chunks.

import { ascii, joined } from '../http/characters.ts'

/** The request that a response belongs to. */
export interface AnswerTo {
  readonly method: string
  readonly minorVersion: 0 | 1
  /** Whether the connection may be used again after the response. */
  readonly keepAlive: boolean
}

/** Takes bytes. Returns a promise if the caller must wait; it rejects when the visitor is gone. */
export type Send = (bytes: Uint8Array) => Promise<void> | undefined

/** The headers that concern the connection, which is framed here and not by the handler. */
const OWN_NAMES = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'te',
  'upgrade',
  'trailer',
])

/** The size up to which a body that is ready at once is collected, so that it leaves with its length in one write. */
const MAX_COLLECTED_BYTES = 131_072

/** The number of microtask turns to wait for a body. On Bun and Node, one in memory needs two. */
const TURNS = 6

/** The result of reading a body. It is written out because the platforms' own types differ. */
type Read = { readonly done: boolean; readonly value?: Uint8Array | undefined }
interface Reader {
  read(): Promise<Read>
  cancel(reason?: unknown): Promise<void>
}

const LAST_CHUNK = ascii('0\r\n\r\n')
const CRLF = ascii('\r\n')

/**
 * Sends the response. Resolves with whether the connection may be used again. Rejects if the body fails or does not
 * have its announced length. Then cut the connection, because a truncated response must not look complete.
 */
export async function sendAnswer(response: Response, to: AnswerTo, send: Send): Promise<boolean> {
  const { status } = response
  if (status < 200 || status > 599) throw new RangeError(`a handler cannot answer with status ${status}`)
  const hasBody = to.method !== 'HEAD' && status !== 204 && status !== 304
  const promised = lengthOf(response)
  const reader: Reader | undefined = hasBody ? response.body?.getReader() : undefined
  if (!hasBody) void response.body?.cancel().catch(ignore)

  if (reader === undefined) {
    // A response to HEAD, or a 304, has no body to count, so the handler's length is used. A 204 has no length.
    const length = hasBody ? 0 : status === 204 ? undefined : promised
    if (hasBody && promised !== undefined && promised !== 0) throw new RangeError('the answer has no body')
    await send(headOf(response, to, length, false, to.keepAlive))
    return to.keepAlive
  }

  try {
    const { pieces, rest } = await collect(reader)
    // The body may fail while the visitor reads earlier bytes. The error is handled below.
    rest?.catch(ignore)
    const collected = pieces.reduce((sum, piece) => sum + piece.length, 0)
    const length = promised ?? (rest === undefined ? collected : undefined)
    const isChunked = length === undefined && to.minorVersion === 1
    const keepAlive = to.keepAlive && (length !== undefined || isChunked)
    const head = headOf(response, to, length, isChunked, keepAlive)

    let sent = collected
    check(sent, length, rest === undefined)
    const first = isChunked && collected > 0 ? framed(pieces, collected) : pieces
    await send(joined([head, ...first]))
    for (let next = await rest; next !== undefined && !next.done; next = await reader.read()) {
      const piece = pieceOf(next)
      sent += piece.length
      check(sent, length, false)
      if (piece.length > 0) await send(isChunked ? joined(framed([piece], piece.length)) : piece)
    }
    check(sent, length, true)
    if (isChunked) await send(LAST_CHUNK)
    return keepAlive
  } catch (error) {
    // The handler's stream is cancelled; the caller reports the reason.
    void reader.cancel(error).catch(ignore)
    throw error
  }
}

function ignore(): void {}

function check(sent: number, promised: number | undefined, isComplete: boolean): void {
  if (promised === undefined || (isComplete ? sent === promised : sent <= promised)) return
  throw new RangeError(
    `the answer has ${isComplete ? sent : 'more'} bytes where content-length says ${promised}`,
  )
}

/** Reads while the next piece is there without waiting. `rest` is the read that has to wait, if any. */
async function collect(reader: Reader): Promise<{ pieces: Uint8Array[]; rest: Promise<Read> | undefined }> {
  const pieces: Uint8Array[] = []
  let bytes = 0
  for (;;) {
    const read = reader.read()
    const result = await Promise.race([read, someTurns()])
    if (result === undefined) return { pieces, rest: read }
    if (result.done) return { pieces, rest: undefined }
    const piece = pieceOf(result)
    bytes += piece.length
    pieces.push(piece)
    if (bytes >= MAX_COLLECTED_BYTES) return { pieces, rest: reader.read() }
  }
}

/** Converts a piece. Streams of strings are a common mistake that some platforms allow. */
function pieceOf({ value }: Read): Uint8Array {
  if (value instanceof Uint8Array) return value
  throw new TypeError('a body stream has to give Uint8Array pieces')
}

async function someTurns(): Promise<undefined> {
  for (let turn = 0; turn < TURNS; turn++) await Promise.resolve()
}

function lengthOf(response: Response): number | undefined {
  const text = response.headers.get('content-length')
  if (text === null) return undefined
  if (!/^\d{1,15}$/.test(text)) throw new RangeError(`content-length is "${text}"`)
  return Number(text)
}

/** Returns the head of a response that switches to one of these protocols. */
export function switchHeadOf(response: Response, upgrade: string): Uint8Array {
  return latin1Bytes(`${linesOf(response)}connection: upgrade\r\nupgrade: ${upgrade}\r\n\r\n`)
}

function headOf(
  response: Response,
  to: AnswerTo,
  length: number | undefined,
  isChunked: boolean,
  keepAlive: boolean,
): Uint8Array {
  let text = linesOf(response)
  if (isChunked) text += 'transfer-encoding: chunked\r\n'
  else if (length !== undefined) text += `content-length: ${length}\r\n`
  if (!keepAlive) text += 'connection: close\r\n'
  else if (to.minorVersion === 0) text += 'connection: keep-alive\r\n'
  return latin1Bytes(`${text}\r\n`)
}

/** Returns the status line and the header lines that do not concern the connection. */
function linesOf({ status, statusText, headers }: Response): string {
  let text = `HTTP/1.1 ${status} ${statusText}\r\n`
  for (const [name, value] of headers)
    if (name !== 'content-length' && name !== 'set-cookie' && !OWN_NAMES.has(name))
      text += `${name}: ${value}\r\n`
  // Unlike other headers, cookies cannot be joined with commas.
  for (const cookie of headers.getSetCookie()) text += `set-cookie: ${cookie}\r\n`
  return text
}

/** Returns Latin-1 bytes. Web headers have one character per byte, which UTF-8 would turn into two bytes. */
function latin1Bytes(text: string): Uint8Array {
  const bytes = new Uint8Array(text.length)
  for (let index = 0; index < text.length; index++) bytes[index] = text.charCodeAt(index)
  return bytes
}

function framed(pieces: readonly Uint8Array[], length: number): Uint8Array[] {
  return [ascii(`${length.toString(16)}\r\n`), ...pieces, CRLF]
}
