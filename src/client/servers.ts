// The servers that a client may connect to, one after the other: those of a cluster share their names.

import { connector } from './connect.ts'
import type { Connect } from './connection.ts'
import type { TextWire } from './contracts/wire.ts'
import { atEachServer, type ClientSettings } from './settings.ts'

export class Servers {
  readonly #connects: readonly Connect[]
  #at = 0

  constructor(settings: ClientSettings, textWire: TextWire | undefined) {
    this.#connects = atEachServer(settings).map(one => connector(one, textWire))
  }

  /** Connects to the first that can be reached, beginning with the one whose turn it is. Rejects as the last one did. */
  connect: Connect = async (events, signal) => {
    for (let left = this.#connects.length - 1; ; left--) {
      try {
        return await this.#current(events, signal)
      } catch (error) {
        this.goOn()
        if (left === 0 || signal.aborted) throw error
      }
    }
  }

  /** There is another one to go to. */
  get areSeveral(): boolean {
    return this.#connects.length > 1
  }

  /** The next one has its turn: the connection to this one is lost, or it leaves. */
  goOn(): void {
    this.#at = (this.#at + 1) % this.#connects.length
  }

  get #current(): Connect {
    return this.#connects[this.#at]!
  }
}
