// Middlewares around an upstream: the visitor's exchange as a web Request, and the app's response as a web Response.
//
//   visitor ── head, body ──▶ Request ──▶ middlewares ──▶ Request ── head, body ──▶ upstream ──▶ app
//   visitor ◀── head, body ── Response ◀── middlewares ◀── Response ◀── head, body ── upstream ◀── app
//
// The inner exchange, on the right, is `inner-visit.ts`. Loaded when the server has a middleware.

import { copyOf } from '../../bytes.ts'
import { deferred } from '../../deferred.ts'
import { type ErrorCode, messageOf } from '../../errors.ts'
import { sendAnswer, switchHeadOf } from '../../handler/answer.ts'
import { RequestBody, requestOf } from '../../handler/request.ts'
import { type BodyFramer, bodyOf } from '../../http/body.ts'
import type { RequestHead } from '../../http/head.ts'
import type { Middleware } from '../../plugin.ts'
import type { Clock, Deadline } from '../../server/contracts/clock.ts'
import type { Served } from '../../server/contracts/front.ts'
import type { Faults } from '../../server/contracts/part.ts'
import type { Exchange, Upstream, Visit } from '../../server/contracts/upstream.ts'
import { DEAD_EXCHANGE } from '../../server/contracts/upstream.ts'
import type { Bounds } from '../../server/settings/bounds.ts'
import { InnerVisit } from './inner-visit.ts'

/** The operations of the server that middlewares need. */
export interface MiddlewareContext {
  readonly limits: Bounds
  readonly deadlines: Clock
  readonly faults: Faults
}

export interface Wrapping {
  readonly tunnel: string
  readonly address: string
  /** Records the code of a refusal that is the response. */
  refused(code: ErrorCode, reason?: string): void
}

/** Routes a request with middlewares around it. */
export function wrap(
  context: MiddlewareContext,
  middlewares: readonly Middleware[],
  served: Served,
  wrapping: Wrapping,
): Served {
  return { ...served, upstream: new MiddlewareUpstream(context, middlewares, served, wrapping) }
}

class MiddlewareUpstream implements Upstream {
  readonly wire: Upstream['wire']
  readonly inFlight = 0
  readonly #context: MiddlewareContext
  readonly #middlewares: readonly Middleware[]
  readonly #served: Served
  readonly #wrapping: Wrapping

  constructor(
    context: MiddlewareContext,
    middlewares: readonly Middleware[],
    served: Served,
    wrapping: Wrapping,
  ) {
    this.wire = served.upstream.wire
    this.#context = context
    this.#middlewares = middlewares
    this.#served = served
    this.#wrapping = wrapping
  }

  begin(visit: Visit): Exchange {
    const exchange = new WrappedExchange(
      this.#context,
      this.#middlewares,
      this.#served,
      this.#wrapping,
      visit,
    )
    return exchange.start() ? exchange : DEAD_EXCHANGE
  }
}

const CONTINUE = Buffer.from('HTTP/1.1 100 Continue\r\n\r\n')

class WrappedExchange implements Exchange, Deadline {
  dueTick = 0
  readonly #context: MiddlewareContext
  readonly #middlewares: readonly Middleware[]
  readonly #served: Served
  readonly #wrapping: Wrapping
  readonly #visit: Visit
  readonly #abort = new AbortController()
  readonly #framer: BodyFramer
  #body: RequestBody | undefined
  #inner: InnerVisit | undefined
  /** The exchange that gets the visitor's bytes after a 101. */
  #switched: Exchange | undefined
  #owesContinue: boolean
  #isOver = false
  /** Whether the head of the response was sent. */
  #isAnswered = false
  #isRequestComplete = false
  /** Continues when the visitor takes more of the response. `undefined` while it does. */
  #waiting: { resolve(): void; reject(error: Error): void } | undefined
  #running: Middleware | undefined

