// What works once, such as a link: used at one server of the cluster, it is used at all.

import { createHash } from 'node:crypto'
import type { UsedMarks } from '../../plugin.ts'
import type { SharedTable } from './shared-table.ts'

export class SharedMarks implements UsedMarks {
  readonly #table: SharedTable

  constructor(table: SharedTable) {
    this.#table = table
  }

  has(id: string): boolean {
    return this.#table.get(keyOf(id)) !== undefined
  }

  take(id: string, untilMs: number): Promise<boolean> {
    return this.#table.take(keyOf(id), untilMs)
  }
}

/** Clients make ids up, of any length. */
function keyOf(id: string): string {
  return createHash('sha256').update(id).digest('base64url')
}
