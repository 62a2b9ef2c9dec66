// Which names have an inbox: stored on the disk of the server to which their client was connected and, in a cluster,
// in a table that all servers have.

import { objectIn } from '../../directory.ts'
import type { Box, InboxStore } from '../../inbox.ts'
import type { Table } from '../../server/contracts/tables.ts'

export class Boxes {
  readonly #store: InboxStore
  readonly #maxAgeMs: number
  #table: Table | undefined

  /** Makes the boxes. `maxAgeMs`: how long a box stays while its client is away. */
  constructor(store: InboxStore, maxAgeMs: number) {
    this.#store = store
    this.#maxAgeMs = maxAgeMs
  }

  /** Shares the boxes with all servers from now on. The latest registration counts. */
  share(table: Table): void {
    this.#table = table
    for (const { seenMs, ...box } of this.#store.boxes())
      table.bring(box.name, textOf(box), seenMs, seenMs + this.#maxAgeMs)
  }

  find(name: string): Box | undefined {
    const table = this.#table
    return table?.knows(name) === true ? boxIn(name, table.get(name)) : this.#store.box(name)
  }

  save(box: Box): void {
    for (const name of this.#store.saveBox(box, Date.now())) this.#table?.end(name)
    this.#table?.set(box.name, textOf(box), Date.now() + this.#maxAgeMs)
  }

  remove(name: string): void {
    this.#store.removeBox(name)
    this.#table?.remove(name)
  }

  /** Lists the boxes of this server's file. */
  own(): readonly Box[] {
    return this.#store.boxes()
  }

  /** Marks boxes whose clients are connected here. */
  touch(boxes: readonly Box[]): void {
    this.#store.touch(
      boxes.map(({ name }) => name),
      Date.now(),
    )
    const table = this.#table
    if (table === undefined) return
    // Each change goes to all servers, so a few within the lifetime of a box are enough.
    const soonMs = Date.now() + this.#maxAgeMs / 2
    const present = new Map(boxes.map(box => [box.name, box]))
    for (const { key, untilMs } of table.all()) {
      const box = present.get(key)
      if (box !== undefined && untilMs < soonMs) this.save(box)
    }
  }
}

function textOf({ owner, paths, status }: Box): string {
  return JSON.stringify({ owner, paths, status })
}

function boxIn(name: string, text: string | undefined): Box | undefined {
  const { owner, paths, status } = objectIn(text) ?? {}
  if (typeof owner !== 'string' || typeof status !== 'number' || !Array.isArray(paths)) return undefined
  return { name, owner, status, paths: paths.filter(path => typeof path === 'string') }
}
