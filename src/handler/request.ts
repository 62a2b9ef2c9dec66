// Turns a request head into a web Request, whose body is read only as fast as the handler reads it.

import type { RequestHead } from '../http/head.ts'

/** The visitor's scheme: that of the connection, or the one in X-Forwarded-Proto, written by the tunnel server in front. */
export type Scheme = 'http' | 'https' | 'forwarded'

/**
 * Returns the Request for a handler. `undefined` if the platform cannot make one with this method: Bun turns unknown
 * methods into GET without an error, and a handler must never take one request for another.
 */
export function requestOf(
  head: RequestHead,
  scheme: Scheme,
  body: ReadableStream<Uint8Array> | undefined,
  signal: AbortSignal,
): Request | undefined {
  const headers = new Headers()
  const { fields } = head
  // Headers that Connection names concern only the connection of the request.
  for (let line = 0; line < fields.count; line++)
    if (!fields.isNominated(line)) headers.append(fields.name(line), fields.value(line))
  // Some platforms refuse a GET with a body, and none uses it.
  const hasBody = body !== undefined && head.method !== 'GET' && head.method !== 'HEAD'
  const init: RequestInit & { duplex?: 'half' } = { method: head.method, headers, signal }
  if (hasBody) {
    init.body = body
    init.duplex = 'half'
  }
  try {
    const request = new Request(urlOf(head, scheme), init)
    return request.method === head.method ? request : undefined
  } catch {
    // A Request cannot have the methods CONNECT, TRACE and TRACK, nor a target that is not a valid URL.
    return undefined
  }
}

function urlOf(head: RequestHead, scheme: Scheme): string {
  const forwarded = head.header('x-forwarded-proto')?.toLowerCase()
  const proto = scheme !== 'forwarded' ? scheme : forwarded === 'https' ? 'https' : 'http'
  const path = head.target.slice(head.pathStart - head.targetStart)
  const rooted = path.startsWith('/') ? path : `/${path}`
  // The visitor meant raw bytes. As characters they would be encoded a second time, as UTF-8.
  const encoded = rooted.replace(/[\x80-\xff]/g, byte => `%${byte.charCodeAt(0).toString(16).toUpperCase()}`)
  return `${proto}://${head.hostWithPort}${encoded}`
}

/** The operations of the connection that feeds a RequestBody. */
export interface BodySource {
  /** Called when the handler wants bytes: resume reading. */
  wanted(): void
  /** Called when the handler has enough bytes for now: pause reading. */
  satisfied(): void
}

/** The body of one request, from the connection to the handler. */
export class RequestBody {
  readonly stream: ReadableStream<Uint8Array>
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined
  readonly #source: BodySource

  constructor(source: BodySource) {
    this.#source = source
    this.stream = new ReadableStream<Uint8Array>(
      {
        start: controller => {
          this.#controller = controller
        },
        pull: () => source.wanted(),
        // The handler needs no more. The rest is read and dropped, so that the connection can be used again.
        cancel: () => {
          this.#controller = undefined
          source.wanted()
        },
      },
      // Reads no more than the handler asked for, except what arrived in the same piece.
      { highWaterMark: 0 },
    )
  }

  push(bytes: Uint8Array): void {
    if (this.#controller === undefined) return
    this.#controller.enqueue(bytes)
    if ((this.#controller.desiredSize ?? 0) <= 0) this.#source.satisfied()
  }

  close(): void {
    this.#controller?.close()
    this.#controller = undefined
  }

  fail(error: Error): void {
    this.#controller?.error(error)
    this.#controller = undefined
  }
}
