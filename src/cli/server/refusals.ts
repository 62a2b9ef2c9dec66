// Refused clients in the log of a server: a line each, but not one for every try of a client that never stops.

import { Tolerance } from '../../session/tolerance.ts'
import type { Output } from '../output.ts'

/** An address that is refused again with the same code has its next line after this long. */
const QUIET_MS = 60_000
/** Lines a second for all addresses together. */
const MAX_LINES_PER_SECOND = 5
/** Addresses and codes in memory; the one whose line is longest ago is forgotten. */
const MAX_KNOWN = 1_024

/** Codes of everyday life: the client goes on to another name by itself. */
const EVERYDAY: ReadonlySet<string> = new Set(['NAME_TAKEN', 'PORT_TAKEN'])

interface Refusal {
  readonly remoteAddress: string
  readonly wire: string
  readonly code: string
}

interface Known {
  /** Refusals since its last line. */
  unsaid: number
  saidAtMs: number
}

export class Refusals {
  readonly #output: Output
  readonly #now: () => number
  /** The refusals by code and address; the one with the latest line is the last. */
  readonly #known = new Map<string, Known>()
  readonly #lines = new Tolerance(MAX_LINES_PER_SECOND)

  constructor(output: Output, now: () => number = () => performance.now()) {
    this.#output = output
    this.#now = now
  }

  refused({ remoteAddress, wire, code }: Refusal): void {
    if (EVERYDAY.has(code)) return
    const key = `${code} ${remoteAddress}`
    const now = this.#now()
    const known = this.#known.get(key) ?? { unsaid: 0, saidAtMs: Number.NEGATIVE_INFINITY }
    known.unsaid++
    if (now - known.saidAtMs >= QUIET_MS && this.#lines.allows(now)) {
      this.#output.event({ type: 'refused', code, remoteAddress, wire, count: known.unsaid })
      known.unsaid = 0
      known.saidAtMs = now
      this.#known.delete(key)
    }
    this.#known.set(key, known)
    if (this.#known.size <= MAX_KNOWN) return
    const [oldest = ''] = this.#known.keys()
    this.#known.delete(oldest)
  }
}
