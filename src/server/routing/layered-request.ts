// The effects of a tunnel's layers on one request: followers, checks of its body, response headers and error pages, a valve.

import { joined } from '../../bytes.ts'
import type { ErrorCode } from '../../errors.ts'
import type { ErrorAnswerOptions } from '../../http/error-answer.ts'
import type { RequestHead } from '../../http/head.ts'
import type { Middleware } from '../../plugin.ts'
import type { BodyCheck, Follower, OpenValve, OwnErrorPage, Valve, ValveEnds } from '../contracts/layer.ts'

const NO_MIDDLEWARES: readonly Middleware[] = []
const NO_FOLLOWERS: readonly Follower[] = []

export abstract class LayeredRequest {
  isAdmitted = false
  originTimeoutMs: number | undefined
  middlewares: readonly Middleware[] = NO_MIDDLEWARES
  /** A Set-Cookie line for the response, with its CRLF. */
  protected cookie: Uint8Array | undefined
  #layered: Layered | undefined

  abstract get head(): RequestHead

  follow(follower: Follower): void {
    this.#layers.followers.push(follower)
  }

  checkBody(check: BodyCheck): void {
    this.#layers.checks.push(check)
  }

  addAnswerLines(lines: () => Uint8Array | undefined): void {
    this.#layers.lines.push(lines)
  }

  useValve(open: OpenValve): void {
    this.#layers.openValve = open
  }

  useErrorPage(page: OwnErrorPage): void {
    this.#layers.errorPage = page
  }

  /** The header lines for the response; see `Visit.answerLines`. */
  get answerLines(): Uint8Array | undefined {
    if (this.#layered === undefined) return this.cookie
    let all: Uint8Array | undefined
    for (const lines of this.#layered.lines) all = joined(all, lines())
    return joined(all, this.cookie)
  }

  /**
   * Checks a piece of the body, framing included. Returns a code if it is refused. `requestBytes`: the size of the
   * request so far.
   */
  faultOf(piece: Uint8Array, requestBytes: number): ErrorCode | undefined {
    if (this.#layered === undefined) return undefined
    const { start, end } = this.head
    let code: ErrorCode | undefined
    for (const check of this.#layered.checks) code ??= check(piece, requestBytes - (end - start))
    return code
  }

  errorPageOf(code: ErrorCode): Partial<ErrorAnswerOptions> | undefined {
    return this.#layered?.errorPage?.(code)
  }

  /** Makes the valve for the bytes of the visit. `undefined` if no layer delays them. */
  openValve(ends: ValveEnds): Valve | undefined {
    return this.#layered?.openValve?.(ends)
  }

  get #layers(): Layered {
    this.#layered ??= new Layered()
    return this.#layered
  }

  protected get followers(): readonly Follower[] {
    return this.#layered?.followers ?? NO_FOLLOWERS
  }

  protected clearLayers(): void {
    this.#layered = undefined
    this.cookie = undefined
    this.middlewares = NO_MIDDLEWARES
    this.isAdmitted = false
    this.originTimeoutMs = undefined
  }
}

class Layered {
  readonly followers: Follower[] = []
  readonly checks: BodyCheck[] = []
  readonly lines: (() => Uint8Array | undefined)[] = []
  openValve: OpenValve | undefined
  errorPage: OwnErrorPage | undefined
}
