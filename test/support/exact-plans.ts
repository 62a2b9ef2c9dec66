// Random exchanges for comparing what an inspector captured with what both sides saw: each is known in full beforehand.

import { Random } from './random.ts'

export type Abort = 'none' | 'visitor-asking' | 'visitor-reading' | 'app-silent' | 'app-answering'

export interface Plan {
  readonly id: number
  readonly method: string
  readonly abort: Abort
  readonly isWebSocket: boolean
  /** Head of the request as the visitor sends it. */
  readonly head: string
  readonly body: Buffer
  /** The body as it goes on the wire. */
  readonly framedBody: Buffer
  readonly trailers: string
  readonly interim: readonly string[]
  readonly responseHead: string
  readonly responseBody: Buffer
  readonly framedAnswer: Buffer
  readonly responseTrailers: string
  readonly isUntilClose: boolean
  /** Of a WebSocket: what the visitor says. */
  readonly messages: readonly string[]
  /** Sizes of writes. */
  readonly random: Random
}

const METHODS = ['GET', 'GET', 'POST', 'POST', 'PUT', 'DELETE', 'PATCH', 'HEAD', 'OPTIONS', 'PROPFIND']

export function planOf(id: number, seed: number, host: string): Plan {
  const random = new Random(seed * 100_003 + id)
  const isWebSocket = random.chance(0.06)
  const method = isWebSocket ? 'GET' : random.pick(METHODS)
  const abort: Abort =
    isWebSocket || random.chance(0.85)
      ? 'none'
      : random.pick(['visitor-asking', 'visitor-reading', 'app-silent', 'app-answering'] as const)
  const hasBody = !isWebSocket && (abort === 'visitor-asking' || /^(?:POST|PUT|PATCH|PROPFIND)$/.test(method))
  const body = hasBody ? bodyOf(`q${id}`, sizeOf(random, abort === 'visitor-asking')) : Buffer.alloc(0)
  const isChunked = hasBody && random.chance(0.5)
  const trailers =
    isChunked && random.chance(0.4) ? `X-Sum: ${id}\r\n${random.chance(0.5) ? 'x-More:  b \r\n' : ''}` : ''
  const status = random.pick([200, 200, 200, 201, 404, 500, 204, 304])
  const isEmpty = isWebSocket || method === 'HEAD' || status === 204 || status === 304
  const responseBody = isEmpty ? Buffer.alloc(0) : bodyOf(`a${id}`, sizeOf(random, abort.endsWith('ing')))
  const answerKind = isEmpty || isWebSocket ? 'none' : random.pick(['length', 'chunked', 'chunked', 'close'])
  const responseTrailers = answerKind === 'chunked' && random.chance(0.4) ? `X-Checked: ${id}\r\n` : ''
  const framing = hasBody
    ? isChunked
      ? ['Transfer-Encoding: chunked']
      : [`Content-Length: ${body.length}`]
    : []
  const upgrade = [
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
  ]
  const odd = random.chance(0.5)
    ? [`x-ODD-${random.below(9)}: a`, `X-odd-${random.below(9)}:   b`, 'Cookie: s=1', 'cookie: t=2']
    : []
  const asks = [
    `${method} /x/${id}?n=${random.bits()} HTTP/1.1`,
    `Host: ${host}`,
    `X-Id: ${id}`,
    ...odd,
    ...framing,
  ]
  const answerFraming =
    {
      length: [`Content-Length: ${responseBody.length}`],
      chunked: ['transfer-encoding: chunked'],
      close: ['Connection: close'],
      none: isWebSocket
        ? ['Connection: upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=']
        : [],
    }[answerKind] ?? []
  const answers = [
    isWebSocket ? 'HTTP/1.1 101 Switching' : `HTTP/1.1 ${status} ${random.pick(['OK', 'Odd  Reason', ''])}`,
    `X-Answer: ${id}`,
    ...(random.chance(0.3) ? ['Set-Cookie: a=1', 'set-cookie: b=2'] : []),
    ...answerFraming,
  ]
  return {
    id,
    method,
    abort,
    isWebSocket,
    head: `${[...asks, ...(isWebSocket ? upgrade : [])].join('\r\n')}\r\n\r\n`,
    body,
    framedBody: isChunked ? chunked(body, trailers, random) : body,
    trailers,
    interim:
      isWebSocket || random.chance(0.85) ? [] : [`HTTP/1.1 103 Early Hints\r\nLink: </${id}.css>\r\n\r\n`],
    responseHead: `${answers.join('\r\n')}\r\n\r\n`,
    responseBody,
    framedAnswer: answerKind === 'chunked' ? chunked(responseBody, responseTrailers, random) : responseBody,
    responseTrailers,
    isUntilClose: answerKind === 'close',
    messages: isWebSocket ? Array.from({ length: random.below(6) }, (_, index) => `m${id}.${index}`) : [],
    random,
  }
}

/** Most are small; some take several windows and a link. */
function sizeOf(random: Random, isLarge: boolean): number {
  if (isLarge) return 20_000 + random.below(200_000)
  return random.pick([
    0,
    1,
    random.below(200),
    random.below(5_000),
    random.below(50_000),
    random.chance(0.1) ? 600_000 : 700,
  ])
}

/** Every place of it says whose it is, and where. */
function bodyOf(name: string, size: number): Buffer {
  let text = ''
  while (text.length < size) text += `${name}@${text.length};`
  return Buffer.from(text.slice(0, size))
}

function chunked(body: Buffer, trailers: string, random: Random): Buffer {
  const pieces: Buffer[] = []
  for (let at = 0; at < body.length; ) {
    const size = Math.min(body.length - at, 1 + random.below(random.pick([3, 500, 70_000]) ?? 1))
    // A body in pieces of a few bytes alone would be all framing.
    const taken = pieces.length > 60 ? body.length - at : size
    pieces.push(
      Buffer.from(`${taken.toString(16)}${random.chance(0.1) ? ';x=1' : ''}\r\n`),
      body.subarray(at, at + taken),
      Buffer.from('\r\n'),
    )
    at += taken
  }
  return Buffer.concat([...pieces, Buffer.from(`0\r\n${trailers}\r\n`)])
}
