// UDP for tests: an origin that answers, and visitors that remember what they got.

import { createSocket, type Socket } from 'node:dgram'

export interface DatagramApp extends AsyncDisposable {
  readonly port: number
  readonly socket: Socket
  /** Datagrams so far, the newest last. */
  readonly seen: { readonly bytes: Uint8Array; readonly port: number }[]
}

/** Listens on UDP and answers each datagram with what `answer` makes of it; `undefined`: not at all. */
export async function datagramApp(
  answer: (bytes: Uint8Array, port: number) => Uint8Array | undefined = bytes => bytes,
  port = 0,
): Promise<DatagramApp> {
  const socket = createSocket({ type: 'udp4', recvBufferSize: 4_194_304 })
  const seen: { readonly bytes: Uint8Array; readonly port: number }[] = []
  socket.on('message', (bytes, from) => {
    seen.push({ bytes, port: from.port })
    const answered = answer(bytes, from.port)
    if (answered !== undefined) socket.send(answered, from.port, from.address, () => {})
    for (const check of [...waiters]) check()
  })
  await new Promise<void>(resolve => socket.bind(port, '127.0.0.1', resolve))
  return {
    port: socket.address().port,
    socket,
    seen,
    [Symbol.asyncDispose]: () => new Promise(resolve => socket.close(() => resolve())),
  }
}

const waiters = new Set<() => void>()

/** Resolves once an origin has seen what makes `isThere` true. */
export function seenBy(isThere: () => boolean): Promise<void> {
  return new Promise(resolve => {
    const check = () => {
      if (!isThere()) return
      waiters.delete(check)
      resolve()
    }
    waiters.add(check)
    check()
  })
}

/** One visitor: a UDP socket connected to a public port. */
export class DatagramVisitor implements AsyncDisposable {
  readonly #socket: Socket
  readonly got: Uint8Array[] = []
  #check: () => void = () => {}

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.on('message', bytes => {
      this.got.push(bytes)
      this.#check()
    })
    socket.on('error', () => {})
  }

  static async to(port: number, host = '127.0.0.1', localAddress?: string): Promise<DatagramVisitor> {
    const socket = createSocket({ type: 'udp4', recvBufferSize: 4_194_304 })
    if (localAddress !== undefined)
      await new Promise<void>(resolve => socket.bind(0, localAddress, () => resolve()))
    await new Promise<void>(resolve => socket.connect(port, host, resolve))
    return new DatagramVisitor(socket)
  }

  get port(): number {
    return this.#socket.address().port
  }

  /** Resolves once the kernel has it, a turn of the event loop later: whoever is to read it is often in this process. */
  send(bytes: Uint8Array | string): Promise<void> {
    return new Promise(resolve => this.#socket.send(bytes, () => setImmediate(resolve)))
  }

  /** Resolves with what came, once that is `count` datagrams. */
  received(count: number): Promise<readonly Uint8Array[]> {
    return new Promise(resolve => {
      this.#check = () => {
        if (this.got.length >= count) resolve(this.got)
      }
      this.#check()
    })
  }

  /** Sends until an answer comes: the way of everything that speaks UDP. */
  async ask(bytes: Uint8Array | string, everyMs = 50): Promise<Uint8Array> {
    const count = this.got.length
    const again = setInterval(() => void this.send(bytes), everyMs)
    await this.send(bytes)
    await this.received(count + 1)
    clearInterval(again)
    return this.got.at(-1) ?? new Uint8Array()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return new Promise(resolve => this.#socket.close(() => resolve()))
  }
}
