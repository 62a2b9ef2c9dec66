// One visitor's connection: sends requests, reads answers, knows where each ends. As little work per request as it takes.

import type { Socket } from 'bun'
import type { Endpoint } from '../peers/peer.ts'

export interface Answer {
  readonly status: number
  readonly bytes: number
  /** The server closed the connection behind it, or will. */
  readonly closes: boolean
}

/** Bytes of a request head that reaches the endpoint. */
export function requestBytes(
  endpoint: Endpoint,
  method: string,
  path: string,
  more: readonly string[] = [],
): Buffer {
  const headers = Object.entries({ host: endpoint.hostHeader, ...endpoint.headers })
  const lines = [
    `${method} ${path} HTTP/1.1`,
    ...headers.map(([name, value]) => `${name}: ${value}`),
    ...more,
  ]
  return Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1')
}

const BLANK_LINE = Buffer.from('\r\n\r\n')
const LAST_CHUNK = Buffer.from('0\r\n\r\n')

export class Visitor {
  /** Called with each complete answer, or `null` when the connection ended before one was. */
  onAnswer: (answer: Answer | null) => void = () => {}
  readonly #endpoint: Endpoint
  #socket: Socket | null = null
  #waiting: Uint8Array | null = null
  #head: Buffer | null = null
  #status = 0
  #closes = false
  #bytes = 0
  /** Body bytes still to come; -1: chunked; -2: until the connection ends; -3: no head yet. */
  #left = -3
  #tail: Buffer = Buffer.alloc(0)

  constructor(endpoint: Endpoint) {
    this.#endpoint = endpoint
  }

  async connect(): Promise<void> {
    this.#socket = await Bun.connect({
      hostname: this.#endpoint.host,
      port: this.#endpoint.port,
      socket: {
        open: socket => void socket.setNoDelay(true),
        data: (_, chunk) => this.#take(chunk),
        drain: () => this.#flush(),
        close: () => this.#ended(),
        error: () => {},
      },
    })
  }

  get connected(): boolean {
    return this.#socket !== null
  }

  send(bytes: Uint8Array): void {
    this.#waiting = bytes
    this.#flush()
  }

  close(): void {
    const socket = this.#socket
    this.#socket = null
    socket?.terminate()
  }

  #flush(): void {
    if (!this.#waiting || !this.#socket) return
    const written = Math.max(0, this.#socket.write(this.#waiting))
    this.#waiting = written < this.#waiting.length ? this.#waiting.subarray(written) : null
  }

  #take(chunk: Buffer): void {
    if (this.#left === -3) {
      const bytes = this.#head ? Buffer.concat([this.#head, chunk]) : chunk
      const end = bytes.indexOf(BLANK_LINE)
      if (end < 0) {
        this.#head = Buffer.from(bytes)
        return
      }
      this.#head = null
      this.#began(bytes.toString('latin1', 0, end))
      chunk = bytes.subarray(end + 4)
    }
    this.#bytes += chunk.length
    if (this.#left >= 0) {
      this.#left -= chunk.length
      if (this.#left <= 0) this.#complete()
    } else if (this.#left === -1) {
      // Enough for a load generator: the last chunk ends the buffer, and no body measured here contains its bytes.
      this.#tail = Buffer.concat([this.#tail.subarray(-4), chunk.subarray(-5)])
      if (this.#tail.subarray(-5).equals(LAST_CHUNK)) this.#complete()
    }
  }

  #began(head: string): void {
    this.#status = Number(head.slice(9, 12))
    this.#closes = /\r\nconnection: *close/i.test(head)
    this.#bytes = 0
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1]
    this.#left = length !== undefined ? Number(length) : /\r\ntransfer-encoding:/i.test(head) ? -1 : -2
  }

  #complete(): void {
    const answer = { status: this.#status, bytes: this.#bytes, closes: this.#closes }
    this.#left = -3
    this.onAnswer(answer)
  }

  #ended(): void {
    if (!this.#socket) return
    this.#socket = null
    if (this.#left === -2) this.#complete()
    else this.onAnswer(null)
    this.#left = -3
    this.#head = null
  }
}
