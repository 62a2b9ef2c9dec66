// Bodies that are known at every place: byte n of the body for request i is (n + i) mod 251.

const PERIOD = 251

/** Long enough for every piece that is compared or sent at once. */
const LONGEST = 4 * 1024 * 1024

const bytes: Buffer = Buffer.alloc(LONGEST + PERIOD)
for (let at = 0; at < PERIOD; at++) bytes[at] = at
for (let length = PERIOD; length < bytes.length; length *= 2) bytes.copy(bytes, length, 0, length)

/** `length` bytes of the body for request `id`, from `from` on. */
export function body(id: number, length: number, from = 0): Buffer<ArrayBuffer> {
  const start = (id + from) % PERIOD
  return bytes.subarray(start, start + length) as Buffer<ArrayBuffer> // made by Buffer.alloc
}

export function isBody(id: number, from: number, piece: Uint8Array): boolean {
  for (let at = 0; at < piece.length; at += LONGEST) {
    const part = piece.subarray(at, at + LONGEST)
    if (Buffer.compare(part, body(id, part.length, from + at)) !== 0) return false
  }
  return true
}
