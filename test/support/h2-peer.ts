// A visitor of HTTP/2 that writes what it is told, faults included: plainly from RFC 9113, without any code of src.

import { connect as connectPlain, type Socket } from 'node:net'
import { connect, type TLSSocket } from 'node:tls'
import { frame, PREFACE, SETTINGS, u32 } from './h2-frames.ts'
import { type NaiveField, NaiveTable, naiveDecode } from './naive-hpack.ts'
import { within } from './within.ts'

export interface SeenFrame {
  readonly type: number
  readonly flags: number
  readonly stream: number
  readonly payload: Buffer
  /** Of HEADERS. */
  readonly fields?: readonly NaiveField[]
}

/** Fields as literals that nothing has to remember. */
export function literals(fields: readonly NaiveField[]): number[] {
  const text = (value: string) => {
    const bytes = [...Buffer.from(value, 'latin1')]
    if (bytes.length < 127) return [bytes.length, ...bytes]
    const length = [127]
    let rest = bytes.length - 127
    for (; rest >= 128; rest >>>= 7) length.push((rest & 127) | 128)
    return [...length, rest, ...bytes]
  }
  return fields.flatMap(([name, value]) => [0, ...text(name), ...text(value)])
}

/** The fields of a GET, with others behind. */
export function get(authority: string, path = '/', more: readonly NaiveField[] = []): NaiveField[] {
  return [[':method', 'GET'], [':scheme', 'https'], [':path', path], [':authority', authority], ...more]
}

export function post(authority: string, path = '/', more: readonly NaiveField[] = []): NaiveField[] {
  return [[':method', 'POST'], ...get(authority, path, more).slice(1)]
}

/** HEADERS with END_HEADERS. */
export function head(stream: number, fields: readonly NaiveField[], isLast = true): number[] {
  return frame(1, isLast ? 5 : 4, stream, literals(fields))
}

/** Reads frames out of bytes, however they were cut. */
export class FrameReader {
  readonly frames: SeenFrame[] = []
  readonly #table = new NaiveTable()
  #rest: Buffer = Buffer.alloc(0)

  add(bytes: Uint8Array): void {
    this.#rest = Buffer.concat([this.#rest, bytes])
    while (this.#rest.length >= 9) {
      const length = this.#rest.readUIntBE(0, 3)
      if (this.#rest.length < 9 + length) return
      const [type, flags] = [this.#rest[3]!, this.#rest[4]!]
      const payload = this.#rest.subarray(9, 9 + length)
      const stream = this.#rest.readUInt32BE(5)
      const fields = type === 1 && (flags & 4) !== 0 ? { fields: naiveDecode(this.#table, payload) } : {}
      this.frames.push({ type, flags, stream, payload, ...fields })
      this.#rest = this.#rest.subarray(9 + length)
    }
  }

  /** Of one type; on one stream, if it is told. */
  of(type: number, stream?: number): SeenFrame[] {
    return this.frames.filter(one => one.type === type && (stream === undefined || one.stream === stream))
  }

  /** The body of the answer on a stream. */
  body(stream: number): Buffer {
    return Buffer.concat(this.of(0, stream).map(({ payload }) => payload))
  }

  /** Of the last head on a stream. */
  field(stream: number, name: string): string | undefined {
    return this.of(1, stream)
      .at(-1)
      ?.fields?.find(([one]) => one === name)?.[1]
  }

  /** Whether END_STREAM came on a stream. */
  hasEnded(stream: number): boolean {
    return this.frames.some(one => one.stream === stream && one.type <= 1 && (one.flags & 1) !== 0)
  }

  /** The codes of RST_STREAM frames, by stream. */
  get resets(): Record<number, number> {
    return Object.fromEntries(this.of(3).map(({ stream, payload }) => [stream, payload.readUInt32BE(0)]))
  }

  /** The last streams and codes of GOAWAY frames. */
  get goaways(): [last: number, code: number][] {
    return this.of(7).map(({ payload }) => [payload.readUInt32BE(0), payload.readUInt32BE(4)])
  }
}

/** A connection to a server. */
export class H2Peer implements AsyncDisposable {
  readonly seen: FrameReader = new FrameReader()
  isClosed = false
  readonly socket: Socket & Partial<Pick<TLSSocket, 'alpnProtocol'>>
  readonly #waiting = new Set<() => void>()

  private constructor(socket: H2Peer['socket']) {
    this.socket = socket
    socket.on('data', (bytes: Buffer) => {
      this.seen.add(bytes)
      this.#changed()
    })
    socket.on('error', () => {})
    socket.on('close', () => {
      this.isClosed = true
      this.#changed()
    })
  }

  /** Connects. `first` follows the preface: SETTINGS without entries, unless it is told. */
  static async connect(port: number, first: readonly number[] = SETTINGS): Promise<H2Peer> {
    const socket = connect({ host: '127.0.0.1', port, ALPNProtocols: ['h2'], rejectUnauthorized: false })
    await within(
      new Promise<void>((resolve, reject) => {
        socket.once('secureConnect', resolve)
        socket.once('error', reject)
      }),
      'the handshake',
    )
    const peer = new H2Peer(socket)
    peer.send([...PREFACE, ...first])
    return peer
  }

  /** By prior knowledge, without TLS, from another address if it is told. `first`: the preface and SETTINGS, unless it is told. */
  static async plain(
    port: number,
    first: readonly number[] = [...PREFACE, ...SETTINGS],
    localAddress = '127.0.0.1',
  ): Promise<H2Peer> {
    const socket = connectPlain({ host: '127.0.0.1', port, localAddress })
    await within(new Promise<void>(resolve => socket.once('connect', resolve)), 'the connection')
    const peer = new H2Peer(socket)
    peer.send(first)
    return peer
  }

  send(...frames: readonly (readonly number[] | Uint8Array)[]): void {
    if (!this.isClosed) this.socket.write(Buffer.concat(frames.map(one => Uint8Array.from(one))))
  }

  /** Lets the other side send more: on the connection, and on a stream if it is told. */
  grow(bytes: number, stream = 0): void {
    this.send(frame(8, 0, stream, u32(bytes)))
  }

  /** Waits until what was seen satisfies `holds`. */
  async when(holds: (seen: FrameReader) => boolean, what: string): Promise<void> {
    while (!holds(this.seen)) {
      if (this.isClosed) throw new Error(`closed before ${what}: ${JSON.stringify(this.seen.goaways)}`)
      await within(this.#change(), what)
    }
  }

  /** Waits for the end of a stream's answer. */
  async answered(stream: number): Promise<FrameReader> {
    await this.when(seen => seen.hasEnded(stream), `the answer on stream ${stream}`)
    return this.seen
  }

  /** Replies to PINGs until a stream is reset. */
  async untilReset(stream: number): Promise<void> {
    let replied = 0
    await this.when(seen => {
      for (const { payload } of seen.of(6).slice(replied)) {
        this.send(frame(6, 1, 0, [...payload]))
        replied++
      }
      return stream in seen.resets
    }, 'the reset')
  }

  /** Waits until the other side has closed, and says why. */
  async end(): Promise<number | undefined> {
    while (!this.isClosed) await within(this.#change(), 'the end of the connection')
    return this.seen.goaways.at(-1)?.[1]
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.socket.destroy()
  }

  #change(): Promise<void> {
    return new Promise(resolve => this.#waiting.add(resolve))
  }

  #changed(): void {
    for (const wake of [...this.#waiting]) wake()
    this.#waiting.clear()
  }
}
