// Dials the server and settles which wire to speak, on one connection for either.

import { TunnelError } from '../../errors.ts'
import { STREAMS_SUBPROTOCOL, TEXT_SUBPROTOCOL } from '../../wire/frame.ts'
import type { TextConnecting, TextWire } from '../contracts/wire.ts'
import { atEachServer, type ClientSettings } from '../settings.ts'
import type { Connect, Connection } from './connection.ts'
import { dialCarrier } from './dial.ts'
import { StreamsConnection } from './streams-connection.ts'

/** Streams where the server negotiates them; text messages when it negotiates nothing, or when they are forced. */
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

/** Returns the protocols to offer to the server. Existing servers repeat the first: see TEXT_SUBPROTOCOL. */
export function protocolsOf({ wire }: ClientSettings): readonly string[] {
  return wire === 'json' ? [] : [TEXT_SUBPROTOCOL, STREAMS_SUBPROTOCOL]
}

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

  /** Whether there is another server to go to. */
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
