// An origin that speaks UDP: each flow has a socket of its own, so that the service can distinguish visitors.

import type { Associate, DatagramSocket } from '../../datagram-socket.ts'
import { TunnelError } from '../../errors.ts'
import { eventLoop } from '../../event-loop.ts'
import { Flow } from '../../flow/flow.ts'
import { FlowShare } from '../../flow/share.ts'
import type { Socket, SocketHandler } from '../../socket.ts'
import { turns } from '../carriers/streams-connection.ts'
import type { Origin } from './origin.ts'

export interface DatagramOriginOptions {
  readonly host: string
  readonly port: number
  /** The time in milliseconds without datagrams in either direction after which a flow ends. */
  readonly idleTimeoutMs: number
  readonly associate: Associate
  /** Called when the service does not listen: once, until it responds again. */
  failed(error: TunnelError): void
}

export class DatagramOrigin implements Origin {
  readonly label: string
  readonly url: string
  readonly #options: DatagramOriginOptions
  readonly #share: FlowShare
  #isRefusing = false
  droppedDatagrams = 0

  constructor(options: DatagramOriginOptions) {
    const { host, port, idleTimeoutMs } = options
    this.#options = options
    this.label = `${host.includes(':') ? `[${host}]` : host}:${port}`
    this.url = `udp://${this.label}`
    const dropped = (count: number) => {
      this.droppedDatagrams += count
    }
    this.#share = new FlowShare({ scheduler: eventLoop, turns, idleTimeoutMs, dropped })
  }

  async connect(handler: SocketHandler): Promise<Socket> {
    const { host, port, associate } = this.#options
    let flow: Flow | undefined
    let socket: DatagramSocket
    try {
      socket = await associate(
        { host, port },
        {
          received: datagram => {
            this.#isRefusing = false
            flow?.arrived(datagram)
          },
          dropped: () => {
            this.droppedDatagrams++
          },
          drained: () => flow?.drained(),
          refused: cause => this.#refused(cause),
        },
      )
    } catch (cause) {
      throw new TunnelError('ORIGIN_UNREACHABLE', `Cannot send to ${this.label}.`, { cause })
    }
    const end = () => socket.close()
    flow = new Flow('', handler, this.#share, datagrams => socket.send(datagrams), end)
    return flow
  }

  /** Reports that the service does not listen. The flow continues, so a service that starts later gets later datagrams. */
  #refused(cause: Error): void {
    if (this.#isRefusing) return
    this.#isRefusing = true
    this.#options.failed(
      new TunnelError('ORIGIN_REFUSED', `Nothing listens on UDP ${this.label}.`, { cause }),
    )
  }
}
