// HTTP/2 frames written and listed plainly from RFC 9113, without any code of src.

/** A frame as bytes: header and payload. The length can be a lie. */
export function frame(
  type: number,
  flags: number,
  stream: number,
  payload: readonly number[] | Uint8Array | string = [],
  length?: number,
): number[] {
  const bytes = typeof payload === 'string' ? [...Buffer.from(payload, 'latin1')] : [...payload]
  const id = [24, 16, 8, 0].map(shift => (stream >>> shift) & 255)
  const size = length ?? bytes.length
  return [size >>> 16, (size >>> 8) & 255, size & 255, type, flags, ...id, ...bytes]
}

/** A number as four bytes. */
export function u32(value: number): number[] {
  return [24, 16, 8, 0].map(shift => (value >>> shift) & 255)
}

export const PREFACE: readonly number[] = [...Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n')]

/** What both ends send first. */
export const SETTINGS: readonly number[] = frame(4, 0, 0)
