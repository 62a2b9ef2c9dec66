// Connects to the server and agrees with it on a wire; either wire uses the same connection.

import { TunnelError } from '../../errors.ts'
import { STREAMS_SUBPROTOCOL, TEXT_SUBPROTOCOL } from '../../wire/frame.ts'
import type { TextConnecting, TextWire } from '../contracts/wire.ts'
import { atEachServer, type ClientSettings } from '../settings.ts'
import type { Connect, Connection } from './connection.ts'
import { dialCarrier } from './dial.ts'
import { StreamsConnection } from './streams-connection.ts'

/**
 * Uses the streams wire if the server negotiates it, and text messages if the server negotiates nothing or the
 * settings ask for them.
 */
export function connector(settings: ClientSettings, textWire: TextWire | undefined): Connect {
  const protocols = protocolsOf(settings)
  return async (events, signal) => {
    let connection: Connection | undefined
    let text: TextConnecting | undefined
    await dialCarrier(settings, signal, {
      protocols,
      maxTextBytes: textWire?.maxMessageBytes,
      text: message => text?.take(message),
      accept(carrier, protocol) {
        if (protocol === STREAMS_SUBPROTOCOL) {
          const streams = new StreamsConnection(settings, events, carrier)
          connection = streams
          return streams.carrierHandler
        }
        if (settings.wire === 'streams') return undefined
        text = textWire?.connect(settings, events, carrier)
        return text?.carrierHandler
      },
    })
    connection ??= await text?.ready
    if (connection !== undefined) return connection
    throw new TunnelError('SERVER_REFUSED', 'The server does not speak the streams wire.')
  }
}

/** Returns the subprotocols to offer. Existing servers repeat the first one: see TEXT_SUBPROTOCOL. */
export function protocolsOf({ wire }: ClientSettings): readonly string[] {
  return wire === 'json' ? [] : [TEXT_SUBPROTOCOL, STREAMS_SUBPROTOCOL]
}

export class Servers {
  readonly #connects: readonly Connect[]
  #at = 0

  constructor(settings: ClientSettings, textWire: TextWire | undefined) {
    this.#connects = atEachServer(settings).map(one => connector(one, textWire))
  }

  /**
   * Connects to the first server that can be reached, beginning with the current one. Rejects with the error of the last attempt.
   */
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

  /** Whether there is more than one server. */
  get areSeveral(): boolean {
    return this.#connects.length > 1
  }

  /** Makes the next server the current one, because this one was lost or leaves. */
  goOn(): void {
    this.#at = (this.#at + 1) % this.#connects.length
  }

  get #current(): Connect {
    return this.#connects[this.#at]!
  }
}
