// The visit for the upstream of the app: with another head, and with a response whose head is translated before it is sent.

import type { ErrorCode } from '../../errors.ts'
import type { Hop } from '../../http/forward.ts'
import type { RequestHead } from '../../http/head.ts'
import type { Rewriting } from '../../paths/rewriting.ts'
import type { Ease, Rewrite, Visit } from '../../server/contracts/upstream.ts'
import type { Socket, Splice, SpliceDone } from '../../socket.ts'
import { rewrittenResponse } from './heads.ts'

export class RewrittenVisit implements Visit {
  readonly head: RequestHead
  /** None, because the server's own lines, such as the cookie of a pool, are added after the translation. */
  readonly answerLines = undefined
  readonly #outer: Visit
  readonly #rewriting: Rewriting
  /** Whether the next bytes written begin with the final head. */
  #isHeadNext = false

  constructor(outer: Visit, head: RequestHead, rewriting: Rewriting) {
    this.#outer = outer
    this.head = head
    this.#rewriting = rewriting
  }

  answered(status: number): void {
    this.#isHeadNext = true
    this.#outer.answered(status)
  }

  write(bytes: Uint8Array, start = 0, end: number = bytes.length): boolean {
    if (!this.#isHeadNext) return this.#outer.write(bytes, start, end)
    this.#isHeadNext = false
    const { answerLines } = this.#outer
    const own = rewrittenResponse(bytes, start, end, this.#rewriting, this.#origin, answerLines)
    return own === undefined ? this.#outer.write(bytes, start, end) : this.#outer.write(own)
  }

  /** The scheme and host of the visitor, even behind a proxy that ends TLS. */
  get #origin(): string {
    const { proto, trusted } = this.#outer.hop(undefined)
    const told = trusted ? this.head.header('x-forwarded-proto')?.toLowerCase() : undefined
    return `${told === 'http' || told === 'https' ? told : proto}://${this.head.hostWithPort}`
  }

  // ── Everything else is the visitor's ───────────────────────────────────────────────────────────────────────

  get hstsLine(): Uint8Array | undefined {
    return this.#outer.hstsLine
  }

  get altSvcLine(): Uint8Array | undefined {
    return this.#outer.altSvcLine
  }

  get isCertified(): boolean {
    return this.#outer.isCertified === true
  }

  get isProbe(): boolean {
    return this.#outer.isProbe === true
  }

  get from(): Visit['from'] {
    return this.#outer.from
  }

  get logins(): Visit['logins'] {
    return this.#outer.logins
  }

  get originTimeoutMs(): number | undefined {
    return this.#outer.originTimeoutMs
  }

  get keepsAlive(): boolean {
    return this.#outer.keepsAlive
  }

  hop(rewrite: Rewrite | undefined): Hop {
    return this.#outer.hop(rewrite)
  }

  writeFrom(from: Socket, limitBytes: number, done: SpliceDone): Splice | undefined {
    return this.#outer.writeFrom?.(from, limitBytes, done)
  }

  switched(): void {
    this.#outer.switched()
  }

  endAnswer(): void {
    this.#outer.endAnswer()
  }

  done(keepAlive: boolean, ease?: Ease): void {
    this.#outer.done(keepAlive, ease)
  }

  fail(code: ErrorCode, again?: readonly Uint8Array[], reason?: string): void {
    this.#outer.fail(code, again, reason)
  }

  retried(): void {
    this.#outer.retried?.()
  }

  pause(): void {
    this.#outer.pause()
  }

  resume(): void {
    this.#outer.resume()
  }
}
