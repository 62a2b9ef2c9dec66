// The Redis of the simulation: the real state machine (src/directories/memory.ts, which test/cluster/redis.test.ts compares with the
// scripts), behind a network. It can be slow, frozen, gone, and back with or without its data.

import { MemoryDirectory } from '../../src/directories/memory.ts'
import type { DirectoryListener, TableEntry } from '../../src/directory.ts'
import type { Network } from './network.ts'
import { type Machine, Process } from './process.ts'
import type { Timeline } from './timeline.ts'

type Said = (...change: Parameters<DirectoryListener['changed']>) => void
type Written = (table: string, entry: TableEntry, changes: number) => void

/** A connection to it, as it sees it. */
export interface RedisClient {
  /** It has subscribed to what is said of names, and of tables. */
  readonly changed: Said | undefined
  readonly written: Written | undefined
  /** The program is gone. */
  closed(): void
}

export class Redis {
  readonly machine: Machine
  readonly network: Network
  readonly timeline: Timeline
  process: Process | undefined
  readonly clients: Set<RedisClient> = new Set()
  /** How long each command takes, in ms. */
  costMs = 0.02
  #directory!: MemoryDirectory // set by `start`
  #waiting: { readonly client: RedisClient; run(): void }[] = []

  constructor(machine: Machine, network: Network, timeline: Timeline) {
    this.machine = machine
    this.network = network
    this.timeline = timeline
    this.start(true)
  }

  start(isEmpty: boolean): void {
    this.machine.isOff = false
    this.process = new Process('redis', this.machine, this.timeline)
    if (!isEmpty) return
    this.#directory = new MemoryDirectory(() => this.timeline.now)
    void this.#directory.listen({
      changed: (...change) => {
        for (const client of this.clients) client.changed?.(...change)
      },
      reconnected() {},
    })
    void this.#directory.tables.listen((...change) => {
      for (const client of this.clients) client.written?.(...change)
    })
  }

  kill(): void {
    this.process?.kill()
    this.process = undefined
    for (const client of [...this.clients]) client.closed()
    this.clients.clear()
    this.#waiting = []
  }

  /** One command after the other, in the order of their arrival; those of connections that are gone are not read. */
  execute<Result>(
    client: RedisClient,
    run: (directory: MemoryDirectory) => Promise<Result>,
    done: (result: Result) => void,
  ): void {
    if (this.process === undefined || !this.clients.has(client)) return
    this.#waiting.push({
      client,
      run: () => void run(this.#directory).then(done),
    })
    if (this.#waiting.length === 1) this.#next()
  }

  #next(): void {
    const { process } = this
    if (process === undefined) return
    while (this.#waiting[0] !== undefined && !this.clients.has(this.#waiting[0].client)) this.#waiting.shift()
    if (this.#waiting.length === 0) return
    this.timeline.after(this.costMs, process, () => {
      const one = this.#waiting.shift()
      // What it began to read it executes, also where nobody waits for the answer any more.
      one?.run()
      this.#next()
    })
  }
}
