// Custom domains: whole host names of tunnels in addition to their own names, and their owners.

interface Owner {
  readonly name: string
}

interface Entry<Whose> {
  readonly owner: Whose
  readonly destination: { readonly kind: 'tunnel'; readonly name: string; readonly isBelow: false }
  /** Members of the tunnel that asked for it. */
  count: number
}

/** The host names outside of the server's domains, looked up with each request for one. */
export class HostNames<Whose extends Owner> {
  /** A host is not a tunnel's any more. */
  freed: ((host: string) => void) | undefined
  readonly #byHost = new Map<string, Entry<Whose>>()

  destinationOf(host: string): Entry<Whose>['destination'] | undefined {
    return this.#byHost.get(host)?.destination
  }

  ownerOf(host: string): Whose | undefined {
    return this.#byHost.get(host)?.owner
  }

  /** Whether one of them is another tunnel's. */
  areTaken(hosts: readonly string[], owner: Whose | undefined): boolean {
    return hosts.some(host => {
      const entry = this.#byHost.get(host)
      return entry !== undefined && entry.owner !== owner
    })
  }

  take(hosts: readonly string[], owner: Whose): void {
    for (const host of hosts) {
      const entry = this.#byHost.get(host)
      if (entry?.owner === owner) entry.count++
      else if (entry === undefined) {
        const destination = { kind: 'tunnel', name: owner.name, isBelow: false } as const
        this.#byHost.set(host, { owner, destination, count: 1 })
      }
    }
  }

  give(hosts: readonly string[], owner: Whose): void {
    for (const host of hosts) {
      const entry = this.#byHost.get(host)
      if (entry?.owner !== owner || --entry.count > 0) continue
      this.#byHost.delete(host)
      this.freed?.(host)
    }
  }
}
