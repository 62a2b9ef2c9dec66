// Masks WebSocket payloads (RFC 6455 section 5.3): each byte that a client sends is combined with a byte of a key.

import { copyBytes } from '../bytes.ts'

/**
 * Masks or unmasks `bytes[start, end)`. The low byte of `key` belongs to the first byte of the payload, which is
 * `offset` bytes before `start`.
 */
export function maskInPlace(bytes: Uint8Array, start: number, end: number, key: number, offset = 0): void {
  const turned = rotated(key, offset)
  if (end - start < MIN_WORDWISE_BYTES || !IS_LITTLE_ENDIAN) return maskBytes(bytes, start, end, turned)
  const wide = end - start >= MIN_WIDE_BYTES && wideMask()
  if (!wide) return maskWords(bytes, start, end, turned)
  const { mask, room } = wide
  // The piece size is a multiple of the key's length, so each piece begins with the key's first byte.
  for (let at = start; at < end; at += PIECE_BYTES) {
    const count = Math.min(end - at, PIECE_BYTES)
    copyBytes(bytes, at, at + count, room, 0)
    mask(count, turned)
    copyBytes(room, 0, count, bytes, at)
  }
}

/** Masks through a view of 32-bit words. Making the view costs 300 ns. */
function maskWords(bytes: Uint8Array, start: number, end: number, key: number): void {
  const aligned = start + (-(bytes.byteOffset + start) & 3)
  maskBytes(bytes, start, aligned, key)
  const turned = rotated(key, aligned - start)
  const words = new Int32Array(bytes.buffer, bytes.byteOffset + aligned, (end - aligned) >> 2)
  for (let index = 0; index < words.length; index++) words[index]! ^= turned
  maskBytes(bytes, aligned + (words.length << 2), end, turned)
}

/** Masks byte by byte. It is a function of its own because in a larger one short runs took six times as long. */
function maskBytes(bytes: Uint8Array, start: number, end: number, key: number): void {
  const first = key & 0xff
  const second = (key >>> 8) & 0xff
  const third = (key >>> 16) & 0xff
  const fourth = key >>> 24
  let at = start
  for (const last = end - 3; at < last; at += 4) {
    bytes[at]! ^= first
    bytes[at + 1]! ^= second
    bytes[at + 2]! ^= third
    bytes[at + 3]! ^= fourth
  }
  if (at < end) bytes[at]! ^= first
  if (at + 1 < end) bytes[at + 1]! ^= second
  if (at + 2 < end) bytes[at + 2]! ^= third
}

/** Returns the key rotated by `count` bytes. */
function rotated(key: number, count: number): number {
  const shift = (count & 3) << 3
  return shift === 0 ? key : (key >>> shift) | (key << (32 - shift))
}

// ── Long runs ──────────────────────────────────────────────────────────────────────────────────────────────────

/** The minimum size for words. For fewer bytes, the view costs more than it saves. */
const MIN_WORDWISE_BYTES = 1_024
/** Whether the machine is little-endian, because the view of words uses its byte order. */
const IS_LITTLE_ENDIAN = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1
/**
 * The minimum size for the wide mask. It would be faster for smaller sizes too, but a sender of small messages should
 * not pay its memory.
 */
const MIN_WIDE_BYTES = 32_768
/**
 * The size of a piece that is masked at once, so that it stays in a near cache. Pieces of 64 KB take 10 to 50 %
 * longer for each byte.
 */
const PIECE_BYTES = 16_384

interface WideMask {
  /** Masks the first `count` bytes of the memory, and up to 63 after them. */
  mask(this: void, count: number, key: number): void
  readonly room: Uint8Array
}

/**
 * The program that masks sixteen bytes at once, which JavaScript cannot: 1.4 MB in 0.13 ms with the copies, where a loop over
 * words of four bytes takes 0.35 ms. One page of 64 KiB, and (func (export "mask") (param $count i32) (param $key i32) (local
 * $at i32) (local $keys v128) (local.set $keys (i32x4.splat (local.get $key))) (loop $next (v128.store offset=0 (local.get $at)
 * (v128.xor (v128.load offset=0 (local.get $at)) (local.get $keys))) ... the same at 16, 32 and 48 (local.set $at (i32.add
 * (local.get $at) (i32.const 64))) (br_if $next (i32.lt_u (local.get $at) (local.get $count)))))
 */
const WIDE_MASK =
  'AGFzbQEAAAABBgFgAn9/AAMCAQAFAwEAAQcRAgZtZW1vcnkCAARtYXNrAAAKXgFcAgF/AXsgAf0RIQMDQCACIAL9AAQAIAP9Uf0LBAAgAiAC/QAE' +
  'ECAD/VH9CwQQIAIgAv0ABCAgA/1R/QsEICACIAL9AAQwIAP9Uf0LBDAgAkHAAGoiAiAASQ0ACws='

/** The wide mask, once made. `false` if this runtime has none. */
let made: WideMask | false | undefined

/** Makes the wide mask at its first use. It takes a millisecond, and up to 2.4 MB of memory. */
function wideMask(): WideMask | false {
  made ??= makeWideMask()
  return made
}

function makeWideMask(): WideMask | false {
  try {
    const module = new WebAssembly.Module(Uint8Array.from(atob(WIDE_MASK), one => one.charCodeAt(0)))
    const { mask, memory } = new WebAssembly.Instance(module).exports as {
      readonly mask: WideMask['mask']
      readonly memory: WebAssembly.Memory
    } // the exports of WIDE_MASK
    return { mask, room: new Uint8Array(memory.buffer) }
  } catch {
    // This runtime may not compile at run time, or the processor lacks such instructions.
    return false
  }
}
