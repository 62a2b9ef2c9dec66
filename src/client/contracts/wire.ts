// Contract between a client and a wire of text messages.

import type { CarrierHandler } from '../../session/carrier.ts'
import type { TextCarrier } from '../carriers/carrier.ts'
import type { Connection, ConnectionEvents } from '../carriers/connection.ts'
import type { ClientSettings } from '../settings.ts'

export interface TextWire {
  readonly maxMessageBytes: number
  connect(settings: ClientSettings, events: ConnectionEvents, carrier: TextCarrier): TextConnecting
}

/** A connection whose code may still have to be loaded. */
export interface TextConnecting {
  /** Resolves with the connection. Rejects if the carrier is lost first. */
  readonly ready: Promise<Connection>
  readonly carrierHandler: CarrierHandler
  take(text: string): void
}
