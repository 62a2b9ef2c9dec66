// Which public ports of one kind are taken, as bits: finding a free one reads at most 2,049 words, however many are taken.

import { PORT_WORDS, type PortRanges } from '../settings/ports.ts'

/**
 * The time in milliseconds for which a port that the system refused is avoided: another program listens there, and seldom
 * leaves soon.
 */
const AVOID_MS = 60_000

export class FreePorts {
  readonly #taken = new Uint32Array(PORT_WORDS)
  /** The ports that the system refused. */
  readonly #avoided = new Uint32Array(PORT_WORDS)
  /** The end of each avoidance, in the order in which they end. */
  readonly #avoidedUntil = new Map<number, number>()

  take(port: number): void {
    this.#taken[port >>> 5]! |= bitOf(port)
  }

  free(port: number): void {
    this.#taken[port >>> 5]! &= ~bitOf(port)
  }

  /** The system does not open it: it is not found again for a while. */
  avoid(port: number, nowMs: number): void {
    this.#avoided[port >>> 5]! |= bitOf(port)
    this.#avoidedUntil.delete(port)
    this.#avoidedUntil.set(port, nowMs + AVOID_MS)
  }

  /**
   * The first free port of `server`, and of `token` if that has ports of its own, from `fraction` of them on; `undefined`:
   * none is free.
   */
  find(server: PortRanges, token: PortRanges | undefined, fraction: number, nowMs = 0): number | undefined {
    if (server.isEmpty || token?.isEmpty === true) return undefined
    this.#forgetAvoided(nowMs)
    const start = (token ?? server).at(fraction)
    const [all, some] = [server.bits, token?.bits]
    for (let step = 0; step <= PORT_WORDS; step++) {
      const word = ((start >>> 5) + step) % PORT_WORDS
      let free = all[word]! & (some?.[word] ?? -1) & ~this.#taken[word]! & ~this.#avoided[word]!
      // The first word is looked at twice: from the port on, and at the end up to it.
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
