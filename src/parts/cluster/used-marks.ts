// Marks of links that were used and sessions that visitors have ended: set at one server of the cluster, and known to all.

import { createHash } from 'node:crypto'
import type { UsedMarks } from '../../plugin.ts'
import type { SharedTable } from './shared-table.ts'

export class SharedMarks implements UsedMarks {
  readonly #used: SharedTable
  readonly #ended: SharedTable

  /** Makes the marks of two tables, so that visitors who sign in and out all day do not use up the room of links. */
  constructor(used: SharedTable, ended: SharedTable) {
    this.#used = used
    this.#ended = ended
  }

  has(id: string): boolean {
    return this.#used.get(keyOf(id)) !== undefined
  }

  async take(id: string, untilMs: number, owner = ''): Promise<boolean> {
    const mark = markOf(owner)
    return this.#used.hasRoomFor(mark) && this.#used.take(keyOf(id), untilMs, mark)
  }

  end(id: string, untilMs: number, owner = ''): void {
    const mark = markOf(owner)
    if (this.#ended.hasRoomFor(mark)) this.#ended.set(keyOf(id), mark, untilMs)
  }

  hasEnded(id: string): boolean {
    return this.#ended.size > 0 && this.#ended.get(keyOf(id)) !== undefined
  }

  onEnd(changed: () => void): () => void {
    return this.#ended.onChange(changed)
  }
}

/** Returns the key of an id, which clients can choose, in any length. */
function keyOf(id: string): string {
  return createHash('sha256').update(id).digest('base64url')
}

/** Returns the prefix of the entries of one owner. */
function markOf(owner: string): string {
  return keyOf(owner).slice(0, 8)
}
