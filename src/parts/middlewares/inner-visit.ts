// The app's side of an exchange with middlewares: sends a Request to an upstream, and returns its response as a Response.

import { copyOf } from '../../bytes.ts'
import { deferred } from '../../deferred.ts'
import { type ErrorCode, errorOf } from '../../errors.ts'
import { errorAnswer } from '../../http/error-answer.ts'
import { CONNECTION_NAMES } from '../../http/field-names.ts'
import type { Hop } from '../../http/forward.ts'
import { parseRequestHead, RequestHead } from '../../http/head.ts'
import type { Served } from '../../server/contracts/front.ts'
import { DEAD_EXCHANGE, type Exchange, type Rewrite, type Visit } from '../../server/contracts/upstream.ts'
import type { Bounds } from '../../server/settings/bounds.ts'
import { InnerAnswer } from './inner-answer.ts'
import type { Wrapping } from './middleware.ts'

/** The headers of a connection, or those that are written again: no middleware changes framing or routing. */
const OWN_NAMES: ReadonlySet<string> = new Set(['host', ...CONNECTION_NAMES])

const LAST_CHUNK = Buffer.from('0\r\n\r\n')

/** A reader of a body, written out because the platforms' own types differ. */
interface BodyReader {
  read(): Promise<{ readonly done: boolean; readonly value?: Uint8Array | undefined }>
  cancel(): Promise<void>
}

export class InnerVisit implements Visit {
  readonly head: RequestHead = new RequestHead()
  readonly answerLines = undefined
  readonly hstsLine = undefined
  readonly keepsAlive = true
  readonly originTimeoutMs: number | undefined
  /** The code of a request that could not be sent, or of a response that ended early. */
  failure: ErrorCode | undefined
  readonly #outer: Visit
  readonly #wrapping: Wrapping
  readonly #limits: Bounds
  readonly #request: Request
  /** Whether the visitor's body has a length and was not changed, so that the app gets the length too. */
  readonly #keepsLength: boolean
  readonly #answer: InnerAnswer
  #served: Served | undefined
  #exchange: Exchange | undefined
  #isOver = false
  #isRequestSent = false
  #resume: (() => void) | undefined
  #isPaused = false
  /** The app's calls since its 101, until the middlewares have agreed to it. */
  readonly #sinceSwitch: (() => unknown)[] = []
  #isJoined = false

