// A raw visitor's connection, limited to its rate. Its bytes stay on the main thread, because other threads could not count them.

import type { Endpoints, Socket, SocketHandler } from '../../socket.ts'
import { ShapedInput } from './shaped-input.ts'
import type { ShapedTurn, Shapes } from './shaping.ts'

export class ShapedSocket implements Socket, ShapedTurn {
  readonly #socket: Socket
  readonly #shapes: Shapes
  readonly #input: ShapedInput
  #handler: SocketHandler | undefined
  #isTurn = false
  /** Whether the socket itself is full: then `drained` follows. */
  #isFull = false

  constructor(socket: Socket, shapes: Shapes) {
    this.#socket = socket
    this.#shapes = shapes
    this.#input = new ShapedInput(shapes.up, socket)
  }

  get remoteAddress(): string {
    return this.#socket.remoteAddress
  }

  /** The receiver of the socket's events, which passes them to `handler`. */
  handlerFor(handler: SocketHandler): SocketHandler {
    this.#handler = handler
    return {
      received: bytes => {
        handler.received(bytes)
        this.#input.took(bytes.length)
      },
      drained: () => {
        this.#isFull = false
        this.#shapes.down.forget(this)
        handler.drained()
      },
      ended: () => handler.ended(),
      closed: error => {
        this.#shapes.down.forget(this)
        this.#shapes.up.forget(this.#input)
        handler.closed(error)
      },
    }
  }

  turn(): void {
    if (this.#isFull) return
    this.#isTurn = true
    this.#handler?.drained()
    this.#isTurn = false
  }

  write(bytes: Uint8Array, start = 0, end: number = bytes.length): number {
    const count = this.#shapes.down.take(end - start, this.#isTurn)
    // One turn is for one portion.
    this.#isTurn = false
    const written = count === 0 ? 0 : this.#socket.write(bytes, start, start + count)
    this.#isFull = written < count
    if (this.#isFull) this.#shapes.down.spend(written - count)
    else if (count < end - start) this.#shapes.down.await(this)
    return written
  }

  pause(): void {
    this.#input.pause()
  }

  resume(): void {
    this.#input.resume()
  }

  end(): void {
    this.#socket.end()
  }

  terminate(): void {
    this.#socket.terminate()
  }

  letGo(): void {
    if (this.#socket.letGo === undefined) this.#socket.terminate()
    else this.#socket.letGo()
  }

  keepAlive(idleMs: number): void {
    this.#socket.keepAlive?.(idleMs)
  }

  spliceFrom(): undefined {
    return undefined
  }

  endpoints(): Endpoints | undefined {
    return this.#socket.endpoints()
  }
}
