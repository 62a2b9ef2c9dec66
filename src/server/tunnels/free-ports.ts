// The used public ports of one kind, as bits. Finding a free port reads at most 2,049 words, however many are used.

import { PORT_WORDS, type PortRanges } from '../settings/ports.ts'

/**
 * The time in milliseconds for which a port that the system refused is not tried: another program uses it, and seldom ends soon.
 */
const AVOID_MS = 60_000

export class FreePorts {
  readonly #taken = new Uint32Array(PORT_WORDS)
  /** The ports that the system refused. */
  readonly #avoided = new Uint32Array(PORT_WORDS)
  /** The time when each avoided port may be tried again, the earliest first. */
  readonly #avoidedUntil = new Map<number, number>()

  take(port: number): void {
    this.#taken[port >>> 5]! |= bitOf(port)
  }

  free(port: number): void {
    this.#taken[port >>> 5]! &= ~bitOf(port)
  }

  /** Avoids a port for a while, because the system did not open it. */
  avoid(port: number, nowMs: number): void {
    this.#avoided[port >>> 5]! |= bitOf(port)
    this.#avoidedUntil.delete(port)
    this.#avoidedUntil.set(port, nowMs + AVOID_MS)
  }

  /**
   * Finds a free port among those of `server`, and of `token` if that has ports of its own, starting at `fraction` (0
   * to 1) of them. `undefined` if none is free.
   */
  find(server: PortRanges, token: PortRanges | undefined, fraction: number, nowMs = 0): number | undefined {
    if (server.isEmpty || token?.isEmpty === true) return undefined
    this.#forgetAvoided(nowMs)
    const start = (token ?? server).at(fraction)
    const [all, some] = [server.bits, token?.bits]
    for (let step = 0; step <= PORT_WORDS; step++) {
      const word = ((start >>> 5) + step) % PORT_WORDS
      let free = all[word]! & (some?.[word] ?? -1) & ~this.#taken[word]! & ~this.#avoided[word]!
      // The search visits the first word twice: for the bits from the start on, and at the end for those before it.
      if (step === 0) free &= -1 << (start & 31)
      if (free !== 0) return word * 32 + 31 - Math.clz32(free & -free)
    }
    return undefined
  }

  #forgetAvoided(nowMs: number): void {
    for (const [port, until] of this.#avoidedUntil) {
      if (until > nowMs) return
      this.#avoidedUntil.delete(port)
      this.#avoided[port >>> 5]! &= ~bitOf(port)
    }
  }
}

const bitOf = (port: number): number => 1 << (port & 31)
