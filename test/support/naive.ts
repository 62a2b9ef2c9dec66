// The streams wire once more, written as plainly as possible from docs/protocol.md: the oracle of the fast one.
// It imports nothing from src on purpose.

export interface NaiveFrame {
  readonly type: string
  readonly stream: number
  readonly payload: readonly number[]
}

export const TYPES: readonly string[] = [
  'DATA',
  'OPEN',
  'END',
  'RESET',
  'CREDIT',
  'PING',
  'PONG',
  'CONTROL',
  'GOAWAY',
  'LINK',
  'UNLINK',
  'LINK_FREE',
]

/** Big-endian bytes of a whole number. */
export function naiveInteger(value: number | bigint, byteCount: number): number[] {
  const hex = BigInt(value)
    .toString(16)
    .padStart(byteCount * 2, '0')
  if (hex.length !== byteCount * 2) throw new RangeError(`${value} does not fit ${byteCount} bytes`)
  return (hex.match(/../g) ?? []).map(pair => Number.parseInt(pair, 16))
}

export function naiveNumber(bytes: readonly number[]): number {
  return bytes.reduce((sum, byte) => sum * 256 + byte, 0)
}

export function naiveEncode({ type, stream, payload }: NaiveFrame): number[] {
  return [
    ...naiveInteger(payload.length, 3),
    ...naiveInteger(TYPES.indexOf(type), 1),
    ...naiveInteger(stream, 4),
    ...payload,
  ]
}

/** All frames of the bytes, and how many bytes of an unfinished one are left over. */
export function naiveDecode(bytes: ArrayLike<number>): { frames: NaiveFrame[]; rest: number } {
  const all = Array.from(bytes)
  const frames: NaiveFrame[] = []
  let at = 0
  while (all.length - at >= 8) {
    const length = naiveNumber(all.slice(at, at + 3))
    if (all.length - at < 8 + length) break
    frames.push({
      type: TYPES[all[at + 3] ?? -1] ?? `type ${all[at + 3]}`,
      stream: naiveNumber(all.slice(at + 4, at + 8)),
      payload: all.slice(at + 8, at + 8 + length),
    })
    at += 8 + length
  }
  return { frames, rest: all.length - at }
}

/** Shorthand: a frame as bytes, its payload from numbers with their sizes, or from bytes. */
export function frame(
  type: string,
  stream: number,
  ...fields: readonly (readonly [number, number])[]
): Uint8Array {
  return Uint8Array.from(
    naiveEncode({ type, stream, payload: fields.flatMap(([value, size]) => naiveInteger(value, size)) }),
  )
}

/** DATA and CONTROL, quickly, for large payloads. */
export function frameOf(type: string, stream: number, payload: Uint8Array | string): Uint8Array {
  const bytes = typeof payload === 'string' ? new TextEncoder().encode(payload) : payload
  const whole = new Uint8Array(8 + bytes.length)
  whole.set([...naiveInteger(bytes.length, 3), TYPES.indexOf(type), ...naiveInteger(stream, 4)])
  whole.set(bytes, 8)
  return whole
}
