// Servers of the version before challenges. Their proof is the same for each connection, so a reader on the way can show it again:
// it is taken only while such a server is in the cluster, and as long afterwards as it may finish what it has.

import type { Node } from '../../directory.ts'
import { asksForNumbers } from './peer-wire.ts'

export class OlderServers {
  readonly #graceMs: () => number
  /** On the clock of `performance.now()`. */
  #until = Number.NEGATIVE_INFINITY

  constructor(graceMs: () => number) {
    this.#graceMs = graceMs
  }

  /** The directory has listed the servers that live. */
  saw(nodes: readonly Node[]): void {
    if (nodes.some(({ id }) => !asksForNumbers(id))) this.#until = performance.now() + this.#graceMs()
  }

  get areAround(): boolean {
    return performance.now() < this.#until
  }
}
