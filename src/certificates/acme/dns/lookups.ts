// Queries to name servers: the target of a name, the servers of its zone, and its texts there.

import { Resolver } from 'node:dns/promises'

const QUERY_TIMEOUT_MS = 3_000
const TRIES = 2
/** The time in milliseconds for one attempt. A caller that waits for a record asks again. */
const TEXT_TIMEOUT_MS = 1_000
/** The maximum length of a chain of aliases. RFC 1034 sets no limit; resolvers give up between 8 and 16. */
const MAX_ALIASES = 8
const MAX_SERVERS = 16

/** The reply of a server: its texts, or that it is silent. */
export type TextAnswer = readonly string[] | 'silent'

export class DnsLookups {
  readonly #resolver: Resolver

  /** Makes the lookups. `resolvers`: `address` or `address:port`. Default: those of the system. */
  constructor(resolvers?: readonly string[]) {
    this.#resolver = new Resolver({ timeout: QUERY_TIMEOUT_MS, tries: TRIES })
    if (resolvers !== undefined) this.#resolver.setServers(resolvers)
  }

  /** Follows CNAME records from `name`. Returns `name` itself if there are none. */
  async target(name: string): Promise<string> {
    let target = name
    for (let count = 0; count < MAX_ALIASES; count++) {
      const [next] = await orNone(this.#resolver.resolveCname(target))
      if (next === undefined) return target
      target = next.toLowerCase().replace(/\.$/, '')
    }
    throw new Error(`more than ${MAX_ALIASES} CNAME records follow each other from ${name}`)
  }

  /** Returns the addresses of the servers with the zone of `name`. */
  async serversOf(name: string): Promise<readonly string[]> {
    const labels = name.split('.')
    for (let start = 0; start < labels.length; start++) {
      const hosts = await orNone(this.#resolver.resolveNs(labels.slice(start).join('.')))
      if (hosts.length === 0) continue
      const found = await Promise.all(hosts.slice(0, MAX_SERVERS).map(host => this.#addressesOf(host)))
      return found.flat().slice(0, MAX_SERVERS)
    }
    return []
  }

  /** Returns the texts at one server, without a cache. */
  async texts(server: string, name: string): Promise<TextAnswer> {
    const resolver = new Resolver({ timeout: TEXT_TIMEOUT_MS, tries: 1 })
    resolver.setServers([server])
    try {
      return (await orNone(resolver.resolveTxt(name))).map(parts => parts.join(''))
    } catch {
      // No reply, or a refusal: a caller that waits for a record asks again in both cases.
      return 'silent'
    }
  }

  /** Returns all addresses that visitors may get for a host. */
  async addresses(host: string): Promise<readonly string[]> {
    const found = await Promise.all([
      orNone(this.#resolver.resolve4(host)),
      orNone(this.#resolver.resolve6(host)),
    ])
    return found.flat()
  }

  /** Returns the addresses of a host, IPv4 first, because many machines have no IPv6 and would take such servers for silent. */
  async #addressesOf(host: string): Promise<readonly string[]> {
    const four = await orNone(this.#resolver.resolve4(host))
    return four.length > 0 ? four : orNone(this.#resolver.resolve6(host))
  }
}

/** The error codes for a name without such a record. */
const NONE: readonly unknown[] = ['ENODATA', 'ENOTFOUND', 'DNS_ENODATA', 'DNS_ENOTFOUND', 'NXDOMAIN']

async function orNone<Value>(answers: Promise<readonly Value[]>): Promise<readonly Value[]> {
  try {
    return await answers
  } catch (error) {
    if (error instanceof Error && 'code' in error && NONE.includes(error.code)) return []
    throw error
  }
}
