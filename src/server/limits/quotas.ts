// The counts of clients at the server, for each owner and in total: no bound is reached by dividing it among connections.
//
// A holder is a token. On a server without tokens it is an address: a token that such a server does not know is made up.

import type { Account } from '../../bytes.ts'
import { type Allowance, Gcra, rateLimited } from '../../gcra.ts'
import type { Allotment, Guard, Refusal } from '../../plugin.ts'
import { networkOf } from '../../wire/ip-address.ts'
import type { Bounds } from '../settings/bounds.ts'
import type { Rule } from '../settings/policy.ts'

/** The counted things. */
export type Held = 'tunnels' | 'ports' | 'hosts' | 'clients' | 'links' | 'streams' | 'bytes'

interface Bound {
  /** Wins over `perHolder`, where a token has it. */
  readonly rule?: 'maxTunnels' | 'maxPorts' | 'maxHosts' | 'maxClients'
  readonly perHolder: keyof Bounds
  /** The bound in total. `undefined` if the ranges of ports are the bound. */
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

/** A token, or an address, and what its clients hold: leases included. */
export class QuotaOwner implements Account {
  /** The same for all that this token, or address, holds. */
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

  /** The rule of the token now; of an address: the rule of one of its clients. */
  get rule(): Rule {
    return this.#rule
  }

  set rule(rule: Rule) {
    if (rule === this.#rule) return
    this.#rule = rule
    this.#buildWall()
  }

  /** The limits that its rule sets for visitors of all its tunnels together. `undefined` for none. */
  get tokenRate(): TokenRate | undefined {
    return this.#tokenRate
  }

  #buildWall(): void {
    const { rate } = this.#rule
    if (rate === undefined) this.#tokenRate = undefined
    else if (this.#tokenRate?.isOf(rate) !== true) this.#tokenRate = new TokenRate(rate)
  }

  /** Whether it may hold this many more, for itself and in total. */
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

  /** The same with links, which its clients can do without. */
  get descriptorCountWithLinks(): number {
    return this.descriptorCount + this.#counts.links
  }

  /** Whether too many bytes wait here: of this owner, or in total, and this one has more than an equal share. */
  get isOver(): boolean {
    const { bytes } = this.#counts
    return bytes >= this.#mostOf('bytes') || this.#quotas.isAboveShare(bytes)
  }

  /** A connection's next holder, after a reload: counts it there, with what it has. Returns `next`. */
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

  /** Stays known until the task is over, also while it holds nothing: what it takes then counts with the rest. */
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

  /** Whether this many were refused in this second that no other is looked at. */
  isRefusedTooOften(nowMs: number): boolean {
    const { maxTokenRefusals } = this.#quotas.limits
    return Math.floor(nowMs / 1_000) === this.#second && this.#refusals >= maxTokenRefusals
  }

  /** Returns the bound that it has reached, for the client to read. `undefined` for none. */
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

/** Holders in memory before those that hold nothing are looked for. */
const FIRST_SWEEP = 1_024

/** All holders that hold anything. */
export class Quotas {
  readonly counts: Counts = none()
  readonly #byKey = new Map<string, QuotaOwner>()
  readonly #limits: () => Bounds
  #sweepAt = FIRST_SWEEP
  /** Holders for whose readers bytes wait. */
  #waitingCount = 0

  constructor(limits: () => Bounds) {
    this.#limits = limits
  }

  get limits(): Bounds {
    return this.#limits()
  }

  /** Returns the owner of a client with this rule and address. The rule counts from now on. */
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

  /** Called when an owner that had `before` bytes has `now`. */
  bytesChanged(before: number, now: number): void {
    this.#waitingCount += Number(now > 0) - Number(before > 0)
  }

  /** Whether all bytes are too many, and these are more than an equal share: one holder must not use up what others need. */
  isAboveShare(bytes: number): boolean {
    const { maxAllBufferedBytes } = this.limits
    return this.counts.bytes >= maxAllBufferedBytes && bytes * this.#waitingCount >= maxAllBufferedBytes
  }

  fullOf(what: Held, count = 1): string | undefined {
    const { inTotal } = BOUNDS[what]
    if (inTotal === undefined || this.hasRoomFor(what, count)) return undefined
    return `The server may hold ${this.limits[inTotal]} ${NOUNS[what]} (${inTotal}).`
  }

  /** Forgets holders that hold nothing: clients from ever new addresses must not fill memory. */
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

  /** Whether another one is not needed: what was counted stays. */
  isOf({ limit, windowMs }: Allowance): boolean {
    return limit === this.rate.limit && windowMs === this.rate.windowMs
  }
}
