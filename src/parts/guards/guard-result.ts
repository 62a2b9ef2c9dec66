// The effects of guards on a request: changes to its head, lines for the response, and whether they may cut it.

import { type BodyFramer, bodyOf } from '../../http/body.ts'
import type { RequestHead } from '../../http/head.ts'
import type { Middleware, Pass } from '../../plugin.ts'
import { keepOpen } from '../../server/routing/keep-open.ts'
import { answerLinesOf, applyPasses, hidesAdded, namesOf, restoreHead } from './guards.ts'

export class GuardResult {
  readonly answerLines: Uint8Array | undefined
  readonly middlewares: readonly Middleware[]
  /** Whether the visitor's head would hide a line that a guard has added, so that it must not be forwarded. */
  readonly isHidden: boolean
  readonly #head: RequestHead
  readonly #passes: readonly Pass[]
  /** The head as the visitor sent it. `undefined` if guards did not change it. */
  readonly #headBefore: Uint8Array | undefined
  /**
   * The framer of a body that may have trailers. No trailer may have a name that the guards removed from the head, or
   * added to it.
   */
  readonly #body: BodyFramer | undefined
  /** Tells the guards that the request is over. `undefined` before `keepOpen`. */
  #stopKeeping: (() => void) | undefined

  /** Changes the head to the one for the app. Throws for changes that no guard may make. */
  constructor(head: RequestHead, passes: readonly Pass[]) {
    this.#head = head
    this.#passes = passes
    this.#headBefore = applyPasses(head, passes)
    this.answerLines = answerLinesOf(passes)
    this.middlewares = passes.flatMap(({ middleware }) => middleware ?? [])
    this.isHidden = hidesAdded(head, passes)
    const names = namesOf(passes)
    if (head.body !== 'chunked' || names.length === 0) return
    this.#body = bodyOf(head, undefined, names)
  }

  /** Whether the body may have trailers that must be checked. */
  get hasTrailers(): boolean {
    return this.#body !== undefined
  }

  /**
   * Checks a piece of the body, framing included. Returns `false` if it has a trailer that an app may take for a line
   * of the guards.
   */
  letsBody(bytes: Uint8Array): boolean {
    return this.#body === undefined || this.#body.feed(bytes, 0, bytes.length) >= 0
  }

  /** Called when the request goes to the app: until it is over, guards may call `cut`. Throws as `keepOpen` does. */
  keepOpen(cut: () => void, failed: (cause: unknown) => void): void {
    this.#stopKeeping = keepOpen(this.#passes, cut, failed)
  }

  over(): void {
    this.#stopKeeping?.()
    this.#stopKeeping = undefined
  }

  /** Restores the head as the visitor sent it, because the request goes to another server, whose guards are asked. */
  undo(): void {
    this.over()
    if (this.#headBefore !== undefined) restoreHead(this.#head, this.#headBefore)
  }
}
