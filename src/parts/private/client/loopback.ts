// Ports of the loopback of this machine, for large transfers: connections and datagrams, on Bun and Node.

import { createSocket } from 'node:dgram'
import { copyOf } from '../../../bytes.ts'
import type { Socket, SocketHandler } from '../../../socket.ts'
import type { BindOptions, BoundPort } from '../../../sockets/bun-datagrams.ts'
import { type LocalListening, listen, onLoopback } from '../../../sockets/loopback.ts'

/** Node queues datagrams without a limit: the maximum number of bytes that may wait for the kernel. */
const MAX_QUEUED_BYTES = 262_144

/** Listens on 127.0.0.1 and, if the machine has it, on ::1, on the same port; 0: any free one. */
export async function acceptLocally(
  port: number,
  accept: (socket: Socket) => SocketHandler,
): Promise<LocalListening> {
  if (!('Bun' in globalThis)) {
    const { acceptNode } = await import('../../../sockets/node.ts')
    return onLoopback(port, (host, one) => listen(host, one, raw => acceptNode(raw, accept)))
  }
  const { listenBun } = await import('../../../sockets/bun.ts')
  return onLoopback(port, async (hostname, one) => {
    const listening = listenBun({ hostname, port: one, accept })
    return { port: listening.port, close: () => listening.stop(true) }
  })
}

/** Binds a UDP port of 127.0.0.1. Rejects with the system's error. */
export const bindLocally = async (options: Omit<BindOptions, 'hostname'>): Promise<BoundPort> => {
  const bind = 'Bun' in globalThis ? (await import('../../../sockets/bun-datagrams.ts')).bindBun : bindNode
  return bind({ ...options, hostname: '127.0.0.1' })
}

/** Binds a port of this machine only. Rejects with Node's error, such as `EADDRINUSE`. */
function bindNode(options: BindOptions): Promise<BoundPort> {
  const { hostname, port } = options
  const socket = createSocket('udp4')
  let isFull = false
  let isClosed = false
  const sent = () => {
    if (!isFull || isClosed || socket.getSendQueueSize() > 0) return
    isFull = false
    options.drained()
  }
  return new Promise((resolve, reject) => {
    socket.once('error', reject)
    socket.bind({ address: hostname, port, exclusive: true }, () => {
      socket.off('error', reject).on('error', () => {})
      socket.on('message', (datagram, from) => options.received(datagram, from.port, from.address))
      resolve({
        port: socket.address().port,
        send(datagrams, toPort, address) {
          for (const [index, datagram] of datagrams.entries()) {
            if (isClosed) return datagrams.length
            isFull = socket.getSendQueueSize() > MAX_QUEUED_BYTES
            if (isFull) return index
            socket.send(copyOf(datagram), toPort, address, sent)
          }
          return datagrams.length
        },
        close() {
          if (!isClosed) socket.close()
          isClosed = true
        },
      })
    })
  })
}
