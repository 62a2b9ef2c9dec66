// A request to a tunnel that the operator has rules for: its slot among those at once, its part in the breaker's count, and
// the time that the app has for the answer.

import { ERRORS, type ErrorCode } from '../errors.ts'
import type { RequestHead } from '../http/head.ts'
import type { AnswerDeadline } from './answer-deadline.ts'
import { type Route, refusal } from './front.ts'
import type { Pressure } from './pressure.ts'
import { isFailure } from './reports.ts'

/** What it needs of the request's booking. */
export interface PressedRequest {
  /** It has its slot: where it goes. */
  toClients(): Route
  /** It gets none. `retrySeconds`: when to ask again. */
  busy(code: ErrorCode, retrySeconds: number): Route
}

/** A queue that is full is another one in a second. */
const QUEUE_RETRY_SECONDS = 1

export class UnderPressure {
  readonly #pressure: Pressure
  /** It has its slot. */
  #isInside = false
  /** The breaker, if there is one, waits for its outcome. */
  #isAwaited = false
  /** The breaker is open, and closes when this one is answered. */
  #isTry = false
  #answerDeadline: AnswerDeadline | undefined

  constructor(pressure: Pressure) {
    this.#pressure = pressure
  }

  /** Of a body without a length, that may be so long. */
  get maxBodyBytes(): number {
    return this.#pressure.maxContentLength
  }

  route(head: RequestHead, request: PressedRequest): Route {
    const { slots, maxContentLength, maxHeadBytes } = this.#pressure
    if (head.contentLength > maxContentLength) return refusal('BODY_TOO_LARGE')
    if (head.end - head.start > maxHeadBytes) return refusal('HEAD_TOO_LARGE')
    if (slots === undefined || slots.take()) return this.#enter(request)
    return {
      kind: 'holding',
      hold: held =>
        slots.wait(code =>
          held(code === undefined ? this.#enter(request) : request.busy(code, QUEUE_RETRY_SECONDS)),
        ),
    }
  }

  /** It has a slot, if slots are counted. */
  #enter(request: PressedRequest): Route {
    const { slots, breaker } = this.#pressure
    const waitMs = breaker?.admit() ?? 0
    if (waitMs > 0) {
      slots?.release()
      return request.busy('CIRCUIT_OPEN', Math.ceil(waitMs / 1_000))
    }
    this.#isInside = this.#isAwaited = true
    this.#isTry = breaker?.isClosed === false
    return request.toClients()
  }

  /** It is on its way to a client. `deadlineOf`: begins the time that the app has. */
  sent(deadlineOf: (ms: number) => AnswerDeadline): void {
    const { answerTimeoutMs } = this.#pressure
    if (answerTimeoutMs > 0) this.#answerDeadline ??= deadlineOf(answerTimeoutMs)
  }

  /** The final head of its answer is there: what a try finds, as answers may go on for hours. */
  answered(status: number, code: ErrorCode | undefined): void {
    this.#answerDeadline?.stop()
    if (this.#isTry) this.#tell(verdict(status, code))
  }

  /** It is over. `status`: what the visitor was answered, 0: nothing. */
  over(status: number, code: ErrorCode | undefined): void {
    this.#answerDeadline?.stop()
    this.leave(verdict(status, code))
  }

  /** The slot is free for the next one; `hasFailed` as `Breaker.ended` has it. */
  leave(hasFailed: boolean | undefined): void {
    if (!this.#isInside) return
    this.#isInside = false
    // First, because who gets the place asks the breaker.
    this.#tell(hasFailed)
    this.#pressure.slots?.release()
  }

  #tell(hasFailed: boolean | undefined): void {
    if (!this.#isAwaited) return
    this.#isAwaited = false
    this.#pressure.breaker?.ended(hasFailed, this.#isTry)
  }
}

/** Whether the app has failed; `undefined`: nothing is known of it, as the visitor left before there was an answer, or broke a rule. */
function verdict(status: number, code: ErrorCode | undefined): boolean | undefined {
  const isVisitors = code !== undefined && ERRORS[code].fault === 'visitor'
  return status === 0 || isVisitors ? undefined : isFailure(status, code)
}
