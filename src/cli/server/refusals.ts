// Refused clients in the log of a server: a line each, but not for every attempt of a client that never stops.

import { Tolerance } from '../../session/tolerance.ts'
import type { Output } from '../output.ts'

/** The time in milliseconds before an address that is refused again with the same code gets another line. */
const QUIET_MS = 60_000
/** The maximum number of lines per second for all addresses together. */
const MAX_LINES_PER_SECOND = 5
/** The maximum number of addresses and codes in memory. The one whose line is oldest is forgotten. */
const MAX_KNOWN = 1_024

/** The codes after which a client chooses another name by itself. */
const EVERYDAY: ReadonlySet<string> = new Set(['NAME_TAKEN', 'PORT_TAKEN'])

interface Refusal {
  readonly remoteAddress: string
  readonly wire: string
  readonly code: string
}

interface Known {
  /** The number of refusals since its last line. */
  unsaid: number
  saidAtMs: number
}

export class Refusals {
  readonly #output: Output
  readonly #now: () => number
  /** The refusals by code and address, with the latest line at the end. */
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