  constructor(
    context: MiddlewareContext,
    middlewares: readonly Middleware[],
    served: Served,
    wrapping: Wrapping,
    visit: Visit,
  ) {
    this.#context = context
    this.#middlewares = middlewares
    this.#served = served
    this.#wrapping = wrapping
    this.#visit = visit
    this.#owesContinue = visit.head.expectsContinue
    this.#framer = bodyOf(visit.head, (bytes, start, end) => this.#body?.push(copyOf(bytes, start, end)))
    context.deadlines.watch(this)
  }

  start(): boolean {
    const visit = this.#visit
    const { head } = visit
    const takesBody = head.body !== 'none' && head.method !== 'GET' && head.method !== 'HEAD'
    this.#body = takesBody ? this.#makeBody() : undefined
    const { proto, trusted } = visit.hop(undefined)
    const request = requestOf(head, trusted ? 'forwarded' : proto, this.#body?.stream, this.#abort.signal)
    if (request === undefined) {
      this.#finish()
      visit.fail('METHOD_REFUSED')
      return false
    }
    if (head.upgrade !== '') request.headers.set('upgrade', offerOf(head))
    void this.#answer(request, head.method, head.minorVersion)
    return true
  }

  // ── From the visitor ───────────────────────────────────────────────────────────────────────────────────────

  body(bytes: Uint8Array): void {
    if (this.#switched !== undefined) this.#switched.body(bytes)
    else if (!this.#isOver) this.#framer.feed(bytes, 0, bytes.length)
  }

  bodyEnded(): void {
    if (this.#switched !== undefined) return this.#switched.bodyEnded()
    this.#isRequestComplete = true
    if (this.#isOver) return
    this.#body?.close()
    const { limits } = this.#context
    const { originTimeoutMs = limits.originTimeoutMs } = this.#visit
    // The app has a time limit of its own, and middlewares get as much as guards.
    if (originTimeoutMs > 0 && !this.#isAnswered)
      this.#context.deadlines.arm(this, originTimeoutMs + limits.guardTimeoutMs)
  }

  drained(): void {
    if (this.#switched !== undefined) return this.#switched.drained()
    const waiting = this.#waiting
    this.#waiting = undefined
    waiting?.resolve()
  }

  abandoned(): void {
    if (this.#switched !== undefined) return this.#switched.abandoned()
    const inner = this.#inner
    this.#finish(new Error('the visitor left'))
    inner?.abandon()
  }

  /** Called when the middlewares took too long. */
  expired(): void {
    if (this.#isAnswered) return
    this.#fail(new Error('no answer in time'))
  }

  // ── Request and answer ─────────────────────────────────────────────────────────────────────────────────────

  #makeBody(): RequestBody {
    return new RequestBody({
      wanted: () => {
        if (this.#isOver) return
        if (this.#owesContinue) {
          this.#owesContinue = false
          this.#visit.write(CONTINUE)
        }
        this.#visit.resume()
      },
      satisfied: () => {
        if (!this.#isOver) this.#visit.pause()
      },
    })
  }

  async #answer(request: Request, method: string, minorVersion: 0 | 1): Promise<void> {
    try {
      const response = await this.#call(0, request)
      if (this.#isOver) {
        await response.body?.cancel()
        return
      }
      if (!(response instanceof Response)) throw new TypeError('what it returned is no Response')
      if (response.status === 101) return this.#switch(response)
      // The middleware refused the switch of protocols.
      if (this.#inner?.upgrade) this.#inner.abandon()
      const keepAlive = this.#visit.keepsAlive && this.#isRequestComplete
      const goesOn = await sendAnswer(response, { method, minorVersion, keepAlive }, bytes =>
        this.#send(bytes, response.status),
      )
      if (this.#isOver) return
      this.#finish()
      this.#visit.done(goesOn)
    } catch (error) {
      this.#fail(error)
    }
  }

  /** Switches protocols, as the app and the middlewares agreed. Middlewares do not see later bytes. */
  #switch(response: Response): void {
    const inner = this.#inner
    if (!inner?.upgrade) throw new RangeError('its 101 is not that of the app')
    if (!inner.isRequestSent) throw new RangeError('the app switches before it has the request')
    const visit = this.#visit
    this.#isAnswered = true
    this.#finish()
    visit.answered(101)
    visit.write(withLines(switchHeadOf(response, inner.upgrade), visit))
    // The visitor's bytes may follow at once.
    this.#switched = inner.exchange
    visit.switched()
    inner.join()
  }

  async #call(index: number, request: Request): Promise<Response> {
    const middleware = this.#middlewares[index]
    if (middleware === undefined) return this.#ask(request)
    const { tunnel, address } = this.#wrapping
    let wasCalled = false
    this.#running = middleware
    const response = await middleware.handle(
      request,
      next => {
        if (wasCalled) throw new Error('next may be called once')
        wasCalled = true
        const answer = this.#call(index + 1, next).finally(() => {
          this.#running = middleware
        })
        // A middleware that does not await its response must not end the process if there is none.
        answer.catch(() => {})
        return answer
      },
      { tunnel, address },
    )
    return response
  }

  async #ask(request: Request): Promise<Response> {
    if (this.#isOver) throw new Error('the visitor left')
    this.#inner = new InnerVisit(
      this.#visit,
      this.#wrapping,
      this.#context.limits,
      request,
      this.#body?.stream,
    )
    const response = await this.#inner.begin(this.#served)
    return response
  }

  #send(bytes: Uint8Array, status: number): Promise<void> | undefined {
    if (this.#isOver) throw new Error('the visitor left')
    const visit = this.#visit
    let piece = bytes
    if (!this.#isAnswered) {
      this.#isAnswered = true
      this.#context.deadlines.disarm(this)
      visit.answered(status)
      piece = withLines(bytes, visit)
    }
    if (visit.write(piece) || this.#isOver) return undefined
    const { promise, resolve, reject } = deferred<void>()
    this.#waiting = { resolve: () => resolve(undefined), reject }
    return promise
  }

  #fail(cause: unknown): void {
    if (this.#isOver) return
    const inner = this.#inner
    const code = inner?.failure ?? 'PLUGIN_FAILED'
    this.#finish(new Error('the answer failed', { cause }))
    inner?.abandon()
    if (code === 'PLUGIN_FAILED') {
      const running = this.#running
      const detail = `The middleware "${running?.name ?? 'unknown'}" failed: ${messageOf(cause)}.`
      this.#context.faults.report(running ?? this.#served.upstream, code, detail, cause)
    }
    this.#visit.fail(code)
  }

  #finish(error = new Error('the exchange is over')): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#context.deadlines.forget(this)
    this.#body?.fail(error)
    this.#abort.abort(error)
    const waiting = this.#waiting
    this.#waiting = undefined
    waiting?.reject(error)
  }
}

/** Returns the protocols that a request offers to switch to, in its spelling. */
function offerOf(head: RequestHead): string {
  const lines = head.headerList().filter(([name]) => name.toLowerCase() === 'upgrade')
  return lines.map(([, value]) => value).join(', ')
}

/** Inserts the server's lines before the blank line of the head. The first piece of a response contains the whole head. */
function withLines(bytes: Uint8Array, { answerLines, hstsLine, altSvcLine }: Visit): Uint8Array {
  if ((answerLines ?? hstsLine ?? altSvcLine) === undefined) return bytes
  const at = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).indexOf('\r\n\r\n') + 2
  const head = Buffer.from(bytes.subarray(0, at)).toString('latin1')
  const lines = [
    answerLines,
    /\nstrict-transport-security:/i.test(head) ? undefined : hstsLine,
    /\nalt-svc:/i.test(head) ? undefined : altSvcLine,
  ]
  return Buffer.concat([bytes.subarray(0, at), ...lines.filter(one => one !== undefined), bytes.subarray(at)])
}
