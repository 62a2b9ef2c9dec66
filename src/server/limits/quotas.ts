// Counts what clients use at the server, for each owner and in total, so that no limit is avoided by using several
// connections.
//
// An owner is a token. On a server without tokens it is an address, because there a client may make up any token.

import type { Account } from '../../bytes.ts'
import { type Allowance, Gcra, rateLimited } from '../../gcra.ts'
import type { Allotment, Guard, Refusal } from '../../plugin.ts'
import { networkOf } from '../../wire/ip-address.ts'
import type { Bounds } from '../settings/bounds.ts'
import type { Rule } from '../settings/policy.ts'

/** The kinds of things that are counted. */
export type Held = 'tunnels' | 'ports' | 'hosts' | 'clients' | 'links' | 'streams' | 'bytes'

interface Bound {
  /** The field of a token's rule that replaces `perHolder`. */
  readonly rule?: 'maxTunnels' | 'maxPorts' | 'maxHosts' | 'maxClients'
  readonly perHolder: keyof Bounds
  /** The limit in total. `undefined` if the port ranges are the limit. */
  readonly inTotal: keyof Bounds | undefined
}

const BOUNDS: Readonly<Record<Held, Bound>> = {
  tunnels: { rule: 'maxTunnels', perHolder: 'maxTokenTunnels', inTotal: 'maxAllTunnels' },
  ports: { rule: 'maxPorts', perHolder: 'maxTokenPorts', inTotal: undefined },
  hosts: { rule: 'maxHosts', perHolder: 'maxTokenHosts', inTotal: 'maxAllHosts' },
  clients: { rule: 'maxClients', perHolder: 'maxTokenClients', inTotal: 'maxClients' },
  links: { perHolder: 'maxTokenLinks', inTotal: 'maxAllLinks' },
  streams: { perHolder: 'maxTokenStreams', inTotal: 'maxAllStreams' },
  bytes: { perHolder: 'maxTokenBufferedBytes', inTotal: 'maxAllBufferedBytes' },
}

export type Counts = Record<Held, number>

const none = (): Counts => ({
  tunnels: 0,
  ports: 0,
  hosts: 0,
  clients: 0,
  links: 0,
  streams: 0,
  bytes: 0,
})

/** A token or address, and what its clients use. Tunnels within their lease count. */
export class QuotaOwner implements Account {
  /** The key of this owner: the same text for all clients of the token or address. */
  readonly key: string
  readonly #quotas: Quotas
  readonly #counts: Counts = none()
  #rule: Rule
  #tokenRate: TokenRate | undefined
  #second = 0
  #refusals = 0
  #claims = 0

  constructor(rule: Rule, key: string, quotas: Quotas) {
    this.#rule = rule
    this.key = key
    this.#quotas = quotas
    this.#buildWall()
  }

  /** The current rule of the token; for an address, the rule of one of its clients. */
  get rule(): Rule {
    return this.#rule
  }

  set rule(rule: Rule) {
    if (rule === this.#rule) return
    this.#rule = rule
    this.#buildWall()
  }

  /** The limits that the rule sets for visitors of all its tunnels together. `undefined` if it sets none. */
  get tokenRate(): TokenRate | undefined {
    return this.#tokenRate
  }

  #buildWall(): void {
    const { rate } = this.#rule
    if (rate === undefined) this.#tokenRate = undefined
    else if (this.#tokenRate?.isOf(rate) !== true) this.#tokenRate = new TokenRate(rate)
  }

  /** Whether it may have `count` more, by its own limit and the total one. */
  hasRoomFor(what: Held, count = 1): boolean {
    return this.#counts[what] + count <= this.#mostOf(what) && this.#quotas.hasRoomFor(what, count)
  }

  take(what: Held, count = 1): void {
    const before = this.#counts[what]
    this.#counts[what] += count
    this.#quotas.counts[what] += count
    if (what === 'bytes') this.#quotas.bytesChanged(before, before + count)
  }

  give(what: Held, count = 1): void {
    this.take(what, -count)
  }

  hold(bytes: number): void {
    this.take('bytes', bytes)
  }

  get descriptorCount(): number {
    return this.#counts.clients + this.#counts.ports
  }

  /** The number of descriptors in use, including links, without which clients also work. */
  get descriptorCountWithLinks(): number {
    return this.descriptorCount + this.#counts.links
  }

  /** Whether too many bytes wait: of this owner; or in total, while this owner has more than an equal share. */
  get isOver(): boolean {
    const { bytes } = this.#counts
    return bytes >= this.#mostOf('bytes') || this.#quotas.isAboveShare(bytes)
  }

  /** Moves a connection and its counts to the owner that it has after a reload. Returns `next`. */
  passTo(
    next: QuotaOwner,
    { links, streams, bytes }: Pick<Counts, 'links' | 'streams' | 'bytes'>,
  ): QuotaOwner {
    if (next === this) return next
    for (const [what, count] of [
      ['clients', 1],
      ['links', links],
      ['streams', streams],
      ['bytes', bytes],
    ] as const) {
      this.give(what, count)
      next.take(what, count)
    }
    return next
  }

  /**
   * Keeps the owner known until the task is over, even while it uses nothing, so that what the task takes is counted
   * with the rest.
   */
  async during<Outcome>(task: () => Promise<Outcome>): Promise<Outcome> {
    this.#claims++
    try {
      return await task()
    } finally {
      this.#claims--
    }
  }

  get isEmpty(): boolean {
    return this.#claims === 0 && Object.values(this.#counts).every(count => count === 0)
  }

  refused(nowMs: number): void {
    const second = Math.floor(nowMs / 1_000)
    this.#refusals = second === this.#second ? this.#refusals + 1 : 1
    this.#second = second
  }

  /** Whether the maximum number of registrations was refused in this second, so that no other is examined. */
  isRefusedTooOften(nowMs: number): boolean {
    const { maxTokenRefusals } = this.#quotas.limits
    return Math.floor(nowMs / 1_000) === this.#second && this.#refusals >= maxTokenRefusals
  }

  /** Returns the limit that has been reached, as text for the client's user. `undefined` if none has. */
  fullOf(what: Held, count = 1): string | undefined {
    const most = this.#mostOf(what)
    const { rule, perHolder } = BOUNDS[what]
    if (this.#counts[what] + count <= most) return this.#quotas.fullOf(what, count)
    const option = rule === undefined || this.rule[rule] === undefined ? perHolder : rule
    const who = this.rule.id === undefined ? 'This address' : 'This token'
    return `${who} ${count === 1 ? 'holds' : 'may hold'} ${most} ${NOUNS[what]}, as many as the server allows (${option}).`
  }

  #mostOf(what: Held): number {
    const { rule, perHolder } = BOUNDS[what]
    return (rule && this.rule[rule]) ?? this.#quotas.limits[perHolder]
  }
}

const NOUNS: Readonly<Record<Held, string>> = {
  tunnels: 'tunnels, leases included',
  ports: 'ports, leases included',
  hosts: "hosts outside of the server's domains, leases included",
  clients: 'connections',
  links: 'links',
  streams: 'streams',
  bytes: 'bytes',
}

/** The number of owners in memory above which those that use nothing are looked for and removed. */
const FIRST_SWEEP = 1_024

/** All owners that use anything. */
export class Quotas {
  readonly counts: Counts = none()
  readonly #byKey = new Map<string, QuotaOwner>()
  readonly #limits: () => Bounds
  #sweepAt = FIRST_SWEEP
  /** The number of owners with bytes that a slow reader has not taken yet. */
  #waitingCount = 0

