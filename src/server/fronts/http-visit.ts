// One request of a visitor with its response: routes it, lets it wait, starts it on an upstream, and tries another
// upstream if that failed without harm.

import { EASY_REQUEST_BYTES } from '../../accelerator.ts'
import { joined } from '../../bytes.ts'
import { ERRORS, type ErrorCode } from '../../errors.ts'
import { errorAnswer, wantsHtml } from '../../http/error-answer.ts'
import type { Hop } from '../../http/forward.ts'
import type { RequestHead } from '../../http/head.ts'
import { errorPage } from '../../http/pages.ts'
import { identify, requestIdLine } from '../../http/tracing.ts'
import type { AskedCertificate, Socket, Splice, SpliceDone } from '../../socket.ts'
import type { ChannelVisit, VisitChannel } from '../contracts/channel.ts'
import type { Arrival, Holding, Route, Served } from '../contracts/front.ts'
import type { Valve } from '../contracts/layer.ts'
import type { PeerNote } from '../contracts/peer-note.ts'
import type { Ease, Exchange, Rewrite, Upstream, Visit } from '../contracts/upstream.ts'
import type { ConnectionLogins } from '../limits/connection-logins.ts'
import type { RoutedRequest, VisitorRouter } from '../routing/routed-request.ts'

/** A way for the visitor's requests that is faster than its upstream. */
export interface Shortcut {
  /** Returns the request that a lane started. `undefined` if none did. */
  resumed(arrival: Arrival): RoutedRequest | undefined
  /**
   * Begins the exchange on the stream that the visitor has reserved, if it leads to this upstream; otherwise as the
   * upstream does.
   */
  begin(upstream: Upstream, visit: Visit): Exchange
}

/** A connection that may have a shortcut. */
export interface ShortcutChannel extends VisitChannel {
  readonly shortcut?: Shortcut | undefined
}

/** One visit. Connections with one request after the other use the same object again. */
export class HttpVisit implements Visit, Arrival, ChannelVisit {
  readonly head: RequestHead
  responseBytes = 0
  /** The status of the response. 0 before there is one. */
  answerStatus = 0
  isRequestComplete = false
  /** More about the failure than its code says. */
  reason: string | undefined
  readonly #channel: ShortcutChannel
  readonly #router: VisitorRouter
  #request: RoutedRequest | undefined
  #exchange: Exchange | undefined
  #served: Served | undefined
  /** Ends the wait of a request. */
  #stopHolding: (() => void) | undefined
  /** Whether the response allows another request on the connection. */
  #keepsAlive = false
  #valve: Valve | undefined

  constructor(head: RequestHead, channel: ShortcutChannel, router: VisitorRouter) {
    this.head = head
    this.#channel = channel
    this.#router = router
  }

  // ── From the front ─────────────────────────────────────────────────────────────────────────────────────────

  begin(): void {
    this.isRequestComplete = false
    this.responseBytes = 0
    this.answerStatus = 0
    this.reason = undefined
    const { tracing } = this.#channel.visitor
    this.head.requestId = ''
    if (tracing !== undefined) identify(this.head, tracing, '0')
    const request = this.#channel.shortcut?.resumed(this) ?? this.#router.accept(this)
    this.#request = request
    this.#follow(request.route)
  }

  /** Whether the upstream takes the request body now. It does not if the request waits or is complete. */
  get isBodyWanted(): boolean {
    return this.#stopHolding === undefined && !this.isRequestComplete
  }

  /** Takes a piece of the body, framing included; after a switch of protocols, any bytes. */
  body(bytes: Uint8Array): void {
    if (this.answerStatus !== 101) {
      const code = this.#request?.faultOf(bytes, this.requestBytes)
      if (code !== undefined) return this.breakOff(code)
    }
    this.#exchange?.body(bytes)
    this.#valve?.took(bytes.length)
  }

