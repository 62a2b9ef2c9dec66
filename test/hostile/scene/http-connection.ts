// One connection of a visitor from an address of its own, for one request at a time, whose answer is checked.

import { connect, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { isBody } from './pattern.ts'

/** `right`, `wrong`, or why it failed. */
export type Outcome = 'right' | 'wrong' | `failed: ${string}`

export interface Place {
  readonly port: number
  readonly hostname?: string
  readonly address: string
  readonly isTls?: boolean
}

export interface Expected {
  readonly id: number
  readonly bytes: number
}

export class HttpConnection {
  readonly #socket: Socket
  #head = ''
  #received = 0
  #expected: Expected | undefined
  #settle: (outcome: Outcome) => void = () => {}
  isOpen = true
  /** The answer said that it is the last one. */
  isLast = false

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.setNoDelay(true)
    socket.on('data', (bytes: Buffer) => this.#data(bytes))
    socket.on('error', (error: NodeJS.ErrnoException) => this.#lost(error.code ?? error.message))
    socket.on('close', () => this.#lost('closed'))
  }

  static open(
    { port, hostname = '127.0.0.1', address, isTls = false }: Place,
    timeoutMs: number,
  ): Promise<HttpConnection> {
    const { promise, resolve, reject } = Promise.withResolvers<HttpConnection>()
    const plain = connect({ port, host: hostname, localAddress: address })
    const socket = isTls
      ? connectTls({ socket: plain, ALPNProtocols: ['http/1.1'], rejectUnauthorized: false })
      : plain
    const timer = setTimeout(() => {
      socket.destroy()
      reject(new Error('connect timeout'))
    }, timeoutMs)
    socket.once(isTls ? 'secureConnect' : 'connect', () => {
      clearTimeout(timer)
      resolve(new HttpConnection(socket))
    })
    const failed = (error: NodeJS.ErrnoException): void => {
      clearTimeout(timer)
      reject(new Error(error.code ?? error.message))
    }
    socket.once('error', failed)
    if (isTls) plain.once('error', failed)
    return promise
  }

  async ask(
    request: readonly (string | Uint8Array)[],
    expected: Expected,
    timeoutMs: number,
  ): Promise<Outcome> {
    if (!this.isOpen) return 'failed: closed before'
    this.#expected = expected
    this.#head = ''
    this.#received = 0
    const { promise, resolve } = Promise.withResolvers<Outcome>()
    this.#settle = resolve
    const timer = setTimeout(() => resolve(`failed: no answer in ${timeoutMs} ms`), timeoutMs)
    for (const piece of request) this.#socket.write(piece)
    const outcome = await promise
    clearTimeout(timer)
    this.#settle = () => {}
    this.#expected = undefined
    if (outcome !== 'right') this.close()
    return outcome
  }

  close(): void {
    this.isOpen = false
    this.#socket.destroy()
  }

  #lost(reason: string): void {
    this.isOpen = false
    this.#settle(`failed: ${reason}`)
  }

  #data(bytes: Buffer): void {
    const { id, bytes: length } = this.#expected ?? { id: -1, bytes: 0 }
    let at = 0
    if (!this.#head.endsWith('\r\n\r\n')) {
      const before = this.#head.length
      const text = this.#head + bytes.toString('latin1')
      const end = text.indexOf('\r\n\r\n')
      this.#head = end === -1 ? text : text.slice(0, end + 4)
      if (end === -1) return
      at = end + 4 - before
      const status = this.#head.slice(9, 12)
      if (status !== '200') return this.#settle(`failed: ${status}`)
      this.isLast = /\r\nconnection: *close\r\n/i.test(this.#head)
      if (!this.#head.toLowerCase().includes(`\r\nx-id: ${id}\r\n`)) return this.#settle('wrong')
    }
    const piece = bytes.subarray(at)
    if (!isBody(id, this.#received, piece)) return this.#settle('wrong')
    this.#received += piece.length
    if (this.#received > length) return this.#settle('wrong')
    if (this.#received === length) this.#settle('right')
  }
}
