// The streams and waiting bytes of one client's connection, counted for the owner of its token.

import type { Account } from '../../bytes.ts'
import type { StreamBudget } from '../../session/contract.ts'
import type { QuotaOwner } from './quotas.ts'

export class ClientUse implements Account {
  #holder: QuotaOwner
  #streams = 0
  #bytes = 0
  readonly streamBudget: StreamBudget = {
    open: () => {
      const hasRoom = this.#holder.hasRoomFor('streams')
      if (hasRoom) {
        this.#holder.take('streams')
        this.#streams++
      }
      return hasRoom
    },
    close: () => {
      this.#holder.give('streams')
      this.#streams--
    },
  }

  constructor(holder: QuotaOwner) {
    this.#holder = holder
  }

  get holder(): QuotaOwner {
    return this.#holder
  }

  /** Counts `bytes` more that wait for the client; fewer if negative. */
  hold(bytes: number): void {
    this.#bytes += bytes
    this.#holder.hold(bytes)
  }

  get isOver(): boolean {
    return this.#holder.isOver
  }

  /** Moves the counts to another owner, which the token has after a reload. `links` is the number of links of the connection. */
  passTo(next: QuotaOwner, links: number): void {
    this.#holder = this.#holder.passTo(next, { links, streams: this.#streams, bytes: this.#bytes })
  }
}
