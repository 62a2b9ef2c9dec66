// The counts of one client's connection at the owner of its token: streams, and bytes that wait.

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

  /** Charges for `bytes` more that wait for the client; negative: fewer. */
  hold(bytes: number): void {
    this.#bytes += bytes
    this.#holder.hold(bytes)
  }

  get isOver(): boolean {
    return this.#holder.isOver
  }

  /** The token means another holder after a reload. `links`: those that the connection has. */
  passTo(next: QuotaOwner, links: number): void {
    this.#holder = this.#holder.passTo(next, { links, streams: this.#streams, bytes: this.#bytes })
  }
}
