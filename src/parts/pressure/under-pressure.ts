// A request to a tunnel with an operator's rule: its place, its part in the breaker's count, and its time limit.

import { ERRORS, type ErrorCode } from '../../errors.ts'
import type { Clock, Deadline } from '../../server/contracts/clock.ts'
import { type Route, refusal } from '../../server/contracts/front.ts'
import type { Ending, Follower, Router, TunnelRequest } from '../../server/contracts/layer.ts'
import { isFailure } from '../../server/routing/reports.ts'
import { networkOf } from '../../wire/ip-address.ts'
import type { Pressure } from './pressure.ts'
import type { Holder } from './slots.ts'

/** The seconds until a visitor may try again after a full queue. */
const QUEUE_RETRY_SECONDS = 1

export class UnderPressure implements Follower, Holder {
  readonly #pressure: Pressure
  readonly #request: TunnelRequest
  readonly #deadlines: Clock
  readonly visitor: string
  /** Whether the request has its place. */
  #isInside = false
  /** Whether the breaker waits for its outcome. */
  #isAwaited = false
  /** Whether the breaker is open, and closes if this request succeeds. */
  #isTry = false
  #answerDeadline: AnswerDeadline | undefined

  constructor(pressure: Pressure, request: TunnelRequest, deadlines: Clock) {
    this.#pressure = pressure
    this.#request = request
    this.#deadlines = deadlines
    this.visitor = networkOf(request.address)
  }

  route(next: Router): Route {
    const { slots, maxContentLength, maxHeadBytes } = this.#pressure
    const { head } = this.#request
    if (head.contentLength > maxContentLength) return refusal('BODY_TOO_LARGE')
    if (head.end - head.start > maxHeadBytes) return refusal('HEAD_TOO_LARGE')
    this.#request.follow(this)
    // An announced length was already checked.
    if (head.body === 'chunked' && Number.isFinite(maxContentLength))
      this.#request.checkBody((_, bytes) => (bytes > maxContentLength ? 'BODY_TOO_LARGE' : undefined))
    if (slots === undefined || slots.take(this)) return this.#enter(next)
    return {
      kind: 'holding',
      hold: held =>
        slots.wait(this, code =>
          held(code === undefined ? this.#enter(next) : this.#busy(code, QUEUE_RETRY_SECONDS)),
        ),
    }
  }

  /** Called when another visitor with fewer requests in progress has waited for too long. */
  giveWay(): void {
    this.#request.arrival.breakOff('TUNNEL_BUSY')
  }

  /** Takes a place for the request, if places are counted. */
  #enter(next: Router): Route {
    const { slots, breaker } = this.#pressure
    const waitMs = breaker?.admit() ?? 0
    if (waitMs > 0) {
      slots?.release(this)
      return this.#busy('CIRCUIT_OPEN', Math.ceil(waitMs / 1_000))
    }
    this.#isInside = this.#isAwaited = true
    this.#isTry = breaker?.isClosed === false
    return next(this.#request)
  }

  /** Refuses the request. `retrySeconds`: when to try again. */
  #busy(code: ErrorCode, retrySeconds: number): Route {
    return this.#request.answer({ code, headers: [['retry-after', String(retrySeconds)]] })
  }

  // ── Follower ───────────────────────────────────────────────────────────────────────────────────────────────

  /** Starts the app's time limit. */
  sent(): void {
    const { responseTimeoutMs } = this.#pressure
    if (responseTimeoutMs > 0)
      this.#answerDeadline ??= new AnswerDeadline(this.#deadlines, responseTimeoutMs, () =>
        this.#request.arrival.breakOff('ORIGIN_TIMEOUT'),
      )
  }

  /** Reports the result of a try at its head, because responses may last for hours. */
  answered(status: number, code: ErrorCode | undefined): void {
    this.#answerDeadline?.stop()
    if (this.#isTry) this.#tell(verdict(status, code))
  }

  switched(): void {
    this.#leave(false)
  }

  left(): void {
    this.#answerDeadline?.stop()
    this.#leave(undefined)
  }

  ended({ status, code }: Ending): void {
    this.#answerDeadline?.stop()
    this.#leave(verdict(status, code))
  }

  /** Releases the place. `hasFailed` is as in `Breaker.ended`. */
  #leave(hasFailed: boolean | undefined): void {
    if (!this.#isInside) return
    this.#isInside = false
    // First, because the next request asks the breaker.
    this.#tell(hasFailed)
    this.#pressure.slots?.release(this)
  }

  #tell(hasFailed: boolean | undefined): void {
    if (!this.#isAwaited) return
    this.#isAwaited = false
    this.#pressure.breaker?.ended(hasFailed, this.#isTry)
  }
}

/** Whether the app has failed. `undefined` if nothing is known: the visitor left before a response, or broke a rule. */
function verdict(status: number, code: ErrorCode | undefined): boolean | undefined {
  const isVisitors = code !== undefined && ERRORS[code].fault === 'visitor'
  return status === 0 || isVisitors ? undefined : isFailure(status, code)
}

export class AnswerDeadline implements Deadline {
  dueTick = 0
  readonly #deadlines: Clock
  readonly #over: () => void

  /** Calls `over` after `ms`, unless it is stopped first. */
  constructor(deadlines: Clock, ms: number, over: () => void) {
    this.#deadlines = deadlines
    this.#over = over
    deadlines.watch(this)
    deadlines.arm(this, ms)
  }

  expired(): void {
    this.stop()
    this.#over()
  }

  stop(): void {
    this.#deadlines.forget(this)
  }
}
