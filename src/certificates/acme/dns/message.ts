// DNS messages (RFC 1035, 4): the parts that updates and their responses need.
//
//   │ id │ flags │ four counts │ questions or zone │ answers or prerequisites │ authorities or updates │ additional │

export const TYPE_SOA = 6
export const TYPE_TXT = 16
export const TYPE_TSIG = 250
export const CLASS_IN = 1
/** The class of an update that removes one record (RFC 2136, 2.5.4). */
export const CLASS_NONE = 254
export const CLASS_ANY = 255
const HEADER_BYTES = 12
const MAX_LABEL_BYTES = 63
const MAX_NAME_BYTES = 255

export function u16(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(values.length * 2)
  values.forEach((value, index) => {
    bytes.writeUInt16BE(value, index * 2)
  })
  return bytes
}

export function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

/** Returns a name in its canonical form: lower case, not compressed. */
export function nameBytes(name: string): Buffer {
  const labels = name.toLowerCase().replace(/\.$/, '').split('.').filter(Boolean)
  const parts = labels.map(label => Buffer.from(label, 'latin1'))
  if (parts.some(({ length }) => length > MAX_LABEL_BYTES))
    throw new Error(`${name} has a label that is too long`)
  const bytes = Buffer.concat([...parts.flatMap(part => [Buffer.of(part.length), part]), Buffer.of(0)])
  if (bytes.length > MAX_NAME_BYTES) throw new Error(`${name} is too long`)
  return bytes
}

export function recordBytes(
  name: string,
  type: number,
  klass: number,
  ttl: number,
  data: Uint8Array,
): Buffer {
  return Buffer.concat([nameBytes(name), u16(type, klass), u32(ttl), u16(data.length), data])
}

/** Returns the data of a TXT record with one text of up to 255 bytes; a challenge is shorter. */
export function textBytes(text: string): Buffer {
  const bytes = Buffer.from(text)
  if (bytes.length > 255) throw new Error('a text may have 255 bytes')
  return Buffer.concat([Buffer.of(bytes.length), bytes])
}

export interface AnswerRecord {
  /** The position of its first byte in the message. */
  readonly at: number
  readonly name: string
  readonly type: number
  readonly data: Buffer
}

export interface DnsAnswer {
  readonly id: number
  readonly code: number
  readonly isTruncated: boolean
  readonly isAnswer: boolean
  /** The last record of the message, which is the signature if there is one. */
  readonly last: AnswerRecord | undefined
}

/** Parses a message. Throws if it is invalid. */
export function readAnswer(message: Buffer): DnsAnswer {
  if (message.length < HEADER_BYTES) throw new Error('the answer is too short')
  const flags = message.readUInt16BE(2)
  const questions = message.readUInt16BE(4)
  const records = message.readUInt16BE(6) + message.readUInt16BE(8) + message.readUInt16BE(10)
  let at = HEADER_BYTES
  for (let count = 0; count < questions; count++) at = readName(message, at).end + 4
  let last: AnswerRecord | undefined
  for (let count = 0; count < records; count++) {
    const { name, end } = readName(message, at)
    if (end + 10 > message.length) throw new Error('the answer ends early')
    const dataAt = end + 10
    const dataEnd = dataAt + message.readUInt16BE(end + 8)
    if (dataEnd > message.length) throw new Error('the answer ends early')
    last = { at, name, type: message.readUInt16BE(end), data: message.subarray(dataAt, dataEnd) }
    at = dataEnd
  }
  return {
    id: message.readUInt16BE(0),
    code: flags & 0xf,
    isTruncated: (flags & 0x0200) !== 0,
    isAnswer: (flags & 0x8000) !== 0,
    last,
  }
}

/**
 * Reads a name, which may refer to an earlier position (section 4.1.4). Each reference must be to an earlier position
 * than the last, so no loop is possible.
 */
export function readName(message: Buffer, start: number): { readonly name: string; readonly end: number } {
  const labels: string[] = []
  let at = start
  let end: number | undefined
  let lowest = start
  for (let length = 0; ; ) {
    const size = message[at]
    if (size === undefined) throw new Error('a name in the answer ends early')
    if (size === 0) return { name: labels.join('.'), end: end ?? at + 1 }
    if (size >= 0xc0) {
      if (at + 1 >= message.length) throw new Error('a name in the answer ends early')
      const target = message.readUInt16BE(at) & 0x3fff
      end ??= at + 2
      if (target >= lowest) throw new Error('a name in the answer points forward')
      lowest = target
      at = target
      continue
    }
    length += size + 1
    if (size > MAX_LABEL_BYTES || length > MAX_NAME_BYTES || at + 1 + size > message.length)
      throw new Error('a name in the answer is too long')
    labels.push(message.toString('latin1', at + 1, at + 1 + size).toLowerCase())
    at += 1 + size
  }
}
