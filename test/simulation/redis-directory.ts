// The directory as one server of the simulation sees it: src/directories/redis.ts over simulated connections.

import type {
  Beat,
  Directory,
  DirectoryListener,
  DirectoryTables,
  DirectoryTimes,
  Hold,
  LostClaim,
  NameOutcome,
  NameWish,
  Node,
  Place,
  PutOutcome,
  TableEntry,
} from '../../src/directory.ts'
import type { Process } from './process.ts'
import type { Redis } from './redis.ts'
import { RedisConnection } from './redis-connection.ts'

/** What Redis has done for a server. */
export interface RedisWatcher {
  did(what: string): void
  granted(name: string, node: string, epoch: number, isShared: boolean): void
}

export class RedisDirectory implements Directory {
  readonly tables: DirectoryTables
  readonly #commands: RedisConnection
  readonly #changes: RedisConnection
  readonly #watcher: RedisWatcher
  readonly #ready = new Set<() => void>()
  #said: DirectoryListener['changed'] = () => {}
  #wrote: ((table: string, entry: TableEntry, changes: number) => void) | undefined

  constructor(process: Process, redis: Redis, watcher: RedisWatcher) {
    this.#commands = new RedisConnection(process, redis)
    this.#changes = new RedisConnection(process, redis)
    this.#watcher = watcher
    const commands = this.#commands
    this.tables = {
      listen: async heard => {
        this.#wrote = heard
        await this.#subscribe()
        return () => {
          this.#wrote = undefined
        }
      },
      put: (table, entries, maxKeys): Promise<readonly PutOutcome[]> =>
        commands.command(one => one.tables.put(table, entries, maxKeys)),
      read: (table): Promise<readonly TableEntry[]> => commands.command(one => one.tables.read(table)),
      changes: (): Promise<number> => commands.command(one => one.tables.changes()),
    }
    this.#changes.ready = () => {
      // As ioredis: it says that it is ready, and has only asked to be subscribed.
      this.#subscribe().catch(() => {})
      for (const ready of this.#ready) ready()
    }
  }

  async listen(listener: DirectoryListener): Promise<() => void> {
    this.#said = (...change) => listener.changed(...change)
    await this.#subscribe()
    const ready = (): void => listener.reconnected()
    this.#ready.add(ready)
    return () => {
      this.#said = () => {}
      this.#ready.delete(ready)
    }
  }

  /** From its arrival on, what is said comes here. */
  #subscribe(): Promise<void> {
    const changes = this.#changes
    return changes.command(async () => {
      changes.changed = (...change) => changes.say(() => this.#said(...change))
      changes.written = (...change) => changes.say(() => this.#wrote?.(...change))
    })
  }

  beat(node: Node, times: DirectoryTimes, highestEpoch: number): Promise<Beat> {
    if (this.#changes.isReady) this.#changes.command(() => Promise.resolve()).catch(() => {})
    return this.#commands.command(one => one.beat(node, times, highestEpoch))
  }

  claim(node: string, wish: NameWish, times: DirectoryTimes): Promise<NameOutcome> {
    return this.#commands.command(async one => {
      const outcome = await one.claim(node, wish, times)
      const { name } = wish
      this.#watcher.did(`claim ${name}: ${outcome.kind} ${outcome.kind === 'granted' ? outcome.epoch : ''}`)
      if (outcome.kind === 'granted') this.#watcher.granted(name, node, outcome.epoch, wish.isShared)
      return outcome
    })
  }

  restore(node: string, holds: readonly Hold[], times: DirectoryTimes): Promise<readonly string[]> {
    return this.#commands.command(async one => {
      const lost = await one.restore(node, holds, times)
      const said = holds.map(({ name, epoch }) => `${name} ${epoch}`).join(', ')
      this.#watcher.did(`restore ${said}; lost: ${lost.join(', ') || 'none'}`)
      return lost
    })
  }

  release(node: string, name: string, epoch: number, lost?: LostClaim): Promise<void> {
    return this.#commands.command(async one => {
      await one.release(node, name, epoch, lost)
      this.#watcher.did(`release ${name} ${lost === undefined ? epoch : 'of a lost claim'}`)
    })
  }

  find(name: string): Promise<readonly Place[]> {
    return this.#commands.command(one => one.find(name))
  }

  ports(): Promise<readonly string[]> {
    return this.#commands.command(one => one.ports())
  }

  leave(node: string): Promise<void> {
    return this.#commands.command(one => one.leave(node))
  }

  nodes(): Promise<readonly Node[]> {
    return this.#commands.command(one => one.nodes())
  }

  secret(fresh: string): Promise<string> {
    return this.#commands.command(one => one.secret(fresh))
  }

  /** Its program is gone; `isSilent`: with its machine. */
  vanish(isSilent: boolean): void {
    for (const one of [this.#commands, this.#changes]) one.vanish(isSilent)
  }

  close(): Promise<void> {
    for (const one of [this.#commands, this.#changes]) one.close()
    return Promise.resolve()
  }
}
