// A TCP proxy between client and server, in which the network fails on command.

import { copyOf } from '../../src/bytes.ts'
import type { Socket, SocketHandler } from '../../src/socket.ts'
import { dialBun, listenBun } from '../../src/sockets/bun.ts'
import { FrameCounter } from './frame-counter.ts'

/** How the proxy ends a connection: with FIN, or with RST. */
export type Cut = 'end' | 'reset'

export class TcpProxy implements Disposable {
  /** Connections are refused by closing them at once. */
  isDown = false
  /** Nothing passes any more, and nobody is told. */
  isSilent = false
  /** Ends a connection once this many frames passed, both directions counted together. */
  cutAfterFrames: number = Number.POSITIVE_INFINITY
  cut: Cut = 'reset'
  /** Sent to the target first, on every connection: a PROXY header. */
  preface: Uint8Array | undefined
  /** Frames that passed on all connections so far. */
  frames = 0
  readonly #pairs = new Set<Pair>()
  readonly #target: number
  readonly #listening: ReturnType<typeof listenBun>

  constructor(target: number) {
    this.#target = target
    this.#listening = listenBun({
      hostname: '127.0.0.1',
      accept: socket => {
        const pair = new Pair(this, socket)
        if (this.isDown) pair.end('reset')
        else {
          this.#pairs.add(pair)
          void pair.dial(this.#target)
        }
        return pair.near
      },
    })
  }

  get port(): number {
    return this.#listening.port
  }

  get connectionCount(): number {
    return this.#pairs.size
  }

  /** Ends all connections there are, but for the oldest ones. */
  cutAll(how: Cut = this.cut, spared = 0): void {
    for (const pair of [...this.#pairs].slice(spared)) pair.end(how)
  }

  left(pair: Pair): void {
    this.#pairs.delete(pair)
  }

  [Symbol.dispose](): void {
    this.cutAll('reset')
    this.#listening.stop(true)
  }
}

/** One connection through the proxy: the socket of who came, and the one to the target. */
class Pair {
  readonly near: SocketHandler
  readonly #proxy: TcpProxy
  readonly #here: Half
  readonly #there: Half = new Half()
  #isOver = false

  constructor(proxy: TcpProxy, socket: Socket) {
    this.#proxy = proxy
    this.#here = new Half(socket)
    this.near = this.#handler(this.#here, this.#there)
  }

  async dial(port: number): Promise<void> {
    if (this.#proxy.preface !== undefined) this.#there.send(this.#proxy.preface)
    try {
      const socket = await dialBun({ host: '127.0.0.1', port }, this.#handler(this.#there, this.#here))
      if (this.#isOver) socket.terminate()
      else this.#there.up(socket)
    } catch {
      // Nobody there: whoever came to the proxy sees a connection that closes.
      this.end('reset')
    }
  }

  end(how: Cut): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#proxy.left(this)
    for (const half of [this.#here, this.#there]) half.end(how)
  }

  #handler(from: Half, to: Half): SocketHandler {
    const counter = new FrameCounter()
    return {
      received: bytes => {
        if (this.#isOver || this.#proxy.isSilent) return
        const allowed = this.#proxy.cutAfterFrames - this.#proxy.frames
        const { count, end } = counter.feed(bytes, allowed)
        this.#proxy.frames += count
        to.send(copyOf(bytes, 0, end))
        if (this.#proxy.frames >= this.#proxy.cutAfterFrames) this.end(this.#proxy.cut)
      },
      drained: () => from.drained(),
      ended: () => {
        if (!this.#proxy.isSilent) to.finish()
      },
      closed: () => {
        if (!this.#proxy.isSilent) this.end('reset')
      },
    }
  }
}

class Half {
  #socket: Socket | undefined
  #unsent: Uint8Array[] = []
  #hasFinished = false

  constructor(socket?: Socket) {
    this.#socket = socket
  }

  up(socket: Socket): void {
    this.#socket = socket
    this.drained()
  }

  send(bytes: Uint8Array): void {
    this.#unsent.push(bytes)
    if (this.#unsent.length === 1) this.drained()
  }

  finish(): void {
    this.#hasFinished = true
    if (this.#unsent.length === 0) this.#socket?.end()
  }

  drained(): void {
    const socket = this.#socket
    if (socket === undefined) return
    for (let first = this.#unsent[0]; first !== undefined; first = this.#unsent[0]) {
      const taken = socket.write(first)
      if (taken < first.length) {
        this.#unsent[0] = first.subarray(taken)
        return
      }
      this.#unsent.shift()
    }
    if (this.#hasFinished) socket.end()
  }

  end(how: Cut): void {
    if (how === 'reset') this.#socket?.terminate()
    else this.#socket?.end()
  }
}
