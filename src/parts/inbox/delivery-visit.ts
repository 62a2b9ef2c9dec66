// One attempt to deliver a webhook: the request as its sender sent it, without a sender that waits.

import { ERRORS, type ErrorCode, isErrorCode } from '../../errors.ts'
import { latin1 } from '../../http/characters.ts'
import { APP_ANSWERED_HEADER } from '../../http/error-answer.ts'
import type { Hop } from '../../http/forward.ts'
import { RequestHead, readWhole } from '../../http/head.ts'
import type { KeptWebhook } from '../../inbox.ts'
import type { AcceptedRequest, Arrival, RequestRouter, Route } from '../../server/contracts/front.ts'
import type { PeerNote } from '../../server/contracts/peer-note.ts'
import type { Exchange, Rewrite, Visit } from '../../server/contracts/upstream.ts'
import { DELIVERY_HEADER, RECEIVED_HEADER } from './marks.ts'

export interface Delivered {
  /** The status of the app's response; 0 for none. */
  readonly status: number
  /** Whether no server has the client now, or its owner changed. */
  readonly isAway?: boolean
}

/** The maximum size of the head that is read of another server's response. */
const MAX_SEEN_BYTES = 8_192
/** A pattern for another server's note that the response is not the app's. */
const REFUSED = /^x-localtunnels-error:[ \t]*([A-Z0-9_]+)[ \t]*$/im
/** A pattern for another server's note that the response is the app's, whatever headers the app sends. */
const APP_ANSWERED = new RegExp(`^${APP_ANSWERED_HEADER}:`, 'im')
/** The codes for a client that is not at the called server. */
const AWAY: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'CLUSTER_MOVED',
  'CLUSTER_UNREACHABLE',
  'CLIENT_RECONNECTING',
  'HOST_UNKNOWN',
  'SERVER_STARTING',
  'TUNNEL_NOT_FOUND',
])

export class DeliveryVisit implements Visit, Arrival {
  readonly head: RequestHead = new RequestHead()
  readonly answerLines = undefined
  readonly hstsLine = undefined
  readonly keepsAlive = true
  readonly isCertified = false
  readonly from: PeerNote
  readonly remoteAddress: string
  readonly #webhook: KeptWebhook
  readonly #isSecure: boolean
  readonly #done = Promise.withResolvers<Delivered>()
  #request: AcceptedRequest | undefined
  #exchange: Exchange | undefined
  /** Whether another server has the client. */
  #isElsewhere = false
  #stopHolding: (() => void) | undefined
  #status = 0
  #responseBytes = 0
  /** The beginning of the response. */
  #seen = ''

  constructor(webhook: KeptWebhook, isSecure: boolean) {
    this.#webhook = webhook
    this.#isSecure = isSecure
    this.remoteAddress = webhook.address
    this.from = { keptFor: webhook.owner }
    const { head, body, attempts, receivedMs } = webhook
    const bytes = Buffer.from(
      `${head}Content-Length: ${body.length}\r\n${DELIVERY_HEADER}: ${attempts + 1}\r\n${RECEIVED_HEADER}: ${new Date(receivedMs).toISOString()}\r\n\r\n`,
      'latin1',
    )
    if (!readWhole(this.head, bytes)) this.#status = ERRORS.BAD_REQUEST.status
  }

  /** Delivers the webhook. Never rejects. */
  deliver(router: RequestRouter): Promise<Delivered> {
    if (this.#status !== 0) return Promise.resolve({ status: this.#status })
    const request = router.accept(this)
    this.#request = request
    this.#follow(request.route)
    return this.#done.promise
  }

  /** Called when the server stops. */
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
        this.#isElsewhere = route.isElsewhere === true
        const exchange = route.upstream.begin(this)
        if (this.#request === undefined) return
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
      case 'again':
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
    }
  }

  write(bytes: Uint8Array, start = 0, end: number = bytes.length): boolean {
    this.#responseBytes += end - start
    if (this.#status !== 0 && this.#seen.length < MAX_SEEN_BYTES)
      this.#seen += latin1(bytes, start, Math.min(end, start + MAX_SEEN_BYTES))
    return true
  }

  answered(status: number): void {
    this.#status = status
    this.#request?.answered(status)
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
    const request = this.#request
    if (request === undefined) return
    this.#request = undefined
    this.#exchange = undefined
    const requestBytes = this.head.end + this.#webhook.body.length
    request.finished({ answerStatus: this.#status, responseBytes: this.#responseBytes, requestBytes }, code)
    // Set if the name belongs to another owner by now.
    const moved = request.isMoved ? 'CLUSTER_MOVED' : undefined
    const refusal = code ?? moved ?? (this.#isElsewhere ? this.#refusal : undefined)
    if (refusal === undefined) this.#done.resolve({ status: this.#status })
    else this.#done.resolve({ status: 0, isAway: AWAY.has(refusal) })
  }

  /** Why the server with the client did not deliver to the app. `undefined` if the response is the app's, or a guard's. */
  get #refusal(): ErrorCode | undefined {
    const [head = '', ...rest] = this.#seen.split('\r\n\r\n', 2)
    // A server's own response is short: an incomplete head must be an app's.
    if (rest.length === 0 || APP_ANSWERED.test(head)) return undefined
    const [, code = ''] = REFUSED.exec(head) ?? []
    if (!isErrorCode(code)) return undefined
    // BAD_REQUEST: an older server, which takes no webhooks from others.
    return this.#status >= 500 || AWAY.has(code) || code === 'BAD_REQUEST' ? code : undefined
  }
}
