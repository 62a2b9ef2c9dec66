// Turns an app's response into a Response for middlewares: takes HTTP/1.1 text, and provides the body as a stream.

import { copyOf } from '../../bytes.ts'
import { deferred } from '../../deferred.ts'
import type { ResponseHead } from '../../http/head.ts'
import { ResponseReader } from '../../http/message-reader.ts'
import type { Bounds } from '../../server/settings/bounds.ts'

/** The number of response bytes that may wait for the middleware. With more, the app waits. */
const MAX_QUEUED_BYTES = 262_144

export interface AnswerReader {
  drained(): void
  /** Called when the middleware does not want the rest. */
  cancelled(): void
}

export class InnerAnswer {
  /** Whether the head has arrived and `response` exists. */
  hasBegun = false
  /** The protocols that a 101 switches to; empty for other responses. */
  upgrade = ''
  readonly #limits: Bounds
  readonly #method: string
  readonly #reader: AnswerReader
  readonly #response = deferred<Response>()
  readonly #text = new ResponseReader(false, (bytes, start, end) =>
    this.#controller?.enqueue(copyOf(bytes, start, end)),
  )
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined
  #isBackedUp = false

  /** Makes a reader of a response. `method`: that of the request. */
  constructor(limits: Bounds, method: string, reader: AnswerReader) {
    this.#limits = limits
    this.#method = method
    this.#reader = reader
    // An invalid request fails before the promise is returned.
    this.#response.promise.catch(() => {})
  }

  get response(): Promise<Response> {
    return this.#response.promise
  }

  /** Whether there is room. If not, the app waits for `drained`. */
  get hasRoom(): boolean {
    this.#isBackedUp = (this.#controller?.desiredSize ?? 1) <= 0
    return !this.#isBackedUp
  }

  /** Takes bytes[start, end). Returns `false` if they are not a valid response. */
  take(bytes: Uint8Array, start: number, end: number): boolean {
    const { head, body } = this.#text
    let at = start
    while (!this.hasBegun) {
      at = this.#text.readHead(bytes, at, end, this.#limits, this.#method)
      if (at === 0) return true
      // A Response cannot have a higher status.
      if (at < 0 || head.status > 599) return false
      // A middleware gets one response for each request.
      if (this.#text.isFinal) this.#begin(head)
    }
    body.feed(bytes, at, end)
    if (body.complete) this.#close()
    return true
  }

  /** Called when the app sends no more. */
  end(): void {
    if (this.#text.body.ended()) this.#close()
    else this.fail(new Error('the answer ended early'))
  }

  fail(error: Error): void {
    this.#controller?.error(error)
    this.#controller = undefined
    if (!this.hasBegun) this.#response.reject(error)
  }

  #begin(head: ResponseHead): void {
    this.hasBegun = true
    this.upgrade = head.upgrade
    const hasBody = head.body !== 'none' && head.status !== 204 && head.status !== 205 && head.status !== 304
    const body = hasBody ? this.#bodyStream() : null
    const headers = new Headers()
    for (const [name, value] of head.headerList()) headers.append(name, value)
    this.#response.resolve(new Response(body, { status: head.status, statusText: head.reason, headers }))
  }

  #bodyStream(): ReadableStream<Uint8Array> {
    return new ReadableStream<Uint8Array>(
      {
        start: controller => {
          this.#controller = controller
        },
        pull: () => {
          if (!this.#isBackedUp) return
          this.#isBackedUp = false
          this.#reader.drained()
        },
        cancel: () => {
          this.#controller = undefined
          this.#reader.cancelled()
        },
      },
      { highWaterMark: MAX_QUEUED_BYTES, size: piece => piece?.length ?? 0 },
    )
  }

  #close(): void {
    this.#controller?.close()
    this.#controller = undefined
  }
}
