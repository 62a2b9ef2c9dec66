// What attackers speak with: raw connections from an address of their own, and control connections without manners.

import { randomBytes } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import { ATTACKER_ADDRESS, type Tally, type Target } from './attack.ts'

export interface RawOptions {
  readonly port: number
  readonly address?: string
  /** Starts reading at once (default), or never. */
  readonly reads?: boolean
}

/** Resolves once connected; rejects when refused. Errors later only close it. */
export function open({ port, address = ATTACKER_ADDRESS, reads = true }: RawOptions): Promise<Socket> {
  const { promise, resolve, reject } = Promise.withResolvers<Socket>()
  const socket = connect({ port, host: '127.0.0.1', localAddress: address })
  socket.once('connect', () => resolve(socket))
  socket.on('error', reject)
  socket.on('close', () => reject(new Error('closed')))
  if (reads) socket.on('data', () => {})
  return promise
}

/** Writes, and waits while the kernel takes no more. `false`: the connection is gone. */
export async function send(
  socket: Socket,
  bytes: string | Uint8Array,
  until?: AbortSignal,
): Promise<boolean> {
  if (socket.destroyed || !socket.writable) return false
  if (socket.write(bytes)) return true
  await new Promise<void>(resolve => {
    const go = (): void => {
      socket.off('drain', go).off('close', go)
      until?.removeEventListener('abort', go)
      resolve()
    }
    socket.once('drain', go).once('close', go)
    until?.addEventListener('abort', go)
    if (until?.aborted || socket.destroyed) go()
  })
  return !socket.destroyed
}

export function add(tally: Tally, what: string, count = 1): void {
  tally[what] = (tally[what] ?? 0) + count
}

/** Runs `work` in this many loops until the attack is over. What it throws only ends its turn. */
export async function loops(
  count: number,
  until: AbortSignal,
  work: (index: number) => Promise<void>,
  pauseMs = 0,
): Promise<void> {
  const loop = async (_: unknown, index: number): Promise<void> => {
    while (!until.aborted) {
      await work(index).catch(() => {})
      // At least a turn of the event loop, whatever the work waited for.
      await Bun.sleep(pauseMs)
    }
  }
  await Promise.all(Array.from({ length: count }, loop))
}

const TEXT = 1
const BINARY = 2
const CLOSE = 8
const PING = 9
const PONG = 10

/** One frame of a WebSocket client. The mask is zero, so the payload stays as it is. */
export function webSocketFrame(opcode: number, payload: Uint8Array | string, isFinal = true): Buffer {
  const body = Buffer.from(payload as string) // either is fine for Buffer.from
  const first = (isFinal ? 0x80 : 0) | opcode
  if (body.length < 126) return Buffer.concat([Buffer.from([first, 0x80 | body.length, 0, 0, 0, 0]), body])
  const head = Buffer.alloc(body.length < 65_536 ? 8 : 14)
  head[0] = first
  if (body.length < 65_536) {
    head[1] = 0x80 | 126
    head.writeUInt16BE(body.length, 2)
  } else {
    head[1] = 0x80 | 127
    head.writeBigUInt64BE(BigInt(body.length), 2)
  }
  return Buffer.concat([head, body])
}

export const pingFrame: Buffer = webSocketFrame(PING, 'ping')
export const textFrame = (text: string): Buffer => webSocketFrame(TEXT, text)

/** A frame of the streams wire inside a WebSocket message. */
export function streamsFrame(type: number, stream: number, payload: Uint8Array | string = ''): Buffer {
  const body = Buffer.from(payload as string) // likewise
  const head = Buffer.alloc(8)
  head.writeUIntBE(body.length, 0, 3)
  head[3] = type
  head.writeUInt32BE(stream, 4)
  return webSocketFrame(BINARY, Buffer.concat([head, body]))
}

export const controlFrame = (message: unknown): Buffer => streamsFrame(7, 0, JSON.stringify(message))

export interface ControlOptions {
  readonly wire: 'streams' | 'json'
  readonly token?: string
  readonly address?: string
}

