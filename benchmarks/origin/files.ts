// The bytes that every app serves at `/NAME`, the same everywhere.

export const FILE_SIZES: Readonly<Record<string, number>> = {
  '20': 20,
  '1k': 1024,
  '10k': 10_240,
  '64k': 65_536,
  '100k': 102_400,
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