  bodyFrom(from: Socket, limitBytes: number, done: SpliceDone): void {
    if (this.#valve !== undefined) return
    const exchange = this.#exchange
    exchange?.bodyFrom?.(from, limitBytes, movedBytes => {
      if (this.#exchange === exchange) done(movedBytes)
    })
  }

  bodyEnded(): void {
    this.isRequestComplete = true
    this.#exchange?.bodyEnded()
  }

  /** Whether the request can still be served after the visitor sent FIN. */
  get mayComplete(): boolean {
    return this.isRequestComplete || this.#stopHolding !== undefined
  }

  drained(): void {
    if (this.#valve === undefined) this.#exchange?.drained()
    else this.#valve.drained()
  }

  /**
   * Called when the request is invalid after its head: the exchange ends, and the visitor gets the page of `code` if
   * no response has begun.
   */
  breakOff(code: ErrorCode): void {
    const exchange = this.#exchange
    this.#exchange = undefined
    exchange?.abandoned()
    this.fail(code)
  }

  /** Called when the channel cannot pass the response on and no byte of it was sent: the visitor gets the page of `code`. */
  replaceAnswer(code: ErrorCode): void {
    const exchange = this.#exchange
    this.#exchange = undefined
    exchange?.abandoned()
    this.responseBytes = 0
    this.#refuse(code)
  }

  cutOff(code: ErrorCode): void {
    this.#finish(code)
  }

  abandon(): void {
    this.#stopHolding?.()
    this.#stopHolding = undefined
    const exchange = this.#exchange
    this.#exchange = undefined
    exchange?.abandoned()
    this.#finish('CANCELLED')
  }

  // ── Arrival ────────────────────────────────────────────────────────────────────────────────────────────────

  get remoteAddress(): string {
    return this.#channel.visitor.address
  }

  get from(): PeerNote | undefined {
    return this.#channel.visitor.from
  }

  get isCertified(): boolean {
    return this.from?.isCertified ?? this.#channel.isCertified === true
  }

  get asked(): AskedCertificate | undefined {
    return this.from?.moved === undefined ? this.#channel.asked : undefined
  }

  isRefused(): boolean {
    return this.#channel.isRefused()
  }

  terminate(): void {
    this.#channel.terminate()
  }

  // ── To an upstream ─────────────────────────────────────────────────────────────────────────────────────────

  #follow(route: Route): void {
    switch (route.kind) {
      case 'upstream':
        return this.#start(route)
      case 'refusal':
        return this.fail(route.code)
      case 'holding':
        return this.#hold(route)
      case 'again':
        return this.fail('INTERNAL')
      case 'takeover':
        if (this.#channel.takeOver === undefined) return this.fail('BAD_REQUEST')
        this.#finish(undefined)
        this.#channel.takeOver(route)
    }
  }

  /**
   * Follows a route without throwing, because the caller also serves other visitors and could not report an error to this one.
   */
  #followSafely(route: Route): void {
    try {
      this.#follow(route)
    } catch (cause) {
      this.#router.failed(cause)
      this.breakOff('INTERNAL')
    }
  }

  /** Makes the request wait. Its body is not read until then. */
  #hold(holding: Holding<Route>): void {
    this.pause()
    const outcome = holding.hold(route => {
      this.#stopHolding = undefined
      this.#channel.input.proceed(() => this.#followSafely(route))
    })
    if (typeof outcome === 'string') this.fail(outcome)
    else this.#stopHolding = outcome
  }

  #start(served: Served): void {
    const request = this.#request
    const { input, output } = this.#channel
    this.#valve = request?.openValve({ input, output, drained: () => this.#exchange?.drained() })
    this.#beginAt(served)
    if (this.#request === request && this.#channel.request.isComplete) this.bodyEnded()
  }

  #beginAt(served: Served): void {
    const request = this.#request
    const { upstream } = served
    this.#served = served
    this.#exchange = undefined
    const exchange = this.#channel.shortcut?.begin(upstream, this) ?? upstream.begin(this)
    // If the exchange failed during the call, the request is over, or another upstream has it.
    if (this.#request === request) this.#exchange ??= exchange
  }

  /** Sends the request to another upstream from its beginning, as if it had just arrived. */
  #sendAgain(served: Served, pieces: readonly Uint8Array[]): void {
    // The pause was for the old upstream. The new one may ask for a pause of its own at once.
    this.resume()
    this.#beginAt(served)
    const exchange = this.#exchange
    for (const piece of pieces) exchange?.body(piece)
    if (this.isRequestComplete) exchange?.bodyEnded()
  }

