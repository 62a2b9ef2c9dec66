// Custom domains: whole host names that tunnels have in addition to their own names.

interface Owner {
  readonly name: string
}

interface Entry<Whose> {
  readonly owner: Whose
  readonly destination: { readonly kind: 'tunnel'; readonly name: string; readonly isBelow: false }
  /** The number of members of the tunnel that asked for the host. */
  count: number
}

/** The host names outside of the server's domains. Each request for such a host looks here. */
export class HostNames<Whose extends Owner> {
  /** Called when a host no longer belongs to a tunnel. */
  freed: ((host: string) => void) | undefined
  readonly #byHost = new Map<string, Entry<Whose>>()

  destinationOf(host: string): Entry<Whose>['destination'] | undefined {
    return this.#byHost.get(host)?.destination
  }

  ownerOf(host: string): Whose | undefined {
    return this.#byHost.get(host)?.owner
  }

  /** Whether another tunnel has one of these hosts. */
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
