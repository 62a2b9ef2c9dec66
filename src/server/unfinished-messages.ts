// JSON messages that have begun to arrive, of all clients together: each may be long, and its sender need not end it.

export class UnfinishedMessages {
  #bytes = 0
  #count = 0

  /** One had `before` bytes and has `now`. `false`: all have more than `most`, and this one more than an equal share. */
  changed(before: number, now: number, most: number): boolean {
    this.#bytes += now - before
    if (before === 0) this.#count++
    if (now === 0) this.#count--
    return this.#bytes <= most || now * this.#count <= most
  }
}
