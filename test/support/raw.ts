// Raw TCP ends for tests: an origin and a visitor that send exactly the bytes they are told and wait for events.

import type { Socket, SocketHandler } from '../../src/socket.ts'
import { dialBun, listenBun } from '../../src/sockets/bun.ts'

/** Failure only: a busy machine needs many times what is usual. */
const DEADLINE_MS = 20_000

/** One raw connection: collects what arrives; waiting is for bytes, FIN or the end, never for time. */
export class RawConnection {
  socket!: Socket
  hasEnded = false
  isClosed = false
  error: Error | undefined
  #bytes: Buffer = Buffer.alloc(0)
  #waiting = new Set<() => void>()

  readonly handler: SocketHandler = {
    received: bytes => {
      this.#bytes = Buffer.concat([this.#bytes, bytes])
      this.#changed()
    },
    drained: () => this.#changed(),
    ended: () => {
      this.hasEnded = true
      this.#changed()
    },
    closed: error => {
      this.isClosed = true
      this.error = error
      this.#changed()
    },
  }

  /** All that arrived and was not taken yet, as latin1. */
  get text(): string {
    return this.#bytes.toString('latin1')
  }

  get bytes(): Buffer {
    return this.#bytes
  }

  /** Sends all of it, waiting for room as long as it takes. */
  async send(data: string | Uint8Array): Promise<void> {
    let rest: Uint8Array = typeof data === 'string' ? Buffer.from(data, 'latin1') : data
    while (rest.length > 0 && !this.isClosed) {
      const taken = this.socket.write(rest)
      rest = rest.subarray(taken)
      if (rest.length > 0) await this.#change()
    }
  }

  /** Waits until what arrived contains `needle`; returns all up to its end and takes it away. */
  async until(needle: string): Promise<string> {
    await this.when(
      () => this.text.includes(needle),
      `"${needle}" in ${JSON.stringify(this.text.slice(0, 500))}`,
    )
    return this.take(this.text.indexOf(needle) + needle.length)
  }

  /** Waits for `count` bytes and takes them. */
  async exactly(count: number): Promise<string> {
    await this.when(() => this.#bytes.length >= count, `${count} bytes`)
    return this.take(count)
  }

  take(count: number): string {
    const taken = this.#bytes.toString('latin1', 0, count)
    this.#bytes = this.#bytes.subarray(count)
    return taken
  }

  /** Waits for the far side's FIN or the end of the connection; returns what had arrived. */
  async end(): Promise<string> {
    await this.when(() => this.hasEnded || this.isClosed, 'the end')
    return this.text
  }

  async closed(): Promise<Error | undefined> {
    await this.when(() => this.isClosed, 'the connection to close')
    return this.error
  }

  async when(condition: () => boolean, what: string): Promise<void> {
    const deadline = Date.now() + DEADLINE_MS
    while (!condition()) {
      if (Date.now() > deadline) throw new Error(`waited in vain for ${what}`)
      await this.#change()
    }
  }

  #change(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#waiting.add(resolve)
    const timer = setTimeout(resolve, DEADLINE_MS)
    return promise.finally(() => clearTimeout(timer))
  }

  #changed(): void {
    for (const resolve of this.#waiting) resolve()
    this.#waiting.clear()
  }
}

export async function rawDial(port: number, host = '127.0.0.1'): Promise<RawConnection> {
  const connection = new RawConnection()
  connection.socket = await dialBun({ host, port }, connection.handler)
  return connection
}

/** An origin whose every connection the test holds in its hands. */
export class RawOrigin implements Disposable {
  readonly connections: RawConnection[] = []
  readonly #listening: ReturnType<typeof listenBun>
  #next = 0
  #arrived: (() => void) | undefined

  /** Without `port` on any that is free. */
  constructor(port?: number) {
    this.#listening = listenBun({
      hostname: '127.0.0.1',
      ...(port !== undefined && { port }),
      accept: socket => {
        const connection = new RawConnection()
        connection.socket = socket
        this.connections.push(connection)
        this.#arrived?.()
        return connection.handler
      },
    })
  }

  get port(): number {
    return this.#listening.port
  }

  /** The next connection, in the order they came. */
  async accept(): Promise<RawConnection> {
    const deadline = Date.now() + DEADLINE_MS
    while (this.connections.length <= this.#next) {
      if (Date.now() > deadline) throw new Error('waited in vain for a connection to the origin')
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#arrived = resolve
      const timer = setTimeout(resolve, DEADLINE_MS)
      await promise
      clearTimeout(timer)
    }
    return this.connections[this.#next++]!
  }

  [Symbol.dispose](): void {
    this.#listening.stop(true)
  }
}
