// The bytes that every app serves at `/NAME`, the same everywhere.

export const FILE_SIZES: Readonly<Record<string, number>> = {
  '20': 20,
  '1k': 1024,
  '2k': 2_048,
  '4k': 4_096,
  '8k': 8_192,
  '10k': 10_240,
  '16k': 16_384,
  '24k': 24_576,
  '32k': 32_768,
  '48k': 49_152,
  '64k': 65_536,
  '100k': 102_400,
  '256k': 262_144,
  '512k': 524_288,
  '1m': 1_048_576,
  '10m': 10_485_760,
  '100m': 104_857_600,
}

/** Bytes that betray a shifted, repeated or missing piece: a running counter, not zeros. */
export function fileBytes(size: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(size)
  const words = new Uint32Array(bytes.buffer, 0, size >> 2)
  for (let i = 0; i < words.length; i++) words[i] = Math.imul(i, 2_654_435_761)
  return bytes
}

/** Pieces of an answer that is written bit by bit. */
export const PIECES = 8
/** Server-sent events of one answer. */
export const EVENTS: readonly string[] = Array.from(
  { length: 20 },
  (_, i) => `id: ${i}\ndata: {"n":${i},"at":"2026-11-23"}\n\n`,
)

/** Uploads of an app are `a`s, or the counter of `fileBytes`. */
const LETTERS: Uint8Array<ArrayBuffer> = new Uint8Array(1 << 20).fill(97)
let counter: Uint8Array<ArrayBuffer> | undefined
function largest(): Uint8Array<ArrayBuffer> {
  counter ??= fileBytes(Math.max(...Object.values(FILE_SIZES)))
  return counter
}

/** Compares each byte of an upload as it comes. */
export class Upload {
  total = 0
  #isRight = true
  #expected: Uint8Array<ArrayBuffer> | undefined

  take(piece: Uint8Array): void {
    if (piece.length === 0) return
    this.#expected ??= piece[0] === LETTERS[0] ? LETTERS : largest()
    const wanted = this.#expected.subarray(this.total, this.total + piece.length)
    this.#isRight &&= Buffer.compare(piece, wanted) === 0
    this.total += piece.length
  }

  /** The number of bytes, and a word more where they are not those that were sent. */
  get verdict(): string {
    return this.#isRight ? String(this.total) : `${this.total} bytes, wrong`
  }
}
