// Ends of the streams wire that say what they are told, made of the runtime's own WebSockets.

import { STREAMS_SUBPROTOCOL } from '../../src/wire/frame.ts'

const CONTROL = 7

/** One frame, byte by byte from the drawing in docs/protocol.md. */
export function frame(type: number, stream: number, payload: Uint8Array | string = ''): Buffer {
  const body = Buffer.from(payload as string) // either is fine for Buffer.from
  const head = Buffer.alloc(8)
  head.writeUIntBE(body.length, 0, 3)
  head[3] = type
  head.writeUInt32BE(stream, 4)
  return Buffer.concat([head, body])
}

export const control = (message: unknown): Buffer =>
  frame(CONTROL, 0, typeof message === 'string' ? message : JSON.stringify(message))

export interface Frame {
  readonly type: number
  readonly stream: number
  readonly payload: Buffer
}

class Reader {
  #bytes: Buffer = Buffer.alloc(0)

  read(bytes: Uint8Array): Frame[] {
    this.#bytes = Buffer.concat([this.#bytes, bytes])
    const frames: Frame[] = []
    while (this.#bytes.length >= 8) {
      const length = this.#bytes.readUIntBE(0, 3)
      if (this.#bytes.length < 8 + length) break
      frames.push({
        type: this.#bytes[3]!,
        stream: this.#bytes.readUInt32BE(4),
        payload: this.#bytes.subarray(8, 8 + length),
      })
      this.#bytes = this.#bytes.subarray(8 + length)
    }
    return frames
  }
}

type Say = (bytes: Uint8Array) => void

/** A server that upgrades everybody and hands each control message to `heard`, each other frame to `framed`. */
export function speakingServer(
  heard: (message: Record<string, unknown>, say: Say) => void,
  framed: (frame: Frame) => void = () => {},
): Bun.Server<Reader> {
  return Bun.serve<Reader>({
    port: 0,
    hostname: '127.0.0.1',
    fetch(request, server) {
      const headers = { 'Sec-WebSocket-Protocol': STREAMS_SUBPROTOCOL }
      return server.upgrade(request, { headers, data: new Reader() })
        ? undefined
        : new Response('no', { status: 400 })
    },
    websocket: {
      message(socket, bytes) {
        if (typeof bytes === 'string') return
        for (const frame of socket.data.read(bytes)) {
          if (frame.type !== CONTROL) framed(frame)
          else heard(JSON.parse(frame.payload.toString()), reply => void socket.sendBinary(reply))
        }
      },
    },
  })
}

/** A client that says whatever it is told. */
export class SpeakingClient {
  readonly frames: Frame[] = []
  readonly closed: Promise<void>
  isClosed = false
  readonly #socket: WebSocket
  readonly #opened: Promise<void>
  #changed: () => void = () => {}

  constructor(port: number, headers: Record<string, string> = {}) {
    const reader = new Reader()
    // Bun's own: a browser's has no headers.
    this.#socket = new WebSocket(`ws://127.0.0.1:${port}`, { protocols: [STREAMS_SUBPROTOCOL], headers })
    this.#socket.binaryType = 'arraybuffer'
    this.#opened = new Promise((resolve, reject) => {
      this.#socket.onopen = () => resolve()
      this.#socket.onerror = () => reject(new Error('no WebSocket'))
    })
    this.#socket.onmessage = ({ data }) => {
      this.frames.push(...reader.read(new Uint8Array(data)))
      this.#changed()
    }
    this.closed = new Promise(resolve => {
      this.#socket.onclose = () => {
        this.isClosed = true
        this.#changed()
        resolve()
      }
    })
  }

  static async connect(port: number, headers?: Record<string, string>): Promise<SpeakingClient> {
    const client = new SpeakingClient(port, headers)
    await client.#opened
    return client
  }

  say(...frames: readonly Uint8Array[]): void {
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(Buffer.concat(frames))
  }

  sayText(text: string): void {
    this.#socket.send(text)
  }

  /** All control messages so far. */
  get messages(): Record<string, unknown>[] {
    return this.frames
      .filter(({ type }) => type === CONTROL)
      .map(({ payload }) => JSON.parse(payload.toString()))
  }

  /** The answers to this many registrations, in the order in which they came. */
  async verdicts(count: number): Promise<Record<string, unknown>[]> {
    for (;;) {
      const verdicts = this.messages.filter(({ type }) => type === 'granted' || type === 'refused')
      if (verdicts.length >= count) return verdicts
      if (this.isClosed) throw new Error(`closed after ${verdicts.length} verdicts`)
      await new Promise<void>(resolve => {
        this.#changed = resolve
      })
    }
  }

  /** The frames of this type, once there are so many. */
  async framesOf(type: number, count: number): Promise<Frame[]> {
    for (;;) {
      const frames = this.frames.filter(frame => frame.type === type)
      if (frames.length >= count) return frames
      if (this.isClosed) throw new Error(`closed after ${frames.length} frames`)
      await new Promise<void>(resolve => {
        this.#changed = resolve
      })
    }
  }

  /** The next control message of this type, earlier ones included. */
  async control(type: string): Promise<Record<string, unknown>> {
    for (;;) {
      for (const one of this.frames) {
        if (one.type !== CONTROL) continue
        const message = JSON.parse(one.payload.toString())
        if (message.type === type) return message
      }
      if (this.isClosed) throw new Error(`closed without ${type}`)
      await new Promise<void>(resolve => {
        this.#changed = resolve
      })
    }
  }

  close(): void {
    this.#socket.close()
  }
}
