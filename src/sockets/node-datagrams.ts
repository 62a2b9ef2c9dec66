// UDP on Node: node:dgram behind the contract of datagram-socket.ts.
//
// A dgram socket never refuses a datagram: it queues it, and still reads the caller's array. So each is copied, and
// the queue is limited here.

import { createSocket, type Socket } from 'node:dgram'
import { isIPv6 } from 'node:net'
import { copyOf } from '../bytes.ts'
import {
  type Associate,
  type DatagramSocket,
  type DatagramSocketHandler,
  RECEIVE_BUFFER_BYTES,
} from '../datagram-socket.ts'

/** The maximum number of bytes that may wait for the kernel. */
const MAX_QUEUED_BYTES = 262_144

export const associateNode: Associate = ({ host, port }, handler) =>
  new Promise((resolve, reject) => {
    const socket = createSocket(isIPv6(host) ? 'udp6' : 'udp4')
    socket.once('error', reject)
    socket.connect(port, host, () => {
      socket.off('error', reject)
      resolve(new Connected(socket, handler))
    })
  })

class Connected implements DatagramSocket {
  readonly #socket: Socket
  readonly #handler: DatagramSocketHandler
  #isFull = false
  #isClosed = false

  constructor(socket: Socket, handler: DatagramSocketHandler) {
    this.#socket = socket
    this.#handler = handler
    try {
      socket.setRecvBufferSize(RECEIVE_BUFFER_BYTES)
    } catch {
      // The system's default will do.
    }
    socket.on('message', datagram => handler.received(datagram))
    socket.on('error', error => {
      if (isRefusal(error)) handler.refused(error)
    })
  }

  send(datagrams: readonly Uint8Array[]): number {
    if (this.#isClosed) return datagrams.length
    let sent = 0
    for (const datagram of datagrams) {
      if (this.#socket.getSendQueueSize() > MAX_QUEUED_BYTES) {
        this.#isFull = true
        break
      }
      this.#sendOne(copyOf(datagram))
      sent++
    }
    return sent
  }

  /**
   * Sends one datagram. The error that no socket listened comes with the next datagram, which is not sent then, so it
   * gets a second attempt.
   */
  #sendOne(datagram: Uint8Array, isSecondTry = false): void {
    this.#socket.send(datagram, error => {
      if (this.#isClosed) return
      if (error !== null && isRefusal(error)) {
        this.#handler.refused(error)
        if (!isSecondTry) return this.#sendOne(datagram, true)
      }
      if (!this.#isFull || this.#socket.getSendQueueSize() > 0) return
      this.#isFull = false
      this.#handler.drained()
    })
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#socket.close()
  }
}

function isRefusal(error: Error): boolean {
  return 'code' in error && error.code === 'ECONNREFUSED'
}
