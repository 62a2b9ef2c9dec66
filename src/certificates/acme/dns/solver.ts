// DNS-01: sets the records of an order with a provider, and waits until the zone's own servers have them.

import { createHash } from 'node:crypto'
import { messageOf } from '../../../errors.ts'
import { type Clock, pause } from '../../clock.ts'
import type { Challenge, Solver } from '../solver.ts'
import { dnsFailed } from './failed.ts'
import { DnsLookups } from './lookups.ts'
import type { DnsProvider, DnsRecord } from './provider.ts'

export interface DnsSolverOptions {
  readonly clock: Clock
  /** The DNS servers for CNAME and NS records: `address` or `address:port`. Default: the resolvers of the system. */
  readonly resolvers?: readonly string[]
  /** The servers to ask whether a record is visible. Default: those of the provider, otherwise those in the zone's NS records. */
  readonly servers?: readonly string[] | undefined
  /**
   * The time until all servers of the zone have the records. Default 120,000 ms; then `ACME_CHALLENGE_FAILED`. 0:
   * does not ask them, for machines that cannot reach external name servers.
   */
  readonly visibleTimeoutMs?: number
}

const PREFIX = '_acme-challenge.'
const FIRST_POLL_MS = 500
const LAST_POLL_MS = 5_000

export class DnsSolver implements Solver {
  readonly type = 'dns-01'
  readonly #provider: DnsProvider
  readonly #options: DnsSolverOptions
  readonly #lookups: DnsLookups

  constructor(provider: DnsProvider, options: DnsSolverOptions) {
    this.#provider = provider
    this.#options = options
    this.#lookups = new DnsLookups(options.resolvers)
  }

  async present(challenges: readonly Challenge[], signal: AbortSignal): Promise<void> {
    const records = await this.#recordsOf(challenges)
    // One after the other, because providers that replace all texts of a name would lose one of two.
    for (const record of records) await this.#provider.add(record, signal)
    await this.#visible(records, signal)
  }

  async withdraw(challenges: readonly Challenge[]): Promise<void> {
    const { signal } = new AbortController()
    const failures: unknown[] = []
    for (const record of await this.#recordsOf(challenges)) {
      await this.#provider.remove(record, signal).catch((error: unknown) => failures.push(error))
    }
    if (failures.length > 0) throw dnsFailed('A record was not removed', failures[0])
  }

  async #recordsOf(challenges: readonly Challenge[]): Promise<readonly DnsRecord[]> {
    return Promise.all(
      challenges.map(async ({ name, keyAuthorization }) => {
        const value = createHash('sha256').update(keyAuthorization).digest('base64url')
        const asked = `${PREFIX}${name}`
        try {
          return { name: await this.#lookups.target(asked), value }
        } catch (cause) {
          throw dnsFailed(`Where ${asked} leads cannot be read`, cause)
        }
      }),
    )
  }

  async #visible(records: readonly DnsRecord[], signal: AbortSignal): Promise<void> {
    const { clock, visibleTimeoutMs = 120_000 } = this.#options
    if (visibleTimeoutMs === 0) return
    const endMs = clock.now() + visibleTimeoutMs
    for (let delayMs = FIRST_POLL_MS; ; delayMs = Math.min(delayMs * 1.5, LAST_POLL_MS)) {
      const faults = (await Promise.all(records.map(record => this.#faultOf(record)))).flat()
      if (faults.length === 0) return
      if (clock.now() + delayMs > endMs)
        throw dnsFailed(
          `The zone's servers do not have the record after ${visibleTimeoutMs} ms`,
          faults.join('; '),
        )
      await pause(clock, delayMs, signal)
    }
  }

  /** Returns why the record is not visible yet. Silent servers do not count, unless all are. */
  async #faultOf({ name, value }: DnsRecord): Promise<readonly string[]> {
    try {
      const servers = this.#options.servers ?? this.#provider.servers ?? (await this.#lookups.serversOf(name))
      const answers = await Promise.all(servers.map(server => this.#lookups.texts(server, name)))
      const missing = servers.filter(
        (_, index) => answers[index] !== 'silent' && !answers[index]!.includes(value),
      )
      if (missing.length > 0) return [`${name} is not at ${missing.join(', ')}`]
      const isSeen = answers.some(answer => answer !== 'silent')
      return isSeen
        ? []
        : [`no server of ${name} answers${servers.length > 0 ? `: ${servers.join(', ')}` : ''}`]
    } catch (error) {
      return [`the servers of ${name} cannot be found: ${messageOf(error)}`]
    }
  }
}
