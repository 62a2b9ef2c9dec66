// UDP on Bun: Bun.udpSocket behind the contract of datagram-socket.ts, and the public port of a tunnel.
//
// Behaviour of Bun 1.4.5, each observed: a send throws the error of an earlier datagram (ECONNREFUSED), and then
// sends nothing; `sendMany` returns how many were sent before one failed, without saying that it failed; `drain` is
// also called without a reason.

import type { Associate, DatagramSocketHandler } from '../datagram-socket.ts'
import { DatagramQueue, loadQueueControl } from './bun-datagram-queue.ts'
import { endOfRun, loadSendSegments } from './bun-datagram-segments.ts'
import { descriptorOf } from './descriptor.ts'
import { failure } from './gate.ts'

/** A UDP port that any stranger may send to. */
export interface BoundPort {
  readonly port: number
  /** Sends datagrams, like `DatagramSocket.send`, to this address. */
  send(datagrams: readonly Uint8Array[], port: number, address: string): number
  close(): void
}

export interface BindOptions {
  readonly hostname: string
  readonly port: number
  /** Called with a datagram and the address to which a reply can be sent. The receiver may keep the array. */
  received(datagram: Uint8Array, port: number, address: string): void
  /** Called for a datagram that is dropped, because there are too many in this turn of the event loop. */
  dropped(): void
  drained(): void
  failed(error: Error): void
}

type RawBound = Bun.udp.Socket<'uint8array'>
type RawConnected = Bun.udp.ConnectedSocket<'uint8array'>

export const associateBun: Associate = async ({ host, port }, handler) => {
  const control = await loadQueueControl()
  const sendSegments = await loadSendSegments()
  let queue: DatagramQueue | undefined
  const raw = await Bun.udpSocket({
    connect: { hostname: host, port },
    binaryType: 'uint8array',
    socket: {
      data(_socket, datagram) {
        if (queue?.heard() === false) handler.dropped()
        else handler.received(datagram)
      },
      drain: () => handler.drained(),
      error: (first, second) => refused(second ?? first, handler),
    },
  })
  queue = new DatagramQueue(raw, control)
  const fd = descriptorOf(raw)
  let mayTrySegments = true
  const many = (datagrams: readonly Uint8Array[]) => {
    const to = mayTrySegments ? endOfRun(datagrams, 0) : 0
    if (to === 0 || sendSegments === undefined || fd === undefined) return raw.sendMany([...datagrams])
    const refusal = sendSegments(fd, datagrams, 0, to)
    if (refusal === undefined) return to
    if (refusal === 'impossible') mayTrySegments = false
    // Bun will not report it again. The error was about earlier datagrams, so these are sent one by one.
    else if (refusal === 'refused') handler.refused(failure('ECONNREFUSED', 'no socket listens there'))
    return 0
  }
  const one = (datagram: Uint8Array) => raw.send(datagram)
  return {
    send: datagrams => (raw.closed ? datagrams.length : sendAll(datagrams, many, one)),
    close() {
      queue.close()
      closeOnce(raw)
    },
  }
}

/** Binds a public port. Rejects with Bun's error, such as `EADDRINUSE`. */
export async function bindBun(options: BindOptions): Promise<BoundPort> {
  const failed = (error: unknown) => options.failed(error instanceof Error ? error : new Error(String(error)))
  const control = await loadQueueControl()
  let queue: DatagramQueue | undefined
  const raw = await Bun.udpSocket({
    hostname: options.hostname,
    port: options.port,
    binaryType: 'uint8array',
    socket: {
      data(_socket, datagram, port, address) {
        const isInTime = queue?.heard() !== false
        // A visitor at port 0 cannot get a reply.
        if (port === 0) return
        try {
          if (isInTime) options.received(datagram, port, address)
          else options.dropped()
        } catch (error) {
          failed(error)
        }
      },
      drain() {
        try {
          options.drained()
        } catch (error) {
          failed(error)
        }
      },
      // A visitor has gone (ICMP). Its flow ends when no more datagrams come.
      error() {},
    },
  })
  queue = new DatagramQueue(raw, control)
  return {
    port: raw.port,
    send(datagrams, port, address) {
      if (raw.closed) return datagrams.length
      const many = (rest: readonly Uint8Array[]) =>
        raw.sendMany(rest.flatMap(datagram => [datagram, port, address]))
      return sendAll(datagrams, many, datagram => raw.send(datagram, port, address))
    },
    close() {
      queue.close()
      closeOnce(raw)
    },
  }
}

/** Sends until the kernel is full, skipping datagrams that cannot be sent. */
function sendAll(
  datagrams: readonly Uint8Array[],
  many: (datagrams: readonly Uint8Array[]) => number,
  one: (datagram: Uint8Array) => boolean,
): number {
  let sent = 0
  while (sent < datagrams.length) {
    const rest = sent === 0 ? datagrams : datagrams.slice(sent)
    const first = datagrams[sent]
    if (first === undefined) break
    if (rest.length > 1) {
      const count = sentOf(() => many(rest))
      sent += count
      if (count > 0) continue
    }
    // A single send shows whether the kernel is full or this datagram cannot be sent.
    const isSent = isSentOf(() => one(first))
    if (isSent === false) break
    sent++
  }
  return sent
}

function sentOf(many: () => number): number {
  try {
    return many()
  } catch {
    // The error was about an earlier datagram. The next send shows the result of this one.
    return 0
  }
}

/**
 * Whether a datagram was sent. `undefined` if it cannot be sent. Tries twice, because the first error may be about an
 * earlier datagram.
 */
function isSentOf(one: () => boolean): boolean | undefined {
  for (let attempt = 0; attempt < 2; attempt++) {
    try {
      return one()
    } catch {
      // Too long, no route, or no socket there: the datagram is lost, as UDP allows. Errors worth reporting arrive as
      // an `error` event.
    }
  }
  return undefined
}

/** Reports an error. Bun passes it in place of the socket, whatever its types say. */
function refused(error: object, handler: DatagramSocketHandler): void {
  if (error instanceof Error && 'code' in error && error.code === 'ECONNREFUSED') handler.refused(error)
}

function closeOnce(raw: RawBound | RawConnected): void {
  if (!raw.closed) raw.close()
}
