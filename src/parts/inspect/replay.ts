// Sends a captured request again, only to the origin that it went to. Redirects are responses like any other.

import type { Origin } from '../../client/origins/origin.ts'
import { optionInvalid, TunnelError } from '../../errors.ts'
import { type Edit, MASK } from '../../exchange.ts'
import { ascii, joined, latin1 } from '../../http/characters.ts'
import { RequestHead, readWhole } from '../../http/head.ts'
import type { SignatureHeaders, Signed } from '../../signatures/signatures.ts'
import type { Socket, SocketHandler } from '../../socket.ts'
import type { Capture } from './capture.ts'
import { contentOf } from './content.ts'
import type { Entry } from './entry.ts'
import { unmaskedForm, unmaskedQueries } from './form-secrets.ts'
import { fieldsOf, headerOf } from './secrets.ts'
import { whyNotReplayable } from './view.ts'

/** The longest wait in milliseconds for the end of a response. A stream is then cut, and the part so far is stored. */
const ANSWER_TIMEOUT_MS = 60_000

export type Signer = (request: Signed) => SignatureHeaders

/** The headers that belong to one connection, or follow from the body. */
const FRAMING = new Set([
  'content-length',
  'transfer-encoding',
  'connection',
  'keep-alive',
  'expect',
  'te',
  'trailer',
])

/**
 * Returns the bytes of a request to send again. Throws `REPLAY_IMPOSSIBLE` or `BODY_TRUNCATED`, and `OPTION_INVALID`
 * for an invalid edit.
 */
export function replayBytes(entry: Entry, edit: Edit = {}, sign?: Signer): Uint8Array {
  const code = whyNotReplayable(entry)
  const isNewBody = edit.body !== undefined || edit.bodyBase64 !== undefined
  // A truncated body does not matter if another one is sent.
  if (code !== undefined && !(code === 'BODY_TRUNCATED' && isNewBody)) throw new TunnelError(code)
  const captured = latin1(entry.requestHead, 0, entry.requestHead.length).split('\r\n')
  const [method, target] = [edit.method ?? entry.method, unmaskedQueries(edit.path ?? entry.path, entry.path)]
  const version = captured[0]!.endsWith('HTTP/1.0') ? 'HTTP/1.0' : 'HTTP/1.1'
  const body = isNewBody ? editedBody(entry, edit) : entry.requestBody.bytes
  const fields = edit.fields === undefined ? captured.slice(1, -2) : editedFields(entry, edit.fields)
  const signature = Object.entries(sign?.(signedBy(fields, body)) ?? {})
  const isReplaced = (line: string) => signature.some(([name]) => name === nameOf(line))
  // The trailers belong to the captured body.
  const trailers = isNewBody ? new Uint8Array(0) : entry.requestTrailers
  const hasTrailers = trailers.length > 0
  const kept = fields.filter(line => {
    const name = nameOf(line)
    // Edited text has no coding.
    if (edit.body !== undefined && name === 'content-encoding') return false
    return !isReplaced(line) && (!FRAMING.has(name) || (hasTrailers && name === 'trailer'))
  })
  for (const [name, value] of signature) kept.push(`${name}: ${value}`)
  const hadLength = captured.some(line => /^(?:content-length|transfer-encoding):/i.test(line))
  if (hasTrailers) kept.push('Transfer-Encoding: chunked')
  else if (body.length > 0 || hadLength || !/^(?:GET|HEAD|DELETE|OPTIONS)$/.test(method))
    kept.push(`Content-Length: ${body.length}`)
  // One exchange per connection, whose end is then certain.
  kept.push('Connection: close')
  const text = `${method} ${target} ${version}\r\n${kept.join('\r\n')}\r\n\r\n`
  const head = Buffer.from(text, 'latin1')
  const parsed = new RequestHead()
  const isRequest =
    !/[^\0-\xff]/.test(text) &&
    readWhole(parsed, head) &&
    // A line end, or a colon in a name, would make lines that the edit does not show.
    parsed.method === method &&
    parsed.target === target &&
    parsed.headerList().length === kept.length &&
    (edit.fields ?? []).every(({ name }) => !/[:\r\n]/.test(name))
  if (!isRequest)
    throw optionInvalid(
      'The edited method, path and fields make no HTTP request. Fields need a Host, names without spaces and values without line ends.',
    )
  if (!hasTrailers) return joined([head, body])
  const chunk = body.length > 0 ? [ascii(`${body.length.toString(16)}\r\n`), body, ascii('\r\n')] : []
  return joined([head, ...chunk, ascii('0\r\n'), trailers, ascii('\r\n')])
}

