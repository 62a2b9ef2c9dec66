// Certificates of an ACME authority for a server: the issuer, its account, and the responses to checks, put together.

import type { Certificate, Certificates, ChallengeResponses, ListedCertificate } from '../certificates.ts'
import { Events } from '../events.ts'
import type { CertificateStore } from '../store.ts'
import { AcmeAuthority, type Step } from './acme/authority.ts'
import type { DnsProvider } from './acme/dns/provider.ts'
import { DnsSolver } from './acme/dns/solver.ts'
import type { ExternalAccount } from './acme/jws.ts'
import { LeadsHere } from './acme/leads-here.ts'
import { PendingChallenges } from './acme/pending-challenges.ts'
import type { Solver } from './acme/solver.ts'
import { systemClock } from './clock.ts'
import { Issuer, type IssuerEvents } from './issuer.ts'
import { normalName } from './names.ts'

export const LETS_ENCRYPT = 'https://acme-v02.api.letsencrypt.org/directory'
/** The URL of an authority whose certificates no browser trusts, without the limits of the real one. */
export const LETS_ENCRYPT_STAGING = 'https://acme-staging-v02.api.letsencrypt.org/directory'

export interface AcmeCertificatesOptions {
  /** The domains of the server: each has a certificate at all times, with `dns` one for all names below it as well. */
  readonly domains: readonly string[]
  /** The mail addresses of the account. With these the user agrees to the terms of the authority. */
  readonly contact: readonly string[]
  /** Keeps the account and the certificates: `SqliteCertificates`. Its owner closes it, after `stop`. */
  readonly store: CertificateStore
  /** The URL of the authority's directory, `https:` only. Default: that of Let's Encrypt. */
  readonly directory?: string
  /** The PEM text of the roots that sign the directory's own certificate. Default: those of the system. */
  readonly ca?: string
  /** The account for authorities that accept only accounts they know. */
  readonly externalAccount?: ExternalAccount
  /**
   * Sets the records of DNS-01. Default none: HTTP-01 proves names, and each tunnel has a certificate of its own, ordered
   * when a visitor asks for it first.
   */
  readonly dns?: DnsProvider
  /**
   * The DNS servers, `address` or `address:port`, for CNAME and NS records of DNS-01, and for custom domains. Default: those of
   * the system.
   */
  readonly resolvers?: readonly string[]
  /** The proof of names without `dns`: on port 80 (`http-01`) or on port 443 (`tls-alpn-01`). Default `http-01`. */
  readonly challenge?: 'http-01' | 'tls-alpn-01'
  /**
   * The server's own addresses: a host outside of the domains has a certificate only if DNS points to no other. Default: those
   * to which the first domain points. For servers behind an address that DNS does not show.
   */
  readonly addresses?: readonly string[]
  /**
   * The number of new orders within three hours for the names of one token, so that none uses up the 250 that all have together.
   * Default 100: two tokens leave room for a third. If exceeded: `CERTIFICATE_DELAYED`. `0`: only the bound of 250.
   */
  readonly maxOrdersPerOwner?: number
  /**
   * The name of this process, for claims in a shared store. Default: a random one. With a name that stays the same across
   * restarts and that no other process has, a start after a kill need not wait until the claims of the killed process end (30 s).
   */
  readonly holder?: string
}

/** Decides which names may have a certificate: a `TunnelServer`. */
export interface NameOwner {
  isKnownHost(name: string): boolean
  /** As `isKnownHost`, for all servers of the cluster. Default: the server is alone. */
  isKnownHostAnywhere?(name: string): Promise<boolean>
  /** The responses to checks, which may reach any server of the cluster. `undefined` if the server is alone. */
  readonly sharedAnswers?: SharedAnswers | undefined
  /** Returns the owner of a name, as a text that is the same for all names of one owner. `undefined` for the server's own. */
  ownerOfHost?(name: string): string | undefined
}

/** The small texts that all servers of a cluster have in memory. */
export interface SharedAnswers {
  get(key: string): string | undefined
  /** Stores a text under `key` until `untilMs`. Resolves once the other servers have it. */
  put(key: string, text: string, untilMs: number): Promise<void>
  remove(key: string): void
}

