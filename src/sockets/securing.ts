// Begins TLS on accepted connections of one listener whose first bytes were read without it.

import type { ServerHandshake } from '../socket.ts'
import { Connection, type Owner } from './bun-connection.ts'
import { SECURED_EVENTS } from './bun-events.ts'
import { beginTls } from './bun-tls.ts'

export class Securing {
  readonly #failed: Owner['failed']
  /** The connections with TLS, which the listener does not close itself. */
  readonly #all = new Set<Connection>()

  constructor(failed: Owner['failed']) {
    this.#failed = failed
  }

  /** Begins TLS on a connection; see `Socket.secure`. */
  secure(below: Connection, first: Uint8Array, handshake: ServerHandshake): void {
    const { protocol } = handshake
    const secured = new Connection(undefined, undefined, false, {
      context: undefined,
      admit: undefined,
      chooseProtocol: protocol === undefined ? undefined : () => protocol,
      accept: socket => handshake.accept(socket),
      failed: this.#failed,
      isCutting: false,
      securing: undefined,
    })
    secured.clientCa = handshake.clientCa
    // The listener admitted the connection below, which gives its place back.
    secured.pass = { left: () => this.#all.delete(secured) }
    this.#all.add(secured)
    below.resume()
    below.isPlain = false
    below.handler = undefined
    try {
      beginTls(below.raw, first, handshake, secured, SECURED_EVENTS)
    } catch (error) {
      // Thrown in a promise of the caller, the error would end the process.
      this.#all.delete(secured)
      below.terminate()
      this.#failed(error instanceof Error ? error : new Error(String(error)))
    }
  }

  cut(): void {
    for (const connection of this.#all) connection.terminate()
  }
}