function signedBy(fields: readonly string[], body: Uint8Array): Signed {
  return {
    body,
    header(name) {
      const line = fields.find(one => nameOf(one) === name)
      return line?.slice(line.indexOf(':') + 1).trim()
    },
  }
}

/** Returns a captured request in the form for its signature. */
export function signedOf(entry: Entry): Signed {
  const text = latin1(entry.requestHead, 0, entry.requestHead.length)
  return signedBy(text.split('\r\n').slice(1, -2), entry.requestBody.bytes)
}

function nameOf(line: string): string {
  return line.slice(0, line.indexOf(':')).toLowerCase()
}

function editedBody(entry: Entry, { body, bodyBase64 }: Edit): Uint8Array {
  const edited = bodyBase64 === undefined ? new TextEncoder().encode(body) : Buffer.from(bodyBase64, 'base64')
  const captured = contentOf(entry, 'request', true).bytes
  return unmaskedForm(edited, captured, headerOf(entry.requestHead, 'content-type'))
}

/** Replaces each value that is the mask by the captured one: the n-th of a name by the n-th. */
function editedFields(entry: Entry, fields: NonNullable<Edit['fields']>): string[] {
  const captured = fieldsOf(entry.requestHead, { secrets: new Set(), reveals: true })
  const taken = new Map<string, number>()
  return fields.map(({ name, value }) => {
    const key = name.toLowerCase()
    const same = captured.filter(one => one.name.toLowerCase() === key)
    const index = taken.get(key) ?? 0
    taken.set(key, index + 1)
    const before = same[index]?.value
    const real = before === undefined ? value : value === MASK ? before : unmaskedQueries(value, before)
    return `${name}: ${real}`
  })
}

/** Sends a request and resolves with its entry, once it is over. Rejects if the origin cannot be reached. */
export async function sendAgain(
  capture: Capture,
  original: Entry,
  origin: Origin,
  bytes: Uint8Array,
): Promise<Entry> {
  const place = { tunnel: original.place.tunnel, service: original.place.service }
  let replay: Entry | undefined
  const stop = capture.store.on('changed', entry => {
    if (entry.replayOf === original.id && entry.place === place) replay ??= entry
  })
  try {
    const sender = new Sender(bytes)
    const socket = await capture.connect(origin, sender, 'http', place, original.id)
    await sender.send(socket)
    capture.flush()
    if (replay === undefined) throw new TunnelError('ORIGIN_CLOSED')
    return replay
  } finally {
    stop()
  }
}

/** Writes a request and waits for the end of the connection. */
class Sender implements SocketHandler {
  readonly #bytes: Uint8Array
  #sent = 0
  #socket: Socket | undefined
  #over: (() => void) | undefined
  #isOver = false

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes
  }

  async send(socket: Socket): Promise<void> {
    this.#socket = socket
    const over = new Promise<void>(resolve => {
      this.#over = resolve
      if (this.#isOver) resolve()
    })
    const timer = setTimeout(() => socket.terminate(), ANSWER_TIMEOUT_MS)
    this.drained()
    socket.resume()
    await over
    clearTimeout(timer)
  }

  received(): void {}

  drained(): void {
    const { length } = this.#bytes
    while (this.#socket !== undefined && this.#sent < length) {
      const taken = this.#socket.write(this.#bytes, this.#sent, length)
      if (taken === 0) return
      this.#sent += taken
    }
  }

  ended(): void {
    this.#socket?.end()
  }

  closed(): void {
    this.#isOver = true
    this.#over?.()
  }
}