export interface AcmeEvents extends IssuerEvents {
  /** Emitted when an order waits: for the servers of the zone (`dns`), or for the authority (`check`). */
  progressed: { readonly names: readonly string[]; readonly step: Step }
}

/**
 * The certificates of an ACME authority, for `certificates` and `challenges` of a `TunnelServer`. Call `start` after
 * the server listens, because the authority checks names at once. The constructor throws `OPTION_INVALID` for domains
 * that no authority certifies.
 */
export class AcmeCertificates extends Events<AcmeEvents> implements Certificates, ChallengeResponses {
  readonly #pending = new PendingChallenges(systemClock, () => this.#owner?.sharedAnswers)
  readonly #issuer: Issuer
  readonly #domains: readonly string[]
  readonly #leadsHere: LeadsHere
  #owner: NameOwner | undefined

  constructor(options: AcmeCertificatesOptions) {
    super()
    const { store, dns, directory = LETS_ENCRYPT } = options
    // Orders and visitors' hosts spell names in this way.
    const domains = options.domains.map(normalName)
    const clock = systemClock
    const { ca, contact, externalAccount, resolvers, addresses, maxOrdersPerOwner, holder } = options
    this.#domains = domains
    this.#leadsHere = new LeadsHere({
      domain: domains[0] ?? '',
      addresses,
      resolvers,
    })
    const solver =
      dns === undefined
        ? undefined
        : new DnsSolver(dns, { clock, servers: dns.servers, ...(resolvers && { resolvers }) })
    const authority = new AcmeAuthority({
      directory,
      ...(ca !== undefined && { ca }),
      ...(externalAccount && { externalAccount }),
      contact,
      store,
      clock,
      // A provider has the zones of the server, but not those of custom domains.
      solverFor: names =>
        solver !== undefined && names.every(name => this.#isOwn(name))
          ? solver
          : this.#ownSolver(options.challenge),
      report: error => this.emit('error', error),
      progressed: (names, step) => this.emit('progressed', { names, step }),
    })
    this.#issuer = new Issuer({
      authority,
      store,
      clock,
      always: domains.map(domain => (dns === undefined ? [domain] : [domain, `*.${domain}`])),
      isAllowed: name => this.#isKnown(name),
      refusalOf: async name => (this.#isOwn(name) ? undefined : this.#leadsHere.refusal(name)),
      ownerOf: name => this.#owner?.ownerOfHost?.(name),
      ...(maxOrdersPerOwner !== undefined && { maxOrdersPerOwner }),
      ...(holder !== undefined && { holder }),
    })
    for (const event of ['issued', 'failed', 'error'] as const)
      this.#issuer.on(event, payload => this.emit(event, payload as never)) // each with its own payload
  }

  list(): readonly ListedCertificate[] {
    return this.#issuer.list()
  }

  find(name: string): Certificate | Promise<Certificate | undefined> | undefined {
    return this.#issuer.find(name)
  }

  httpAnswer(token: string): string | undefined {
    return this.#pending.httpAnswer(token)
  }

  tlsCertificate(name: string): Certificate | undefined {
    return this.#pending.tlsCertificate(name)
  }

  /** Orders missing certificates, and renews from now on. Resolves when that has begun. */
  async start(owner: NameOwner): Promise<void> {
    this.#owner = owner
    await this.#issuer.start()
  }

  /** Ends the orders in progress, which the next process continues. */
  stop(): Promise<void> {
    return this.#issuer.stop()
  }

  #isKnown(name: string): boolean | Promise<boolean> {
    const owner = this.#owner
    return owner !== undefined && (owner.isKnownHost(name) || (owner.isKnownHostAnywhere?.(name) ?? false))
  }

  #isOwn(name: string): boolean {
    return this.#domains.some(domain => name === domain || name.endsWith(`.${domain}`))
  }

  #ownSolver(challenge: AcmeCertificatesOptions['challenge'] = 'http-01'): Solver {
    return challenge === 'http-01' ? this.#pending.http : this.#pending.tls
  }
}
