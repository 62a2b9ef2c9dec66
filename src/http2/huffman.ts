// The Huffman code of HPACK (RFC 7541 section 5.2 and appendix B), both ways, driven by tables.
//
// The code is canonical: the lengths decide it. Within one length, codes count up in the order of the symbols.

/** The number of bits of each byte's code. */
// biome-ignore format: sixteen in a row
const BITS: Uint8Array = Uint8Array.of(
  13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28,
  28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28,
  6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
  5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10,
  13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
  7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
  15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5,
  6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28,
  20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
  24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
  22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23,
  21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
  26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25,
  19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27,
  20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
  26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
)

/** The code of each byte, in the lowest bits. */
const CODES = new Uint32Array(256)
/** The last code is that of EOS: thirty ones, which never occur in a string. */
const EOS_BITS = 30
const SHORTEST_BITS = 5

// The decoder reads half a byte at a time. A state is an inner node of the code's tree. Each entry has the next state
// and at most one completed byte, because no code is shorter than half a byte.
const STATES = 256
const EMITS = 0x10000
const FAILS = 0x20000
const steps = new Int32Array(STATES * 16)
/** The states, marked 1, in which a string may end: at the root, or after at most seven ones (RFC 7541 section 5.2). */
const mayEnd = new Uint8Array(STATES)

function build(): void {
  // The children of node n are at 2n and 2n + 1: 0 for none yet, a node, or a byte with LEAF.
  const LEAF = 0x1000
  const children = new Int32Array(STATES * 2)
  let nodes = 1
  let code = 0
  for (let length = SHORTEST_BITS; length <= EOS_BITS; length++, code <<= 1)
    for (let byte = 0; byte < 256; byte++) {
      if (BITS[byte] !== length) continue
      CODES[byte] = code
      let node = 0
      for (let bit = length - 1; bit > 0; bit--) {
        const at = 2 * node + ((code >>> bit) & 1)
        if (children[at] === 0) children[at] = nodes++
        node = children[at]!
      }
      children[2 * node + (code & 1)] = LEAF | byte
      code++
    }
  for (let node = 0, ones = 0; ones < 8; ones++, node = children[2 * node + 1]!) mayEnd[node] = 1
  for (let state = 0; state < STATES; state++)
    for (let half = 0; half < 16; half++) {
      let node = state
      let entry = 0
      for (let bit = 3; bit >= 0 && entry !== FAILS; bit--) {
        const child = children[2 * node + ((half >>> bit) & 1)]!
        // Only EOS is missing in the tree.
        if (child === 0) entry = FAILS
        else if (child & LEAF) entry = EMITS | ((child & 0xff) << 8)
        node = child & LEAF ? 0 : child
      }
      steps[state * 16 + half] = entry | node
    }
}
build()

/** Returns the maximum decoded size of `length` bytes: no code is shorter than five bits. */
export function maxDecodedBytes(length: number): number {
  return Math.floor((length * 8) / SHORTEST_BITS) + 1
}

/**
 * Decodes bytes[start, end) to `into` from `at` on, which has room for `maxDecodedBytes`. Returns the end, or -1 for
 * an invalid Huffman string: with EOS, with padding of eight bits or more, or with padding that is not all ones.
 */
export function decodeHuffman(
  bytes: Uint8Array,
  start: number,
  end: number,
  into: Uint8Array,
  at: number,
): number {
  let to = at
  let state = 0
  for (let from = start; from < end; from++) {
    const byte = bytes[from]!
    const high = steps[(state << 4) | (byte >> 4)]!
    if (high & EMITS) into[to++] = high >> 8
    else if (high & FAILS) return -1
    const low = steps[((high & 0xff) << 4) | (byte & 15)]!
    if (low & EMITS) into[to++] = low >> 8
    else if (low & FAILS) return -1
    state = low & 0xff
  }
  return mayEnd[state] === 1 ? to : -1
}

export function huffmanLength(bytes: Uint8Array, start: number, end: number): number {
  let bits = 0
  for (let at = start; at < end; at++) bits += BITS[bytes[at]!]!
  return (bits + 7) >>> 3
}

/** Writes the coded form of bytes[start, end) to `into` from `at` on. Returns the end. */
export function encodeHuffman(
  bytes: Uint8Array,
  start: number,
  end: number,
  into: Uint8Array,
  at: number,
): number {
  let to = at
  let pending = 0
  let count = 0
  for (let from = start; from < end; from++) {
    const byte = bytes[from]!
    let code = CODES[byte]!
    let bits = BITS[byte]!
    // Never more than seven bits are pending, so 24 more fit into the 31 that stay positive.
    if (bits > 24) {
      bits -= 16
      pending = (pending << bits) | (code >>> 16)
      count += bits
      for (; count >= 8; count -= 8) into[to++] = pending >>> (count - 8)
      pending &= (1 << count) - 1
      code &= 0xffff
      bits = 16
    }
    pending = (pending << bits) | code
    count += bits
    for (; count >= 8; count -= 8) into[to++] = pending >>> (count - 8)
    pending &= (1 << count) - 1
  }
  if (count > 0) into[to++] = (pending << (8 - count)) | (0xff >>> count)
  return to
}
