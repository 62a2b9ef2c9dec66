// Exchanges over raw sockets for tests: reads messages naively, answers as an origin, and sets up a tunnel in between.

import type { TunnelClientOptions } from '../../src/client/options.ts'
import type { BoundedOptions } from './bounded-server.ts'
import { type RawConnection, RawOrigin, rawDial } from './raw.ts'
import { type LiveTunnel, startTunnel } from './tunnel.ts'

/** One HTTP/1.1 message as it came: all text is latin1. */
export interface Message {
  /** First line and header lines, blank line included. */
  readonly head: string
  /** The body as sent, chunk framing included. */
  readonly body: string
  /** The body without chunk framing. */
  readonly payload: string
}

/** Value of a header, by a naive search. */
export function headerOf(head: string, name: string): string | undefined {
  return new RegExp(`^${name}:[ \\t]*(.*?)[ \\t]*\\r$`, 'im').exec(head)?.[1]
}

export const statusOf = (head: string): number => Number(head.slice(9, 12))

/** Reads one answer; `method` is that of the request. One without framing is read until the end. */
export async function readAnswer(from: RawConnection, method = 'GET'): Promise<Message> {
  const head = await from.until('\r\n\r\n')
  const status = statusOf(head)
  if (method === 'HEAD' || status < 200 || status === 204 || status === 304)
    return { head, body: '', payload: '' }
  return readBody(from, head, true)
}

/** Reads one request. */
export async function readRequest(from: RawConnection): Promise<Message> {
  return readBody(from, await from.until('\r\n\r\n'), false)
}

async function readBody(from: RawConnection, head: string, isAnswer: boolean): Promise<Message> {
  const length = headerOf(head, 'content-length')
  if (length !== undefined) {
    const body = await from.exactly(Number(length))
    return { head, body, payload: body }
  }
  if (headerOf(head, 'transfer-encoding')?.toLowerCase() === 'chunked') return readChunks(from, head)
  if (!isAnswer) return { head, body: '', payload: '' }
  await from.end()
  const body = from.take(from.bytes.length)
  return { head, body, payload: body }
}

async function readChunks(from: RawConnection, head: string): Promise<Message> {
  let body = ''
  let payload = ''
  for (;;) {
    const line = await from.until('\r\n')
    body += line
    const size = Number.parseInt(line, 16)
    if (size === 0) break
    const chunk = await from.exactly(size + 2)
    body += chunk
    payload += chunk.slice(0, -2)
  }
  let trailer = ''
  do {
    trailer = await from.until('\r\n')
    body += trailer
  } while (trailer !== '\r\n')
  return { head, body, payload }
}

export const get = (host: string, path = '/', lines = ''): string =>
  `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n${lines}\r\n`

export const post = (host: string, body: string, path = '/', lines = ''): string =>
  `POST ${path} HTTP/1.1\r\nHost: ${host}\r\nContent-Length: ${body.length}\r\n${lines}\r\n${body}`

export const ok = (body: string, lines = ''): string =>
  `HTTP/1.1 200 OK\r\nContent-Length: ${body.length}\r\n${lines}\r\n${body}`

/** A tunnel to an origin whose every connection is in the test's hands. */
export interface RawTunnel extends AsyncDisposable {
  readonly tunnel: LiveTunnel
  readonly origin: RawOrigin
  readonly host: string
  /** A visitor's connection; `data` is sent at once. */
  visit(data?: string | Uint8Array): Promise<RawConnection>
}

export async function rawTunnel(
  options: { server?: BoundedOptions; client?: TunnelClientOptions } = {},
): Promise<RawTunnel> {
  const origin = new RawOrigin()
  const tunnel = await startTunnel(
    { port: origin.port, ...options.client },
    options.server === undefined ? {} : { server: options.server },
  )
  const visitors: RawConnection[] = []
  return {
    tunnel,
    origin,
    host: tunnel.host,
    async visit(data) {
      const visitor = await rawDial(tunnel.port)
      visitors.push(visitor)
      if (data !== undefined) await visitor.send(data)
      return visitor
    },
    async [Symbol.asyncDispose]() {
      for (const visitor of visitors) visitor.socket.terminate()
      for (const connection of origin.connections) connection.socket.terminate()
      await tunnel[Symbol.asyncDispose]()
      origin[Symbol.dispose]()
    },
  }
}

/**
 * One exchange from end to end: sends `request`, answers with `answer` whatever was asked, says what either side
 * saw. The origin's connection is returned still open.
 */
export async function exchange(
  raw: RawTunnel,
  request: string,
  answer: string,
): Promise<{ seen: Message; got: Message; visitor: RawConnection; app: RawConnection }> {
  const visitor = await raw.visit(request)
  const app = await raw.origin.accept()
  const seen = await readRequest(app)
  await app.send(answer)
  const got = await readAnswer(visitor, request.split(' ', 1)[0])
  return { seen, got, visitor, app }
}
