// The ports of this machine's loopback where programs connect to a private service.

import { copyOf } from '../../../bytes.ts'
import { turns } from '../../../client/carriers/streams-connection.ts'
import { eventLoop } from '../../../event-loop.ts'
import { Flow } from '../../../flow/flow.ts'
import { FlowShare } from '../../../flow/share.ts'
import type { Socket, SocketHandler } from '../../../socket.ts'
import type { LocalConnection, LocalDoor } from './local-end.ts'
import { acceptLocally, bindLocally } from './loopback.ts'

/** The silence in milliseconds after which the system checks whether the other side is there, as for raw visitors. */
const KEEP_ALIVE_MS = 60_000
/** The maximum number of flows. Datagrams of further addresses and ports are lost. */
const MAX_FLOWS = 1_024
/** The maximum number of datagrams of a flow that wait for its stream. Further ones are lost. */
const MAX_WAITING_DATAGRAMS = 16

/** Takes connections of programs of this machine. */
export const tcpDoor: LocalDoor = (port, came, left) =>
  acceptLocally(port, socket => {
    const relay = new Relay()
    const connection: LocalConnection = {
      socket,
      take(handler) {
        relay.use(handler)
        socket.resume()
      },
    }
    relay.gone = () => left(connection)
    socket.keepAlive?.(KEEP_ALIVE_MS)
    socket.pause()
    came(connection)
    return relay
  })

/** Passes the events of a socket to a handler that is set later. Until then, reading is paused. */
class Relay implements SocketHandler {
  gone = (): void => {}
  #handler: SocketHandler | undefined
  readonly #early: Uint8Array[] = []
  #hasEnded = false
  #closed: { readonly error: Error | undefined } | undefined

  use(handler: SocketHandler): void {
    this.#handler = handler
    for (const bytes of this.#early) handler.received(bytes)
    if (this.#hasEnded) handler.ended()
    if (this.#closed !== undefined) handler.closed(this.#closed.error)
  }

  received(bytes: Uint8Array): void {
    if (this.#handler !== undefined) this.#handler.received(bytes)
    // Read before the pause: one piece.
    else this.#early.push(copyOf(bytes))
  }

  drained(): void {
    this.#handler?.drained()
  }

  spliceable(): void {
    this.#handler?.spliceable?.()
  }

  ended(): void {
    this.#hasEnded = true
    this.#handler?.ended()
  }

  closed(error?: Error): void {
    this.#closed = { error }
    this.gone()
    this.#handler?.closed(error)
  }
}

/**
 * Takes datagrams of programs of this machine, with a flow for each address and port. A flow ends after
 * `idleTimeoutMs` of silence.
 */
export function udpDoor(idleTimeoutMs: number): LocalDoor {
  return async (port, came, left) => {
    const share = new FlowShare({ scheduler: eventLoop, turns, idleTimeoutMs, dropped() {} })
    const flows = new Map<string, LocalFlow>()
    const bound = await bindLocally({
      port,
      received(datagram, fromPort, address) {
        const key = `${address} ${fromPort}`
        const known = flows.get(key)
        if (known !== undefined) return known.arrived(datagram)
        if (flows.size >= MAX_FLOWS) return
        const flow: LocalFlow = new LocalFlow(
          address,
          share,
          one => bound.send(one, fromPort, address),
          () => {
            flows.delete(key)
            left(flow)
          },
        )
        flows.set(key, flow)
        flow.arrived(datagram)
        came(flow)
      },
      dropped() {},
      drained() {
        for (const flow of [...flows.values()]) flow.drained()
      },
      failed() {},
    })
    return {
      port: bound.port,
      close() {
        bound.close()
        for (const { socket } of [...flows.values()]) socket.terminate()
      },
    }
  }
}

/** The datagrams of one program. The first ones wait for the stream. */
class LocalFlow implements LocalConnection {
  readonly socket: Socket
  readonly #relay = new Relay()
  readonly #flow: Flow
  #early: Uint8Array[] | undefined = []

  constructor(
    address: string,
    share: FlowShare,
    send: (datagrams: readonly Uint8Array[]) => number,
    closed: () => void,
  ) {
    this.#flow = new Flow(address, this.#relay, share, send, closed)
    this.socket = this.#flow
  }

  arrived(datagram: Uint8Array): void {
    if (this.#early === undefined) this.#flow.arrived(datagram)
    else if (this.#early.length < MAX_WAITING_DATAGRAMS) this.#early.push(datagram)
  }

  drained(): void {
    this.#flow.drained()
  }

  take(handler: SocketHandler): void {
    this.#relay.use(handler)
    const early = this.#early ?? []
    this.#early = undefined
    for (const datagram of early) this.#flow.arrived(datagram)
  }
}
