// The incomplete JSON messages of all clients: each may be long, and its sender need not end it.

import { eventLoop } from '../../event-loop.ts'
import type { QuotaOwner } from '../../server/limits/quotas.ts'

interface Part {
  bytes: number
  count: number
}

interface Waiting {
  woke(): void
}

export class UnfinishedMessages {
  #bytes = 0
  readonly #parts = new Map<QuotaOwner, Part>()
  /** The messages that are not read for lack of room, in order of arrival. */
  readonly #waiting = new Set<Waiting>()
  /** The message that is read without room: otherwise each would wait for the others. */
  #first: Waiting | undefined
  #isWaking = false

  /**
   * Counts a message that had `before` bytes and has `now`. Returns `false` if all together have more than `most`,
   * its owner has more than an equal share, and this message more than an equal share of that.
   */
  changed(holder: QuotaOwner, before: number, now: number, most: number): boolean {
    const part = this.#parts.get(holder) ?? { bytes: 0, count: 0 }
    this.#bytes += now - before
    part.bytes += now - before
    if (before === 0) part.count++
    if (now === 0) part.count--
    if (part.count === 0) this.#parts.delete(holder)
    else this.#parts.set(holder, part)
    if (this.#bytes <= most) {
      this.#wakeNext()
      return true
    }
    const share = most / this.#parts.size
    return part.bytes <= share || now * part.count <= share
  }

  /** Queues a message until there may be room for it, or until it is over. */
  wait(one: Waiting): void {
    this.#waiting.add(one)
    if (this.#first === undefined) this.#wakeNext()
  }

  isFirst(one: Waiting): boolean {
    return this.#first === one
  }

  over(one: Waiting): void {
    this.#waiting.delete(one)
    if (this.#first !== one) return
    this.#first = undefined
    this.#wakeNext()
  }

  /** Wakes one message at a time, because its bytes decide about the next one. */
  #wakeNext(): void {
    if (this.#isWaking || this.#waiting.size === 0) return
    this.#isWaking = true
    eventLoop.soon(() => {
      this.#isWaking = false
      const [next] = this.#waiting
      if (next === undefined) return
      this.#waiting.delete(next)
      this.#first ??= next
      next.woke()
    })
  }

  moved(from: QuotaOwner, to: QuotaOwner, bytes: number): void {
    if (from === to || bytes === 0) return
    this.changed(from, bytes, 0, 0)
    this.changed(to, 0, bytes, 0)
  }
}
