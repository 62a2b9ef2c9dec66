// Contract between a client and a wire of text messages, besides that of streams.

import type { CarrierHandler } from '../../session/carrier.ts'
import type { TextCarrier } from '../carrier.ts'
import type { Connection, ConnectionEvents } from '../connection.ts'
import type { ClientSettings } from '../settings.ts'

export interface TextWire {
  /** Longest message to take, bytes. */
  readonly maxMessageBytes: number
  connect(settings: ClientSettings, events: ConnectionEvents, carrier: TextCarrier): TextConnection
}

export interface TextConnection extends Connection {
  /** Where the carrier's events go. */
  readonly carrierHandler: CarrierHandler
  /** A text message arrived. */
  take(text: string): void
  /** Bytes arrived, of whatever. */
  heard(): void
}