  /** Makes the request wait again, because the server that had the name is gone or has lost it. */
  #holdAgain(holding: Holding<Route>, pieces: readonly Uint8Array[]): void {
    this.#exchange = undefined
    this.pause()
    const outcome = holding.hold(route => {
      this.#stopHolding = undefined
      if (route.kind === 'holding') return this.#holdAgain(route, pieces)
      this.#channel.input.proceed(() => {
        if (route.kind === 'upstream') this.#sendAgain(route, pieces)
        else this.fail(route.kind === 'refusal' ? route.code : 'INTERNAL')
      })
    })
    if (typeof outcome === 'string') this.fail(outcome)
    else this.#stopHolding = outcome
  }

  // ── Visit: what the upstream does ──────────────────────────────────────────────────────────────────────────

  hop(rewrite: Rewrite | undefined): Hop {
    return this.#channel.visitor.hop(rewrite)
  }

  get answerLines(): Uint8Array | undefined {
    const { from, head } = this
    // The server that the visitor connected to adds its own lines.
    if (from?.isCopy === true) return undefined
    const { requestId } = head
    return joined(
      joined(this.#request?.answerLines, requestId === '' ? undefined : requestIdLine(requestId)),
      from?.answerLine,
    )
  }

  get hstsLine(): Uint8Array | undefined {
    return this.#channel.visitor.hstsLine
  }

  get altSvcLine(): Uint8Array | undefined {
    return this.#channel.visitor.altSvcLine
  }

  get logins(): ConnectionLogins | undefined {
    return this.#channel.logins
  }

  get keepsAlive(): boolean {
    return this.#channel.keepsAlive
  }

  get originTimeoutMs(): number | undefined {
    return this.#request?.originTimeoutMs
  }

  get requestBytes(): number {
    return this.#channel.request.requestBytes
  }

  write(bytes: Uint8Array, start = 0, end: number = bytes.length): boolean {
    this.responseBytes += end - start
    const to = this.#valve ?? this.#channel.output
    if (to.write(bytes, start, end)) return true
    this.#valve?.charge(this.#request?.account)
    this.#channel.charge(this.#request?.account)
    return false
  }

  writeFrom(from: Socket, limitBytes: number, done: SpliceDone): Splice | undefined {
    if (this.answerStatus === 101 || this.#valve !== undefined) return undefined
    return this.#channel.output.writeFrom?.(from, limitBytes, movedBytes => {
      this.responseBytes += movedBytes
      done(movedBytes)
    })
  }

  answered(status: number): void {
    this.answerStatus = status
    this.#keepsAlive = this.keepsAlive
    this.#request?.answered(status)
    if (this.#request?.isMisdirected) this.#channel.drain?.()
  }

  retried(): void {
    this.#request?.retried()
  }

  switched(): void {
    this.#request?.switched()
    this.#channel.switched()
  }

  endAnswer(): void {
    if (this.#valve === undefined) this.#channel.output.end()
    else this.#valve.behind(() => this.#channel.output.end())
  }

  done(keepAlive: boolean, ease: Ease = 'none'): void {
    this.#exchange = undefined
    if (this.#valve === undefined) this.#done(keepAlive, ease)
    else this.#valve.behind(() => this.#done(keepAlive, 'none'))
  }

  #done(keepAlive: boolean, ease: Ease): void {
    const { method, body } = this.head
    const isEasyRequest = method !== 'HEAD' && body !== 'chunked' && this.requestBytes <= EASY_REQUEST_BYTES
    // The response decides, because the visitor may have sent its next request already.
    const goesOn = keepAlive && this.#keepsAlive && this.isRequestComplete && this.answerStatus !== 101
    this.#finish(undefined)
    this.#channel.over(goesOn, isEasyRequest ? ease : 'none')
  }

  fail(code: ErrorCode, again?: readonly Uint8Array[], reason?: string): void {
    if (this.#request === undefined) return
    if (again !== undefined && this.responseBytes === 0) {
      const instead = this.#served?.instead?.(code)
      if (instead?.kind === 'upstream') return this.#sendAgain(instead, again)
      if (instead?.kind === 'holding') return this.#holdAgain(instead, again)
    }
    this.#exchange = undefined
    this.reason = reason
    if (this.answerStatus === 0) return this.#refuse(code)
    this.#finish(code)
    // After a part of the response, the browser would read an error page as its body.
    this.#channel.terminate()
  }

  pause(): void {
    this.#input.pause()
  }

  resume(): void {
    this.#input.resume()
  }

  get #input(): Pick<Valve, 'pause' | 'resume'> {
    return this.#valve ?? this.#channel.input
  }

  #refuse(code: ErrorCode): void {
    const { head } = this
    // After a request to switch protocols, the connection carries no further request.
    const keepAlive = head.body === 'none' && head.upgrade === '' && this.keepsAlive
    const own = this.#request?.errorPageOf(code)
    this.answerStatus = own?.status ?? ERRORS[code].status
    this.#request?.refused(code)
    this.#request?.answered(this.answerStatus)
    const { host, method } = head
    const { branding } = this.#router
    this.write(
      errorAnswer(code, {
        page: wantsHtml(head) ? errorPage : undefined,
        head: method === 'HEAD',
        keepAlive,
        host,
        branding,
        ...own,
      }),
    )
    this.#finish(code)
    this.#channel.over(keepAlive, 'none')
  }

  #finish(code: ErrorCode | undefined): void {
    const request = this.#request
    this.#request = undefined
    this.#served = undefined
    this.#valve?.close()
    this.#valve = undefined
    request?.finished(this, code)
  }
}
