// JSON messages that have begun to arrive, of all clients together: each may be long, and its sender need not end it.

import type { Holder } from './holdings.ts'

/** Those of one holder. */
interface Part {
  bytes: number
  count: number
}

export class UnfinishedMessages {
  #bytes = 0
  readonly #parts = new Map<Holder, Part>()

  /**
   * One had `before` bytes and has `now`. `false`: all together have more than `most`, its holder has more than an equal
   * share, and of that this message has more than an equal share.
   */
  changed(holder: Holder, before: number, now: number, most: number): boolean {
    const part = this.#parts.get(holder) ?? { bytes: 0, count: 0 }
    this.#bytes += now - before
    part.bytes += now - before
    if (before === 0) part.count++
    if (now === 0) part.count--
    if (part.count === 0) this.#parts.delete(holder)
    else this.#parts.set(holder, part)
    if (this.#bytes <= most) return true
    const share = most / this.#parts.size
    return part.bytes <= share || now * part.count <= share
  }

  /** One of so many bytes has another holder now. */
  moved(from: Holder, to: Holder, bytes: number): void {
    if (from === to || bytes === 0) return
    this.changed(from, bytes, 0, 0)
    this.changed(to, 0, bytes, 0)
  }
}