  constructor(
    outer: Visit,
    wrapping: Wrapping,
    limits: Bounds,
    request: Request,
    body: ReadableStream<Uint8Array> | undefined,
  ) {
    this.#outer = outer
    this.originTimeoutMs = outer.originTimeoutMs
    this.#wrapping = wrapping
    this.#limits = limits
    this.#request = request
    this.#keepsLength = body !== undefined && request.body === body && outer.head.body === 'length'
    this.#answer = new InnerAnswer(limits, request.method, {
      drained: () => {
        if (!this.#isOver) this.#exchange?.drained()
      },
      cancelled: () => this.abandon(),
    })
  }

  /** Resolves with the response; if there is none, with the page of the code. */
  begin(served: Served): Promise<Response> {
    const bytes = headOf(this.#request, this.#outer.head, this.#keepsLength)
    const end = parseRequestHead(this.head, bytes, 0, bytes.length, this.#limits)
    if (end !== bytes.length) {
      // Text that a visitor sends unescaped is longer in the URL of a Request.
      const { refusal } = this.head
      if (refusal === 'TARGET_TOO_LONG' || refusal === 'HEAD_TOO_LARGE') this.failure = refusal
      throw new RangeError('the request of a middleware is none any more')
    }
    this.head.requestId = this.#outer.head.requestId
    this.head.traceparent = this.#outer.head.traceparent
    this.#beginAt(served)
    return this.#answer.response
  }

  /** The protocols that the app switches to; empty for none. */
  get upgrade(): string {
    return this.#answer.upgrade
  }

  get isRequestSent(): boolean {
    return this.#isRequestSent
  }

  get exchange(): Exchange {
    return this.#exchange ?? DEAD_EXCHANGE
  }

  /** Called when the visitor has the 101: the app's calls since then follow, and raw bytes go both ways. */
  join(): void {
    let isTaking = true
    for (let act = this.#sinceSwitch.shift(); act !== undefined; act = this.#sinceSwitch.shift())
      isTaking = act() !== false
    this.#isJoined = true
    // The app has waited since its 101.
    if (isTaking) this.exchange.drained()
  }

  /** Called when the visitor does not want the response any more. */
  abandon(): void {
    if (this.#isOver) return
    this.#over()
    this.#exchange?.abandoned()
    this.#answer.fail(new Error('the exchange was given up'))
  }

  #beginAt(served: Served): void {
    this.#served = served
    const exchange = served.upstream.begin(this)
    if (this.#isOver) return
    this.#exchange ??= exchange
    const { body } = this.#request
    if (body === null) this.#sent(this.#exchange)
    else void this.#pump(body.getReader(), this.#exchange)
  }

  async #pump(reader: BodyReader, exchange: Exchange): Promise<void> {
    try {
      for (let next = await reader.read(); !next.done; next = await reader.read()) {
        if (this.#isOver) return void reader.cancel().catch(() => {})
        const { value } = next
        if (value === undefined || value.length === 0) continue
        exchange.body(
          this.#keepsLength
            ? value
            : Buffer.concat([Buffer.from(`${value.length.toString(16)}\r\n`), value, Buffer.from('\r\n')]),
        )
        if (this.#isPaused) await this.#untilResumed()
      }
      if (this.#isOver) return
      if (!this.#keepsLength) exchange.body(LAST_CHUNK)
      this.#sent(exchange)
    } catch (error) {
      if (this.#isOver) return
      this.#over()
      exchange.abandoned()
      this.#answer.fail(errorOf(error))
    }
  }

  #sent(exchange: Exchange): void {
    this.#isRequestSent = true
    exchange.bodyEnded()
  }

  #untilResumed(): Promise<void> {
    const { promise, resolve } = deferred<void>()
    this.#resume = () => resolve(undefined)
    return promise
  }

  // ── Visit ──────────────────────────────────────────────────────────────────────────────────────────────────

  hop(rewrite: Rewrite | undefined): Hop {
    return this.#outer.hop(rewrite)
  }

  write(bytes: Uint8Array, start = 0, end: number = bytes.length): boolean {
    if (this.#isOver) return true
    if (this.#isJoined) return this.#outer.write(bytes, start, end)
    if (this.upgrade !== '') {
      const piece = copyOf(bytes, start, end)
      this.#sinceSwitch.push(() => this.#outer.write(piece))
      return false
    }
    if (this.#answer.take(bytes, start, end)) return this.#answer.hasRoom
    this.#over()
    this.failure = 'ORIGIN_INVALID'
    this.#answer.fail(new Error('the answer is none'))
    return true
  }

  answered(): void {}

  /** Does nothing, because the middlewares have the response. */
  switched(): void {}

  endAnswer(): void {
    this.#sinceSwitched(() => this.#outer.endAnswer())
  }

  done(): void {
    if (this.#isOver) return
    if (this.upgrade !== '') return this.#sinceSwitched(() => this.#outer.done(false))
    this.#over()
    this.#answer.end()
  }

  fail(code: ErrorCode, again?: readonly Uint8Array[], reason?: string): void {
    if (this.#isOver) return
    if (this.upgrade !== '') return this.#sinceSwitched(() => this.#outer.fail(code))
    const other = again === undefined || this.#answer.hasBegun ? undefined : this.#served?.instead?.(code)
    if (other?.kind === 'upstream' && again !== undefined) return this.#sendAgain(other, again)
    if (this.#answer.hasBegun) {
      this.failure = code
      this.#over()
      return this.#answer.fail(new Error(`the app's answer failed: ${code}`))
    }
    this.#wrapping.refused(code, reason)
    const { host, method } = this.head
    const page = errorAnswer(code, { head: method === 'HEAD', keepAlive: true, host })
    this.#answer.take(page, 0, page.length)
    this.done()
  }

  pause(): void {
    if (this.#isJoined) return this.#outer.pause()
    this.#isPaused = true
  }

  resume(): void {
    if (this.#isJoined) return this.#outer.resume()
    this.#isPaused = false
    const resume = this.#resume
    this.#resume = undefined
    resume?.()
  }

  #sinceSwitched(act: () => void): void {
    if (this.#isJoined) act()
    else this.#sinceSwitch.push(act)
  }

  /** Sends the request to another client from its beginning. The rest of the body follows by itself. */
  #sendAgain(served: Served, pieces: readonly Uint8Array[]): void {
    if (!this.#isRequestSent && this.#request.body !== null) return this.fail('ORIGIN_CLOSED')
    this.#served = served
    this.#exchange = undefined
    const exchange = served.upstream.begin(this)
    if (this.#isOver) return
    this.#exchange ??= exchange
    for (const piece of pieces) this.#exchange.body(piece)
    this.#exchange.bodyEnded()
  }

  #over(): void {
    this.#isOver = true
    this.resume()
  }
}

/** Returns the Request as HTTP/1.1 text, for the host that the visitor requested. */
function headOf(request: Request, visitor: RequestHead, keepsLength: boolean): Uint8Array {
  const { pathname, search } = new URL(request.url)
  // A Request cannot have the target `*`, nor an absolute one without a path. It is sent unchanged, unless a
  // middleware changed it.
  const { method, target, pathStart, targetEnd } = visitor
  const isAsterisk = target === '*' ? pathname === '/*' : pathStart === targetEnd && pathname === '/'
  const path = isAsterisk && method === 'OPTIONS' && search === '' ? '*' : `${pathname}${search}`
  let text = `${request.method} ${path} HTTP/1.1\r\nHost: ${visitor.hostWithPort}\r\n`
  for (const [name, value] of request.headers) if (!OWN_NAMES.has(name)) text += `${name}: ${value}\r\n`
  if (request.body !== null)
    text += keepsLength ? `content-length: ${visitor.contentLength}\r\n` : 'transfer-encoding: chunked\r\n'
  else if (visitor.body !== 'none' || !BODILESS.has(request.method)) text += 'content-length: 0\r\n'
  const upgrade = visitor.upgrade === '' ? null : request.headers.get('upgrade')
  if (upgrade !== null) text += `connection: upgrade\r\nupgrade: ${upgrade}\r\n`
  return Buffer.from(`${text}\r\n`, 'latin1')
}

const BODILESS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS', 'DELETE'])
