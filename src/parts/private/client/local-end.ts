// The connecting end of a private service: a port of the loopback whose connections go to the service. It acts as the
// origin of a tunnel without visitors: the client asks the server for a stream for each connection, and the streams
// get the connections in order.

import type { Origin } from '../../../client/origins/origin.ts'
import type { TunnelSettings } from '../../../client/tunnels/tunnel-settings.ts'
import { ERRORS, isErrorCode, TunnelError } from '../../../errors.ts'
import type { Socket, SocketHandler } from '../../../socket.ts'
import { MAX_DIALS } from '../../../wire/control.ts'

/** The maximum number of connections that wait for their stream. Further ones are cut. */
const MAX_WAITING = 256
/** The time in milliseconds that a connection waits for its stream, while this client or the service's client is away. */
const WAIT_MS = 10_000
/** The shortest time in milliseconds between requests for streams, because the server limits messages. */
const ASK_MS = 5

/** A connection, or a flow of datagrams, at the port. */
export interface LocalConnection {
  readonly socket: Socket
  take(handler: SocketHandler): void
}

/** Listens for local connections. Returns the function that stops it. Rejects with the system's error. */
export type LocalDoor = (
  port: number,
  came: (connection: LocalConnection) => void,
  left: (connection: LocalConnection) => void,
) => Promise<{ readonly port: number; close(): void }>

export class LocalEnd implements Origin {
  readonly label: string
  readonly #name: string
  readonly #scheme: 'tcp' | 'udp'
  readonly #door: LocalDoor
  readonly #failed: (error: TunnelError) => void
  #port: number
  #listening: Promise<{ readonly port: number; close(): void }> | undefined
  /** The connections that wait for their stream, with the timers of their waits. */
  readonly #waiting = new Map<LocalConnection, ReturnType<typeof setTimeout>>()
  #dial: ((count: number) => void) | undefined
  /** The number of connections for which no stream was requested yet. */
  #unasked = 0
  #asking: ReturnType<typeof setTimeout> | undefined

  /** Makes the end. `name`: such as `tcp:db`. `failed` is called with the reason if a connection did not reach the service. */
  constructor(name: string, port: number, door: LocalDoor, failed: (error: TunnelError) => void) {
    this.#name = name
    this.#scheme = name.startsWith('udp:') ? 'udp' : 'tcp'
    this.label = `private service ${name.replace(/^tcp:/, '')}`
    this.#port = port
    this.#door = door
    this.#failed = failed
  }

  get url(): string {
    return `${this.#scheme}://localhost:${this.#port}`
  }

  settingsWith(token: string | undefined): TunnelSettings {
    return {
      kind: this.#scheme,
      registersAs: 'connect',
      name: this.#name,
      isExact: true,
      port: undefined,
      token,
      origin: this,
      proxyProtocol: undefined,
      routes: [],
      isWildcard: false,
      pool: undefined,
      health: undefined,
      useDial: dial => {
        this.#dial = dial
      },
    }
  }

  /** Listens. Rejects with `PORT_IN_USE`. When it listens again, the port stays the same. */
  async listen(): Promise<void> {
    this.#listening ??= this.#door(
      this.#port,
      connection => this.#came(connection),
      connection => this.#left(connection),
    )
    try {
      this.#port = (await this.#listening).port
    } catch (cause) {
      this.#listening = undefined
      throw new TunnelError('PORT_IN_USE', `Cannot listen on port ${this.#port} of this machine.`, { cause })
    }
  }

  /** Stops listening, and cuts the connections that wait. */
  close(): void {
    void this.#listening?.then(listening => listening.close()).catch(() => {})
    this.#listening = undefined
    for (const connection of [...this.#waiting.keys()]) {
      this.#left(connection)
      connection.socket.terminate()
    }
  }

  /** Called when the client is connected: requests streams for the waiting connections. */
  ask(): void {
    this.#unasked = this.#waiting.size
    if (this.#asking === undefined) this.#askNow()
  }

  /** Called when the server has opened a stream: the connection that has waited longest gets it. */
  async connect(handler: SocketHandler): Promise<Socket> {
    const [connection] = this.#waiting.keys()
    if (connection === undefined) throw new TunnelError('CANCELLED')
    this.#left(connection)
    const { socket } = connection
    const terminate = socket.terminate.bind(socket)
    socket.terminate = code => {
      this.#cut(code)
      terminate()
    }
    connection.take(handler)
    return socket
  }

  #came(connection: LocalConnection): void {
    if (this.#waiting.size >= MAX_WAITING) return connection.socket.terminate()
    const timer = setTimeout(() => {
      this.#left(connection)
      connection.socket.terminate()
      this.#cut('SERVER_UNREACHABLE')
    }, WAIT_MS)
    this.#waiting.set(connection, timer)
    this.#unasked++
    if (this.#asking === undefined) this.#askNow()
  }

  #left(connection: LocalConnection): void {
    clearTimeout(this.#waiting.get(connection))
    this.#waiting.delete(connection)
  }

  #askNow(): void {
    this.#asking = undefined
    const count = Math.min(this.#unasked, MAX_DIALS)
    if (count === 0) return
    this.#unasked -= count
    this.#dial?.(count)
    this.#asking = setTimeout(() => this.#askNow(), ASK_MS)
  }

  /** Reports why a connection did not reach the service. A side that leaves is not reported. */
  #cut(code: string | undefined): void {
    if (!isErrorCode(code) || code === 'CANCELLED' || code === 'CARRIER_LOST' || code === 'ORIGIN_CLOSED')
      return
    const { fault, meaning } = ERRORS[code]
    const isThere = fault === 'origin' || fault === 'client'
    const action = isThere
      ? 'Start it on the machine that shares it, or ask the user of that machine.'
      : undefined
    this.#failed(new TunnelError(code, `${this.label}: ${meaning}`, { action }))
  }
}