export function upgradeHead(options: ControlOptions, host = '127.0.0.1'): string {
  const lines = [
    'GET /?subdomain=x HTTP/1.1',
    `Host: ${host}`,
    'Connection: Upgrade',
    'Upgrade: websocket',
    'Sec-WebSocket-Version: 13',
    `Sec-WebSocket-Key: ${randomBytes(16).toString('base64')}`,
  ]
  if (options.wire === 'streams') lines.push('Sec-WebSocket-Protocol: localtunnels.streams.1')
  if (options.token !== undefined) lines.push(`Authorization: Bearer ${options.token}`)
  return `${lines.join('\r\n')}\r\n\r\n`
}

/** A control connection that sends what its caller gives it, and collects the messages of the server. */
export class Control {
  readonly socket: Socket
  /** Each message of the server, as JSON; of the streams wire the CONTROL frames. */
  heard: (message: Record<string, unknown>) => void = () => {}
  /** Close code of the server, once it sent one. */
  closeCode = 0
  #bytes: Buffer = Buffer.alloc(0)
  #streams: Buffer = Buffer.alloc(0)

  private constructor(socket: Socket) {
    this.socket = socket
  }

  /** Rejects with the status when the upgrade is refused. */
  static async open(target: Target, options: ControlOptions): Promise<Control> {
    const socket = await open({ port: target.port, address: options.address, reads: false })
    const { promise, resolve, reject } = Promise.withResolvers<Control>()
    let head = ''
    const take = (bytes: Buffer): void => {
      head += bytes.toString('latin1')
      const end = head.indexOf('\r\n\r\n')
      if (end === -1) return
      socket.off('data', take)
      const status = head.slice(9, 12)
      if (status !== '101') {
        socket.destroy()
        return reject(new Error(status))
      }
      const control = new Control(socket)
      socket.on('data', (piece: Buffer) => control.#take(piece))
      control.#take(Buffer.from(head.slice(end + 4), 'latin1'))
      resolve(control)
    }
    socket.on('data', take)
    socket.on('close', () => reject(new Error('closed')))
    socket.write(upgradeHead(options))
    return promise
  }

  get isOpen(): boolean {
    return !this.socket.destroyed && this.closeCode === 0
  }

  /** The next message of one of these types, at most `ms` away. */
  next(types: readonly string[], ms = 5_000): Promise<Record<string, unknown>> {
    const { promise, resolve, reject } = Promise.withResolvers<Record<string, unknown>>()
    const timer = setTimeout(() => reject(new Error(`no ${types.join(' or ')}`)), ms)
    this.socket.once('close', () => reject(new Error('closed')))
    this.heard = message => {
      if (!types.includes(String(message.type))) return
      clearTimeout(timer)
      resolve(message)
    }
    return promise
  }

  #take(bytes: Buffer): void {
    this.#bytes = Buffer.concat([this.#bytes, bytes])
    for (;;) {
      const short = (this.#bytes[1] ?? 0) & 0x7f
      const head = short < 126 ? 2 : short === 126 ? 4 : 10
      if (this.#bytes.length < head) return
      const length =
        short < 126
          ? short
          : short === 126
            ? this.#bytes.readUInt16BE(2)
            : Number(this.#bytes.readBigUInt64BE(2))
      if (this.#bytes.length < head + length) return
      const opcode = this.#bytes[0]! & 0x0f
      const payload = this.#bytes.subarray(head, head + length)
      this.#bytes = this.#bytes.subarray(head + length)
      if (opcode === TEXT) this.heard(JSON.parse(payload.toString()))
      else if (opcode === PING) this.socket.write(webSocketFrame(PONG, payload))
      else if (opcode === CLOSE) {
        this.closeCode = payload.length >= 2 ? payload.readUInt16BE(0) : 1005
        this.socket.destroy()
        return
      } else if (opcode === BINARY || opcode === 0) this.#frames(payload)
    }
  }

  #frames(bytes: Buffer): void {
    this.#streams = Buffer.concat([this.#streams, bytes])
    while (this.#streams.length >= 8) {
      const length = this.#streams.readUIntBE(0, 3)
      if (this.#streams.length < 8 + length) return
      const type = this.#streams[3]
      const payload = this.#streams.subarray(8, 8 + length)
      this.#streams = this.#streams.subarray(8 + length)
      if (type === 7) this.heard(JSON.parse(payload.toString()))
      // Keepalive of the session: answered, or the server would end it.
      else if (type === 5) this.socket.write(streamsFrame(6, 0, payload))
    }
  }
}
