// One try to deliver a webhook: the request as its sender sent it, without a sender who waits.

import { ERRORS, type ErrorCode } from '../../errors.ts'
import type { Hop } from '../../http/forward.ts'
import { parseRequestHead, RequestHead } from '../../http/head.ts'
import type { KeptWebhook } from '../../inbox.ts'
import type { Booking, BookingDesk } from '../booking.ts'
import type { Arrival, Route } from '../front.ts'
import type { Exchange, Rewrite, Visit } from '../upstream.ts'
import { DELIVERY_HEADER, RECEIVED_HEADER } from './marks.ts'

export interface Delivered {
  /** What the app answered; 0: it did not. */
  readonly status: number
  /** Why it did not. */
  readonly code?: ErrorCode
}

export class DeliveryVisit implements Visit, Arrival {
  readonly head: RequestHead = new RequestHead()
  readonly answerLines = undefined
  readonly hstsLine = undefined
  readonly keepsAlive = true
  readonly isForwarded = false
  readonly isCertified = false
  readonly isDelivery = true
  readonly remoteAddress: string
  readonly #webhook: KeptWebhook
  readonly #isSecure: boolean
  readonly #done = Promise.withResolvers<Delivered>()
  #booking: Booking | undefined
  #exchange: Exchange | undefined
  #stopHolding: (() => void) | undefined
  #status = 0
  #answerBytes = 0

  constructor(webhook: KeptWebhook, isSecure: boolean) {
    this.#webhook = webhook
    this.#isSecure = isSecure
    this.remoteAddress = webhook.address
    const { head, body, attempts, receivedMs } = webhook
    const bytes = Buffer.from(
      `${head}Content-Length: ${body.length}\r\n${DELIVERY_HEADER}: ${attempts + 1}\r\n${RECEIVED_HEADER}: ${new Date(receivedMs).toISOString()}\r\n\r\n`,
      'latin1',
    )
    // It was within the limits when it came.
    const limits = { maxHeadBytes: bytes.length, maxHeaderCount: bytes.length, maxTargetBytes: bytes.length }
    if (parseRequestHead(this.head, bytes, 0, bytes.length, limits) !== bytes.length)
      this.#status = ERRORS.BAD_REQUEST.status
  }

  /** Never rejects. */
  deliver(desk: BookingDesk): Promise<Delivered> {
    if (this.#status !== 0) return Promise.resolve({ status: this.#status })
    const booking = desk.book(this)
    this.#booking = booking
    this.#follow(booking.route)
    return this.#done.promise
  }

  /** The server stops. */
  abandon(): void {
    this.#stopHolding?.()
    const exchange = this.#exchange
    this.#exchange = undefined
    exchange?.abandoned()
    this.fail('CANCELLED')
  }

  #follow(route: Route): void {
    switch (route.kind) {
      case 'upstream': {
        const exchange = route.upstream.begin(this)
        if (this.#booking === undefined) return
        this.#exchange = exchange
        const { body } = this.#webhook
        if (body.length > 0) exchange.body(body)
        exchange.bodyEnded()
        return
      }
      case 'refusal':
        return this.fail(route.code)
      case 'holding': {
        const outcome = route.hold(next => {
          this.#stopHolding = undefined
          this.#follow(next)
        })
        if (typeof outcome === 'string') this.fail(outcome)
        else this.#stopHolding = outcome
        return
      }
      case 'takeover':
        return this.fail('BAD_REQUEST')
    }
  }

  // ── Arrival ────────────────────────────────────────────────────────────────────────────────────────────────

  isRefused(): boolean {
    return false
  }

  breakOff(code: ErrorCode): void {
    const exchange = this.#exchange
    this.#exchange = undefined
    exchange?.abandoned()
    this.fail(code)
  }

  terminate(): void {
    this.breakOff('CANCELLED')
  }

  // ── Visit ──────────────────────────────────────────────────────────────────────────────────────────────────

  hop(rewrite: Rewrite | undefined): Hop {
    return {
      address: this.remoteAddress,
      proto: this.#isSecure ? 'https' : 'http',
      trusted: false,
      hostHeader: rewrite?.host ?? '',
      origin: rewrite?.origin ?? '',
    }
  }

  write(bytes: Uint8Array, _isScratch = false, start = 0, end: number = bytes.length): boolean {
    this.#answerBytes += end - start
    return true
  }

  answered(status: number): void {
    this.#status = status
    this.#booking?.answered(status)
  }

  switched(): void {}
  endAnswer(): void {}
  pause(): void {}
  resume(): void {}

  done(): void {
    this.#finish(undefined)
  }

  fail(code: ErrorCode): void {
    this.#finish(code)
  }

  #finish(code: ErrorCode | undefined): void {
    const booking = this.#booking
    if (booking === undefined) return
    this.#booking = undefined
    this.#exchange = undefined
    const requestBytes = this.head.end + this.#webhook.body.length
    booking.finished({ answerStatus: this.#status, answerBytes: this.#answerBytes, requestBytes }, code)
    this.#done.resolve(code === undefined ? { status: this.#status } : { status: 0, code })
  }
}
