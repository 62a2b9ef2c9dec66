// The connections of visitors to a server, and which of them may still bring a request.

import type { VisitorConnection } from './visitor.ts'

export class Visitors {
  readonly #open = new Set<VisitorConnection>()
  #settledCount = 0
  readonly #fewer: () => void

  /** `fewer`: one of them is gone, or brings no more requests. */
  constructor(fewer: () => void) {
    this.#fewer = fewer
  }

  add(visitor: VisitorConnection): void {
    this.#open.add(visitor)
  }

  /** It takes no more requests. */
  settled(): void {
    this.#settledCount++
    this.#fewer()
  }

  /** It is gone. */
  left(visitor: VisitorConnection): void {
    if (!this.#open.delete(visitor)) return
    if (visitor.isSettled) this.#settledCount--
    this.#fewer()
  }

  get isEmpty(): boolean {
    return this.#open.size === 0
  }

  /** None of them brings another request. */
  get areSettled(): boolean {
    return this.#open.size === this.#settledCount
  }

  forgetHops(): void {
    for (const visitor of this.#open) visitor.forgetHop()
  }

  drain(): void {
    for (const visitor of [...this.#open]) visitor.drain()
  }

  letGo(): void {
    for (const visitor of [...this.#open]) visitor.letGo()
  }
}
