// The app behind a tunnel of the simulation: what it answers says whose it is, and to whom.

import type { Network } from './network.ts'
import type { Process } from './process.ts'
import type { Socket } from './socket.ts'

export const APP_PORT = 3_000

/** What the app `app` answers to the request `nonce`: nothing of another app or another visitor is the same. */
export function bodyOf(app: string, nonce: string, length: number): string {
  const part = `${app}/${nonce};`
  return part.repeat(Math.ceil(length / part.length)).slice(0, length)
}

/** `GET /<kind>/<length>/<pauseMs>/<nonce>`; kinds: `length`, `chunked`, `echo` (POST), `websocket`. */
export class App {
  readonly #name: string
  readonly #process: Process
  /** In ms, from now. */
  readonly #after: (ms: number, run: () => void) => void
  readonly #posted: (nonce: string) => void

  /** `posted`: a request with a body has come, whole. */
  constructor(
    name: string,
    process: Process,
    network: Network,
    after: (ms: number, run: () => void) => void,
    posted: (nonce: string) => void,
  ) {
    this.#name = name
    this.#process = process
    this.#after = after
    this.#posted = posted
    const visits = new Map<Socket, Connection>()
    network.listen(process, {
      hostname: 'localhost',
      port: APP_PORT,
      socket: {
        open: socket => void visits.set(socket, new Connection(socket, this)),
        data: (socket, bytes) => visits.get(socket)?.received(bytes),
        drain: socket => visits.get(socket)?.flush(),
        end: socket => socket.shutdown(),
        close: socket => void visits.delete(socket),
      },
    })
  }

  /** Calls `run` later, unless the app is gone by then. */
  later(ms: number, run: () => void): void {
    this.#after(ms, () => {
      if (!this.#process.isDead) run()
    })
  }

  posted(nonce: string): void {
    this.#posted(nonce)
  }

  get name(): string {
    return this.#name
  }
}

class Connection {
  readonly #socket: Socket
  readonly #app: App
  #received = ''
  #unsent: Uint8Array = new Uint8Array(0)
  #isBusy = false
  #isWebSocket = false

  constructor(socket: Socket, app: App) {
    this.#socket = socket
    this.#app = app
  }

  received(bytes: Uint8Array): void {
    const text = Buffer.from(bytes).toString('latin1')
    if (this.#isWebSocket) return this.#send(`${this.#app.name}:${text}`)
    this.#received += text
    this.#next()
  }

  #next(): void {
    if (this.#isBusy) return
    const end = this.#received.indexOf('\r\n\r\n')
    if (end < 0) return
    const head = this.#received.slice(0, end)
    const length = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0)
    if (this.#received.length < end + 4 + length) return
    const body = this.#received.slice(end + 4, end + 4 + length)
    this.#received = this.#received.slice(end + 4 + length)
    const [, kind = '', size = '', pause = '', nonce = ''] =
      /^\w+ \/(\w+)\/(\d+)\/(\d+)\/(\S+) /.exec(head) ?? []
    if (kind === 'echo') this.#app.posted(nonce)
    this.#isBusy = true
    this.#app.later(Number(pause), () =>
      this.#answer(kind, bodyOf(this.#app.name, nonce, Number(size)), body),
    )
  }

  #answer(kind: string, own: string, body: string): void {
    if (kind === 'websocket') {
      this.#isWebSocket = true
      return this.#send(
        'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n',
      )
    }
    const text = kind === 'echo' ? `${this.#app.name}:${body}` : own
    if (kind !== 'chunked') {
      this.#send(`HTTP/1.1 200 OK\r\nContent-Length: ${text.length}\r\n\r\n${text}`)
      return this.#over()
    }
    this.#send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n')
    this.#chunks(text)
  }

  /** In pieces, with pauses between. */
  #chunks(text: string): void {
    const piece = text.slice(0, 2_000)
    if (piece === '') {
      this.#send('0\r\n\r\n')
      return this.#over()
    }
    this.#send(`${piece.length.toString(16)}\r\n${piece}\r\n`)
    this.#app.later(20, () => this.#chunks(text.slice(piece.length)))
  }

  #over(): void {
    this.#isBusy = false
    this.#next()
  }

  #send(text: string): void {
    const bytes = Buffer.from(text, 'latin1')
    this.#unsent = this.#unsent.length === 0 ? bytes : Buffer.concat([this.#unsent, bytes])
    this.flush()
  }

  flush(): void {
    const taken = this.#socket.write(this.#unsent)
    if (taken > 0) this.#unsent = this.#unsent.subarray(taken)
  }
}