  constructor(limits: () => Bounds) {
    this.#limits = limits
  }

  get limits(): Bounds {
    return this.#limits()
  }

  /** Returns the owner for a client with this rule and address. The rule applies from now on. */
  of(rule: Rule, address: string): QuotaOwner {
    const key = rule.id ?? networkOf(address)
    const known = this.#byKey.get(key)
    if (known !== undefined) {
      known.rule = rule
      return known
    }
    if (this.#byKey.size >= this.#sweepAt) this.#sweep()
    const holder = new QuotaOwner(rule, key, this)
    this.#byKey.set(key, holder)
    return holder
  }

  hasRoomFor(what: Held, count = 1): boolean {
    const { inTotal } = BOUNDS[what]
    return inTotal === undefined || this.counts[what] + count <= this.limits[inTotal]
  }

  get descriptorCount(): number {
    return this.counts.clients + this.counts.ports
  }

  get descriptorCountWithLinks(): number {
    return this.descriptorCount + this.counts.links
  }

  /** Called when the waiting bytes of an owner change from `before` to `now`. */
  bytesChanged(before: number, now: number): void {
    this.#waitingCount += Number(now > 0) - Number(before > 0)
  }

  /**
   * Whether too many bytes wait in total and these are more than an equal share, so that one owner does not use up
   * the room of others.
   */
  isAboveShare(bytes: number): boolean {
    const { maxAllBufferedBytes } = this.limits
    return this.counts.bytes >= maxAllBufferedBytes && bytes * this.#waitingCount >= maxAllBufferedBytes
  }

  fullOf(what: Held, count = 1): string | undefined {
    const { inTotal } = BOUNDS[what]
    if (inTotal === undefined || this.hasRoomFor(what, count)) return undefined
    return `The server may hold ${this.limits[inTotal]} ${NOUNS[what]} (${inTotal}).`
  }

  /** Removes owners that use nothing, so that clients from ever new addresses do not fill memory. */
  #sweep(): void {
    for (const [key, holder] of this.#byKey) if (holder.isEmpty) this.#byKey.delete(key)
    this.#sweepAt = Math.max(FIRST_SWEEP, 2 * this.#byKey.size)
  }
}

/** How many requests all visitors of one token's tunnels may send. */
export class TokenRate implements Guard {
  readonly name = 'token'
  readonly rate: Allowance
  readonly #gcra: Gcra

  constructor(rate: Allowance) {
    this.rate = rate
    this.#gcra = new Gcra(rate, 1)
  }

  admit(): Refusal | undefined {
    const waitMs = this.#gcra.take('', performance.now())
    return waitMs === 0 ? undefined : rateLimited(this.rate, waitMs, 'token')
  }

  allot(): Allotment | undefined {
    return this.#gcra.allot('', performance.now())
  }

  /** Whether these are the same limits, so that the counter can stay. */
  isOf({ limit, windowMs }: Allowance): boolean {
    return limit === this.rate.limit && windowMs === this.rate.windowMs
  }
}
