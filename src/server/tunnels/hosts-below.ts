// The hosts below a wildcard tunnel that may have a certificate. Visitors can ask for any host over TLS, and
// authorities limit the number of certificates, so a visitor's request alone does not count: docs/decisions/042.

import type { Bounds } from '../settings/bounds.ts'

/** The time in milliseconds (a day) for which a host with a response is remembered. A certificate is ordered once in weeks. */
const MEMORY_MS = 86_400_000

export class HostsBelow {
  readonly #limits: () => Bounds
  readonly #now: () => number
  /** The time when the app last responded for a host. */
  readonly #answered = new Map<string, number>()

  constructor(limits: () => Bounds, now: () => number = Date.now) {
    this.#limits = limits
    this.#now = now
  }

  /** Called when the app responded to a request for this host without an error. */
  answered(host: string): void {
    const now = this.#now()
    if (!this.#answered.has(host) && !(isHostName(host) && this.#hasRoom(now))) return
    this.#answered.set(host, now)
  }

  /** Whether a host may have a certificate. `isListed`: the client named the host, so it needs no response and takes no room. */
  has(host: string, isListed: boolean): boolean {
    if (this.#limits().maxHostsBelow === 0) return false
    const answeredAt = this.#answered.get(host)
    return isListed || (answeredAt !== undefined && this.#now() - answeredAt < MEMORY_MS)
  }

  #hasRoom(now: number): boolean {
    const { maxHostsBelow } = this.#limits()
    if (this.#answered.size < maxHostsBelow) return true
    for (const [host, answeredAt] of this.#answered)
      if (now - answeredAt >= MEMORY_MS) this.#answered.delete(host)
    return this.#answered.size < maxHostsBelow
  }
}

/** Whether an authority would certify the host: letters, digits and inner hyphens. */
export function isHostName(host: string): boolean {
  const isLabel = (label: string) => /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(label)
  return host.length <= 253 && host.split('.').every(isLabel)
}
