// A directory in memory for servers of one process, and the model with which the scripts of `redis.ts` are compared.

import type {
  Beat,
  Directory,
  DirectoryListener,
  DirectoryTimes,
  Hold,
  LostClaim,
  NameOutcome,
  NameWish,
  Node,
  Place,
} from '../directory.ts'
import { isPortName } from '../directory.ts'
import { MemoryTables } from './memory-tables.ts'

interface Record {
  epoch: number
  proof: string
  readonly isShared: boolean
  readonly isTls: boolean
  /** The epoch of the claim by server. A name that is not shared has one server. */
  readonly nodes: Map<string, number>
  until: number
}

interface Alive {
  url: string
  urlUntil: number
  leaseUntil: number
}

export class MemoryDirectory implements Directory {
  readonly tables: MemoryTables = new MemoryTables()
  readonly #now: () => number
  readonly #listeners = new Set<DirectoryListener>()
  readonly #records = new Map<string, Record>()
  readonly #nodes = new Map<string, Alive>()
  #epoch = 0
  #earlyUntil: number | undefined
  #secret = ''

  /** Makes a directory. `now`: a clock in milliseconds. */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  listen(listener: DirectoryListener): Promise<() => void> {
    this.#listeners.add(listener)
    return Promise.resolve(() => void this.#listeners.delete(listener))
  }

  beat({ id, url }: Node, { nodeMs, leaseMs, earlyMs }: DirectoryTimes, highestEpoch: number): Promise<Beat> {
    const now = this.#now()
    const before = this.#nodes.get(id)
    const isKnown = before !== undefined && before.leaseUntil > now
    this.#nodes.set(id, { url, urlUntil: now + nodeMs, leaseUntil: now + leaseMs })
    this.#begin(earlyMs)
    this.#epoch = Math.max(this.#epoch, highestEpoch)
    return Promise.resolve({ isKnown, highestEpoch: this.#epoch })
  }

  /**
   * Begins with its first call. Epochs begin with the current time: those before a loss were granted earlier, and a
   * server that was cut off knows only them.
   */
  #begin(earlyMs: number): void {
    if (this.#earlyUntil !== undefined) return
    const now = this.#now()
    this.#earlyUntil = now + earlyMs
    this.#epoch = Math.max(this.#epoch, Math.floor(now))
  }

  claim(
    node: string,
    { name, shown, next, isShared, isTls = false }: NameWish,
    times: DirectoryTimes,
  ): Promise<NameOutcome> {
    const grant = (proof: string, isProved: boolean): Promise<NameOutcome> =>
      Promise.resolve(this.#grant(node, { name, proof, isShared, isTls }, isProved, times))
    const record = this.#recordOf(name)
    if (record !== undefined && !record.isShared) {
      const isProved = shown !== '' && record.proof === shown
      if (!isProved || isShared) return Promise.resolve({ kind: 'taken' })
      return grant(shown, true)
    }
    if (record !== undefined && !isShared) return Promise.resolve({ kind: 'taken' })
    // A claim may come before the first heartbeat, because servers reconnect in any order.
    if (record === undefined) this.#begin(times.earlyMs)
    const waitMs = (this.#earlyUntil ?? 0) - this.#now()
    if (record === undefined && waitMs > 0) return Promise.resolve({ kind: 'early', waitMs })
    return grant(isShared ? '' : next, false)
  }

  #grant(node: string, granted: Omit<Hold, 'epoch'>, isProved: boolean, times: DirectoryTimes): NameOutcome {
    const epoch = ++this.#epoch
    this.#put(node, { ...granted, epoch }, times)
    this.#tell(granted.name, node, epoch)
    return { kind: 'granted', epoch, isProved }
  }

  restore(node: string, holds: readonly Hold[], times: DirectoryTimes): Promise<readonly string[]> {
    const lost: string[] = []
    for (const hold of holds) {
      const record = this.#recordOf(hold.name)
      const own = record?.nodes.get(node)
      if (record !== undefined && own === undefined) {
        const isOthers = record.isShared !== hold.isShared || (!record.isShared && record.epoch >= hold.epoch)
        if (isOthers) {
          lost.push(hold.name)
          continue
        }
      }
      this.#epoch = Math.max(this.#epoch, hold.epoch)
      // The server has claimed it again since it sent this.
      if (record !== undefined && own !== undefined && own > hold.epoch) {
        record.until = this.#now() + times.holdMs
        continue
      }
      this.#put(node, hold, times)
      // A name that was unknown is asked for again within a second.
      if (record !== undefined && own === undefined) this.#tell(hold.name, node, hold.epoch)
    }
    return Promise.resolve(lost)
  }

  release(node: string, name: string, epoch: number, lost?: LostClaim): Promise<void> {
    const record = this.#records.get(name)
    const own = record?.nodes.get(node)
    if (record === undefined || own === undefined) return Promise.resolve()
    if (own !== epoch && !(lost !== undefined && isBy(lost, record))) return Promise.resolve()
    record.nodes.delete(node)
    if (record.nodes.size === 0) this.#records.delete(name)
    this.#tell(name, '', own)
    return Promise.resolve()
  }

  find(name: string): Promise<readonly Place[]> {
    const record = this.#recordOf(name)
    const isEarly = this.#earlyUntil === undefined || this.#earlyUntil > this.#now()
    if (record === undefined) return Promise.resolve(isEarly ? [{ id: '', url: '' }] : [])
    const ids = [...record.nodes.keys()]
    const isTls = record.isTls === true
    return Promise.resolve(ids.map(id => ({ ...this.#nodeOf(id), ...(isTls && { isTls }) })))
  }

  ports(): Promise<readonly string[]> {
    const names = [...this.#records.keys()].filter(isPortName)
    return Promise.resolve(names.filter(name => this.#recordOf(name) !== undefined))
  }

  leave(node: string): Promise<void> {
    const alive = this.#nodes.get(node)
    if (alive !== undefined) alive.urlUntil = 0
    return Promise.resolve()
  }

  nodes(): Promise<readonly Node[]> {
    return Promise.resolve(
      [...this.#nodes.keys()].map(id => this.#nodeOf(id)).filter(({ url }) => url !== ''),
    )
  }

  secret(fresh: string): Promise<string> {
    this.#secret ||= fresh
    return Promise.resolve(this.#secret)
  }

  close(): Promise<void> {
    return Promise.resolve()
  }

  #nodeOf(id: string): Node {
    const alive = this.#nodes.get(id)
    return { id, url: alive !== undefined && alive.urlUntil > this.#now() ? alive.url : '' }
  }

  #put(
    node: string,
    { name, epoch, proof, isShared, isTls = false }: Hold,
    { holdMs }: DirectoryTimes,
  ): void {
    const record = this.#recordOf(name)
    const nodes = isShared && record !== undefined ? record.nodes : new Map<string, number>()
    nodes.set(node, epoch)
    this.#records.set(name, { epoch, proof, isShared, isTls, nodes, until: this.#now() + holdMs })
  }

  #recordOf(name: string): Record | undefined {
    const record = this.#records.get(name)
    if (record === undefined) return undefined
    const now = this.#now()
    for (const id of [...record.nodes.keys()])
      if ((this.#nodes.get(id)?.leaseUntil ?? 0) <= now) record.nodes.delete(id)
    if (record.nodes.size > 0 && record.until > now) return record
    this.#records.delete(name)
    return undefined
  }

  #tell(name: string, node: string, epoch: number): void {
    for (const listener of this.#listeners) listener.changed(name, node, epoch)
  }
}

/** Whether the claim may have caused the current record. */
function isBy({ proof, isShared }: LostClaim, record: Record): boolean {
  return record.isShared === isShared && (isShared || record.proof === proof)
}
