// Addresses, networks and names that the operator bans. Every visitor is checked, so an empty list costs one comparison.

import { createHash } from 'node:crypto'
import { objectIn } from '../../directory.ts'
import { optionInvalid } from '../../errors.ts'
import { isNetwork, Networks } from '../../networks.ts'
import type { Ban, BanList, OperationsStore } from '../../operations.ts'
import type { Table } from '../../server/contracts/tables.ts'

/** The maximum number of bans. If exceeded: `OPTION_INVALID`. */
const MAX_BANS = 10_000
/** The maximum number of bans of all servers, including those removed in the last 90 days. */
export const MAX_SHARED = 20_000

/** The receiver of changes. */
interface BansHost {
  /** Called when other visitors may be refused or admitted. */
  changed(): void
  /** Called after a new ban, to cut the visitors and clients that it names. */
  added(ban: Ban): void
}

export class Bans implements BanList {
  readonly #store: OperationsStore | undefined
  readonly #host: BansHost
  /** The bans of all servers. `undefined` if this one is alone, or shares its store with the others. */
  #shared: SharedBans | undefined
  readonly #bans = new Map<number, Ban>()
  #addresses = new Networks()
  #tunnels = new Set<string>()
  #lastId = 0
  #version: number | undefined
  #hasAddresses = false
  #nextEndMs = Number.POSITIVE_INFINITY

  constructor(store: OperationsStore | undefined, host: BansHost) {
    this.#store = store
    this.#host = host
    this.refresh()
    this.#rebuild()
  }

  /** Reads changes by other programs with the same store. */
  refresh(): void {
    const version = this.#store?.version()
    if (this.#store === undefined || version === this.#version || this.#shared !== undefined) return
    this.#version = version
    this.#replace(this.#store.bans())
  }

  share(shared: SharedBans): void {
    this.#expire()
    for (const ban of this.#bans.values()) shared.bring(ban)
    this.#shared = shared
    const takeOver = (): void => {
      const before = new Map(this.#bans)
      const bans = shared.all()
      for (const ban of bans) if (!before.delete(ban.id)) this.#store?.saveBan(ban)
      for (const id of before.keys()) this.#store?.removeBan(id)
      this.#replace(bans)
    }
    takeOver()
    shared.onChange(takeOver)
  }

  #replace(bans: readonly Ban[]): void {
    const added = bans.filter(({ id }) => !this.#bans.has(id))
    if (added.length === 0 && bans.length === this.#bans.size) return
    this.#bans.clear()
    for (const ban of bans) this.#bans.set(ban.id, ban)
    this.#rebuild()
    for (const ban of added) this.#host.added(ban)
  }

  get all(): readonly Ban[] {
    this.#expire()
    return [...this.#bans.values()]
  }

  get hasAddresses(): boolean {
    return this.#hasAddresses
  }

  isAddressBanned(address: string): boolean {
    if (!this.#hasAddresses) return false
    this.#expire()
    return this.#addresses.has(address)
  }

  isTunnelBanned(name: string): boolean {
    if (this.#tunnels.size === 0) return false
    this.#expire()
    return this.#tunnels.has(name)
  }

  /** Adds a ban. Throws `OPTION_INVALID` for a value that cannot be banned. */
  add(ban: Omit<Ban, 'id'>): Ban {
    this.#expire()
    const { kind, value } = ban
    if (kind === 'address' && !isNetwork(value))
      throw optionInvalid(`"${value}" is not an address or a network.`)
    if (this.#bans.size >= MAX_BANS) throw optionInvalid(`There are ${MAX_BANS} bans already.`)
    const shared = this.#shared?.add(ban)
    const wanted = { ...ban, ...(shared !== undefined && { id: shared }) }
    const id = this.#store?.saveBan(wanted) ?? shared ?? this.#lastId + 1
    this.#lastId = id
    const added = { id, ...ban }
    this.#bans.set(id, added)
    this.#rebuild()
    this.#host.added(added)
    return added
  }

  /** Removes a ban. Returns `false` if there is none with this id. */
  remove(id: number): boolean {
    if (!this.#bans.delete(id)) return false
    this.#shared?.remove(id)
    this.#store?.removeBan(id)
    this.#rebuild()
    return true
  }

  #expire(): void {
    const now = Date.now()
    if (now < this.#nextEndMs) return
    for (const { id, untilMs } of this.#bans.values())
      if (untilMs !== undefined && untilMs <= now) {
        this.#bans.delete(id)
        this.#store?.removeBan(id)
      }
    this.#rebuild()
  }

  #rebuild(): void {
    const addresses = new Networks()
    const tunnels = new Set<string>()
    this.#hasAddresses = false
    this.#nextEndMs = Number.POSITIVE_INFINITY
    for (const { kind, value, untilMs } of this.#bans.values()) {
      this.#nextEndMs = Math.min(this.#nextEndMs, untilMs ?? Number.POSITIVE_INFINITY)
      if (kind === 'tunnel') tunnels.add(value)
      else {
        this.#hasAddresses = true
        addresses.add(value)
      }
    }
    this.#addresses = addresses
    this.#tunnels = tunnels
    this.#host.changed()
  }
}

/** The range of ids: 12 digits, which an operator can read aloud. */
const IDS = 1_000_000_000_000

export class SharedBans {
  readonly #table: Table

  constructor(table: Table) {
    this.#table = table
  }

  onChange(changed: () => void): void {
    this.#table.onChange(changed)
  }

  all(): readonly Ban[] {
    return this.#table.all().flatMap(({ key, value, untilMs }) => banOf(Number(key), value, untilMs) ?? [])
  }

  /** Adds a ban. All servers give it the same id. */
  add(ban: Omit<Ban, 'id'>): number {
    const id = idOf(ban)
    this.#table.set(String(id), textOf(ban), ban.untilMs ?? 0)
    return id
  }

  /** Adds a ban of this server's last run, unless the other servers know it and may have removed it since. */
  bring(ban: Omit<Ban, 'id'>): void {
    this.#table.bring(String(idOf(ban)), textOf(ban), ban.sinceMs, ban.untilMs ?? 0)
  }

  remove(id: number): void {
    this.#table.remove(String(id))
  }
}

function idOf(ban: Omit<Ban, 'id'>): number {
  const hash = createHash('sha256').update(`${textOf(ban)} ${ban.untilMs ?? 0}`)
  return 1 + (hash.digest().readUIntBE(0, 6) % IDS)
}

function textOf({ kind, value, reason, sinceMs }: Omit<Ban, 'id'>): string {
  return JSON.stringify({ kind, value, reason, sinceMs })
}

/** Reads a ban. `undefined` if this server does not know its kind. */
function banOf(id: number, text: string, untilMs: number): Ban | undefined {
  const { kind, value, reason, sinceMs } = objectIn(text) ?? {}
  if (typeof value !== 'string' || typeof reason !== 'string' || typeof sinceMs !== 'number') return undefined
  if (!Number.isSafeInteger(id) || (kind !== 'tunnel' && (kind !== 'address' || !isNetwork(value))))
    return undefined
  return { id, kind, value, reason, sinceMs, ...(untilMs !== 0 && { untilMs }) }
}
