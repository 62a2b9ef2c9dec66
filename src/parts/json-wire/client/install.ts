// The JSON wire at the client, for servers with no other wire. Most clients never load its code.

import type { TextCarrier } from '../../../client/carriers/carrier.ts'
import type { ConnectionEvents } from '../../../client/carriers/connection.ts'
import type { Install } from '../../../client/contracts/part.ts'
import type { TextConnecting } from '../../../client/contracts/wire.ts'
import type { ClientSettings } from '../../../client/settings.ts'
import { TunnelError } from '../../../errors.ts'
import type { CarrierHandler } from '../../../session/carrier.ts'
import type { JsonConnection } from './connection.ts'

/** The maximum size of a message in either direction. With a larger one, existing servers close the connection. */
export const MAX_MESSAGE_BYTES = 67_108_864
/** The number of messages from a server before it was asked anything. An honest one sends a greeting. */
const MAX_EARLY_MESSAGES = 16

class Connecting implements TextConnecting {
  readonly ready: Promise<JsonConnection>
  readonly carrierHandler: CarrierHandler = {
    heard: () => this.#connection?.heard(),
    received() {},
    drained() {},
    closed: error => {
      this.#lost ??=
        error instanceof TunnelError ? error : new TunnelError('CARRIER_LOST', undefined, { cause: error })
      this.#connection?.carrierHandler.closed(error)
    },
  }
  readonly #carrier: TextCarrier
  #connection: JsonConnection | undefined
  readonly #early: string[] = []
  #lost: TunnelError | undefined

  constructor(settings: ClientSettings, events: ConnectionEvents, carrier: TextCarrier) {
    this.#carrier = carrier
    this.ready = this.#load(settings, events)
    // The error of a dial that fails later is ignored.
    this.ready.catch(() => {})
  }

  async #load(settings: ClientSettings, events: ConnectionEvents): Promise<JsonConnection> {
    const { JsonConnection } = await import('./connection.ts')
    if (this.#lost !== undefined) throw this.#lost
    const connection = new JsonConnection(settings, events, this.#carrier)
    this.#connection = connection
    for (const text of this.#early.splice(0)) connection.take(text)
    return connection
  }

  take(text: string): void {
    if (this.#connection !== undefined) this.#connection.take(text)
    else if (this.#early.push(text) > MAX_EARLY_MESSAGES) this.#carrier.terminate()
  }
}

export const installJsonWire: Install = () => ({
  textWire: {
    maxMessageBytes: MAX_MESSAGE_BYTES,
    connect: (settings, events, carrier) => new Connecting(settings, events, carrier),
  },
})
