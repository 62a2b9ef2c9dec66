// A man between client and server: passes connections on, knows links from carriers, cuts and refuses as told.

import { connect, createServer, type Server, type Socket } from 'node:net'
import { Transform, type TransformCallback } from 'node:stream'
import { deferred, within } from './within.ts'

export interface PassedLink {
  readonly secret: string
  readonly number: number
  /** Bytes that went to the client, and to the server. */
  down: number
  up: number
  isClosed: boolean
  cut(): void
}

export class Between implements AsyncDisposable {
  readonly links: PassedLink[] = []
  readonly carriers: { cut(): void }[] = []
  /** Connections open now, of both kinds. */
  readonly #open = new Set<Socket>()
  readonly #server: Server
  readonly #waiting = new Set<() => void>()
  /** What a proxy that knows only WebSockets does with a link. */
  refusal: string | undefined
  refusedLinks = 0
  /** Links lose every byte, and nobody is told. */
  isSwallowing = false
  port = 0

  private constructor(serverPort: number) {
    this.#server = createServer({ noDelay: true }, visitor => this.#pass(visitor, serverPort))
  }

  static async inFrontOf(serverPort: number): Promise<Between> {
    const between = new Between(serverPort)
    const { promise, resolve } = deferred()
    between.#server.listen({ host: '127.0.0.1', port: 0 }, () => resolve())
    await promise
    const address = between.#server.address()
    between.port = typeof address === 'object' && address !== null ? address.port : 0
    return between
  }

  /** Connections to the server that are open. */
  get openCount(): number {
    return this.#open.size
  }

  /** Waits until the condition holds, looking again whenever bytes pass or a connection comes or goes. */
  async until(condition: () => boolean, what: string): Promise<void> {
    while (!condition()) {
      const { promise, resolve } = deferred()
      this.#waiting.add(resolve)
      await within(promise, what)
      this.#waiting.delete(resolve)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#open) socket.destroy()
    this.#server.close()
  }

  #pass(near: Socket, serverPort: number): void {
    this.#open.add(near)
    near.on('error', () => {}) // its end is told by `close`
    near.once('data', (first: Buffer) => {
      const [, secret = '', number] = /^Authorization: Link (\S+) (\d+)/m.exec(first.toString('latin1')) ?? []
      if (number !== undefined && this.refusal !== undefined) {
        this.refusedLinks++
        near.end(this.refusal)
        return
      }
      const far = connect({ host: '127.0.0.1', port: serverPort, noDelay: true })
      far.on('error', () => {}) // likewise
      far.write(first)
      const cut = () => {
        near.resetAndDestroy()
        far.resetAndDestroy()
      }
      const link: PassedLink = { secret, number: Number(number), down: 0, up: 0, isClosed: false, cut }
      if (number === undefined) this.carriers.push({ cut })
      else this.links.push(link)
      const count = (way: 'up' | 'down') => (bytes: Buffer) => {
        link[way] += bytes.length
        this.#happened()
      }
      const isLost = () => number !== undefined && this.isSwallowing
      near.on('data', count('up')).pipe(new Sieve(isLost)).pipe(far)
      far.on('data', count('down')).pipe(new Sieve(isLost)).pipe(near)
      near.on('close', () => far.destroy())
      far.on('close', () => {
        link.isClosed = true
        near.destroy()
        this.#happened()
      })
    })
    near.on('close', () => {
      this.#open.delete(near)
      this.#happened()
    })
  }

  #happened(): void {
    for (const wake of this.#waiting) wake()
  }
}

/** Passes bytes on, or loses them. */
class Sieve extends Transform {
  readonly #isLost: () => boolean

  constructor(isLost: () => boolean) {
    super()
    this.#isLost = isLost
  }

  override _transform(bytes: Buffer, _encoding: string, done: TransformCallback): void {
    done(null, this.#isLost() ? undefined : bytes)
  }
}
