// Checks whether DNS points a host to this server, before a certificate is ordered for a custom domain.

import { messageOf, TunnelError } from '../../errors.ts'
import { DnsLookups } from './dns/lookups.ts'

export interface LeadsHereOptions {
  /** The domain that has the server's addresses. */
  readonly domain: string
  /** The addresses of the server, if they differ from those of its domain. */
  readonly addresses?: readonly string[] | undefined
  /** The DNS servers, as those of DNS-01. */
  readonly resolvers?: readonly string[] | undefined
}

export class LeadsHere {
  readonly #options: LeadsHereOptions
  readonly #lookups: DnsLookups

  constructor(options: LeadsHereOptions) {
    this.#options = options
    this.#lookups = new DnsLookups(options.resolvers)
  }

  /**
   * Returns why a host does not point here. `undefined` if it does. All addresses of the host must be the server's,
   * because the authority may check any of them.
   */
  async refusal(host: string): Promise<TunnelError | undefined> {
    const { domain, addresses } = this.#options
    try {
      const [theirs, ours] = await Promise.all([
        this.#lookups.addresses(host),
        addresses ?? this.#lookups.addresses(domain),
      ])
      if (theirs.length > 0 && theirs.every(one => ours.includes(one))) return undefined
      const found = theirs.length === 0 ? 'has no address' : `leads to ${theirs.slice(0, 4).join(', ')}`
      const here = ours.length === 0 ? `${domain} has no address` : `this server is ${ours.join(', ')}`
      return new TunnelError('HOST_NOT_POINTED_HERE', `${host} ${found}, and ${here}.`)
    } catch (cause) {
      return new TunnelError(
        'HOST_NOT_POINTED_HERE',
        `Where ${host} leads cannot be found out now: ${messageOf(cause)}.`,
        {
          cause,
        },
      )
    }
  }
}
