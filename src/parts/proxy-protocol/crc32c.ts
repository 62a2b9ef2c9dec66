// CRC-32C (Castagnoli, RFC 4960 appendix B): the checksum that a PROXY header may carry.

/** The polynomial 0x1edc6f41 with its bits reversed. */
const POLYNOMIAL = 0x82f6_3b78

const TABLE: Uint32Array = Uint32Array.from({ length: 256 }, (_, byte) => {
  let rest = byte
  for (let bit = 0; bit < 8; bit++) rest = rest & 1 ? (rest >>> 1) ^ POLYNOMIAL : rest >>> 1
  return rest
})

/** Returns the checksum of all bytes, as an unsigned number of 32 bits. */
export function crc32c(bytes: Uint8Array): number {
  let rest = 0xffff_ffff
  for (const byte of bytes) rest = (rest >>> 8) ^ TABLE[(rest ^ byte) & 0xff]!
  return (rest ^ 0xffff_ffff) >>> 0
}
