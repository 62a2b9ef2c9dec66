// WebSocket frames made the slow and plain way, as the oracle for wire/websocket.ts.

import type { WebSocketHandler } from '../../src/wire/websocket.ts'

export interface PlainFrame {
  readonly opcode: number
  readonly payload?: Uint8Array | string
  /** Default `true`. */
  readonly fin?: boolean
  readonly rsv?: number
  readonly mask?: readonly [number, number, number, number]
  /** Declares another length than the payload has. */
  readonly declared?: bigint
  /** Bytes that the length takes. Default: as few as possible. */
  readonly lengthBytes?: 0 | 2 | 8
}

export const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text)

/** A byte at a time, straight from the drawing in RFC 6455 section 5.2. */
export function plainFrame(frame: PlainFrame): Uint8Array {
  const payload =
    typeof frame.payload === 'string' ? bytesOf(frame.payload) : (frame.payload ?? new Uint8Array())
  const length = frame.declared ?? BigInt(payload.length)
  const lengthBytes = frame.lengthBytes ?? (length < 126n ? 0 : length < 65_536n ? 2 : 8)
  const maskBit = frame.mask ? 128 : 0
  const out: number[] = [((frame.fin ?? true) ? 128 : 0) + (frame.rsv ?? 0) * 16 + frame.opcode]
  out.push(maskBit + (lengthBytes === 0 ? Number(length) : lengthBytes === 2 ? 126 : 127))
  for (let byte = lengthBytes - 1; byte >= 0; byte--) out.push(Number((length >> BigInt(8 * byte)) & 255n))
  if (frame.mask) out.push(...frame.mask)
  for (let at = 0; at < payload.length; at++) out.push(payload[at]! ^ (frame.mask?.[at % 4] ?? 0))
  return Uint8Array.from(out)
}

export function joined(parts: readonly Uint8Array[]): Uint8Array {
  return new Uint8Array(Buffer.concat(parts))
}

/** What a parser said, in order; binary pieces that follow each other are one. */
export class ParserLog implements WebSocketHandler {
  readonly entries: string[] = []
  readonly #binary: Uint8Array[] = []

  binary(bytes: Uint8Array, start = 0, end: number = bytes.length): void {
    this.#binary.push(bytes.slice(start, end))
  }
  text(message: string): void {
    this.entries.push(`text ${message}`)
  }
  ping(payload: Uint8Array): void {
    this.entries.push(`ping ${Buffer.from(payload).toString('hex')}`)
  }
  pong(payload: Uint8Array): void {
    this.entries.push(`pong ${Buffer.from(payload).toString('hex')}`)
  }
  closed(code: number, reason: string): void {
    this.entries.push(`closed ${code} ${reason}`)
  }
  failed(code: number, reason: string): void {
    this.entries.push(`failed ${code}`)
    this.failure = reason
  }
  failure: string | undefined

  /** The payload of all binary messages. */
  get bytes(): Uint8Array {
    return joined(this.#binary)
  }
}
