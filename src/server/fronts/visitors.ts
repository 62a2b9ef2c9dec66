// All connections of visitors, in every version of HTTP, and which of them may still bring a request.

import type { Visitor } from '../contracts/protocol.ts'

export class Visitors {
  readonly #open = new Set<Visitor>()
  /** The connections that may bring another request. */
  readonly #unsettled = new Set<Visitor>()
  readonly #fewer: () => void

  /** Makes the set. `fewer` is called when a connection is gone, or can bring no more requests. */
  constructor(fewer: () => void) {
    this.#fewer = fewer
  }

  add(visitor: Visitor): void {
    this.#open.add(visitor)
    this.#unsettled.add(visitor)
  }

  /** Called when a connection takes no more requests: its last response was sent, or it changed to another protocol. */
  settled(visitor: Visitor): void {
    this.#unsettled.delete(visitor)
    this.#fewer()
  }

  left(visitor: Visitor): void {
    if (!this.#open.delete(visitor)) return
    this.#unsettled.delete(visitor)
    this.#fewer()
  }

  get isEmpty(): boolean {
    return this.#open.size === 0
  }

  /** Whether no connection can bring another request. */
  get areSettled(): boolean {
    return this.#unsettled.size === 0
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
