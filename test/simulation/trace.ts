// What happened, as a running hash of all of it, and the last of it as text.

const KEPT = 2_000

export class Trace {
  #hash = 0n
  #count = 0
  readonly #last: string[] = []

  /** `isMinor`: in the hash alone. */
  note(atMs: number, who: string, what: string, isMinor = false): void {
    const line = `${atMs.toFixed(3)} ${who} ${what}`
    this.#hash = Bun.hash.wyhash(line, this.#hash)
    this.#count++
    if (isMinor) return
    this.#last.push(line)
    if (this.#last.length > KEPT) this.#last.shift()
  }

  get hash(): string {
    return this.#hash.toString(16).padStart(16, '0')
  }

  get count(): number {
    return this.#count
  }

  /** The last of what was not minor. */
  get lines(): readonly string[] {
    return this.#last
  }
}
