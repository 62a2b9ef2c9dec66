// DER (ITU-T X.690): the parts that certificate requests and challenge certificates need.
//
//   │ tag │ length: one byte up to 127, otherwise 0x80 + n and n bytes │ content │

const concat = (parts: readonly Uint8Array[]): Buffer => Buffer.concat(parts)

export function element(tag: number, ...parts: readonly Uint8Array[]): Buffer {
  const content = concat(parts)
  const length = content.length
  if (length < 0x80) return concat([Uint8Array.of(tag, length), content])
  const bytes: number[] = []
  for (let rest = length; rest > 0; rest = Math.floor(rest / 256)) bytes.unshift(rest % 256)
  return concat([Uint8Array.of(tag, 0x80 | bytes.length, ...bytes), content])
}

export const sequence = (...parts: readonly Uint8Array[]): Buffer => element(0x30, ...parts)
export const set = (...parts: readonly Uint8Array[]): Buffer => element(0x31, ...parts)
export const octetString = (bytes: Uint8Array): Buffer => element(0x04, bytes)
export const bitString = (bytes: Uint8Array): Buffer => element(0x03, Uint8Array.of(0), bytes)
export const utf8String = (text: string): Buffer => element(0x0c, Buffer.from(text))
export const TRUE: Buffer = element(0x01, Uint8Array.of(0xff))
/** Returns `[number]`, constructed. */
export const tagged = (number: number, ...parts: readonly Uint8Array[]): Buffer =>
  element(0xa0 | number, ...parts)

/** Returns the integer of big-endian bytes that are not negative. A leading one bit gets a zero byte before it. */
export function integer(bytes: Uint8Array): Buffer {
  let start = 0
  while (start < bytes.length - 1 && bytes[start] === 0) start++
  const shortest = bytes.subarray(start)
  return shortest[0]! & 0x80 ? element(0x02, Uint8Array.of(0), shortest) : element(0x02, shortest)
}

export function objectId(dotted: string): Buffer {
  const [first, second, ...rest] = dotted.split('.').map(Number)
  const bytes = [first! * 40 + second!]
  for (const number of rest) {
    const digits = [number & 0x7f]
    for (let high = number >> 7; high > 0; high >>= 7) digits.unshift((high & 0x7f) | 0x80)
    bytes.push(...digits)
  }
  return element(0x06, Uint8Array.from(bytes))
}

/** Returns UTCTime up to 2049, and GeneralizedTime after that, as in RFC 5280 section 4.1.2.5. */
export function time(ms: number): Buffer {
  const digits = new Date(ms).toISOString().replace(/[-:T]/g, '').slice(0, 14)
  return digits < '2050'
    ? element(0x17, Buffer.from(`${digits.slice(2)}Z`))
    : element(0x18, Buffer.from(`${digits}Z`))
}

export function pem(label: string, der: Uint8Array): string {
  const lines =
    Buffer.from(der)
      .toString('base64')
      .match(/.{1,64}/g) ?? []
  return `-----BEGIN ${label}-----\n${lines.join('\n')}\n-----END ${label}-----\n`
}
