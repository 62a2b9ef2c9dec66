// Signed DNS messages (RFC 8945) with hmac-sha256.

import { createHmac, timingSafeEqual } from 'node:crypto'
import { CLASS_ANY, nameBytes, readAnswer, readName, recordBytes, TYPE_TSIG, u16, u32 } from './message.ts'

const ALGORITHM = 'hmac-sha256'
/** The tolerated difference of clocks in seconds, as RFC 8945 section 10 recommends. */
const FUDGE = 300
const MAC_BYTES = 32

/** A key that the name server also has. */
export interface TsigKey {
  readonly name: string
  /** The secret in base64, as name servers write it. */
  readonly secret: string
}

export interface SignedMessage {
  readonly bytes: Buffer
  readonly mac: Buffer
}

/** Names of the errors that a signature can have. */
const TSIG_ERRORS: Readonly<Record<number, string>> = {
  16: 'BADSIG: the secret is another',
  17: 'BADKEY: it does not know this key',
  18: 'BADTIME: the clocks differ by more than five minutes',
  22: 'BADTRUNC',
}

export function sign(message: Buffer, key: TsigKey, nowMs: number): SignedMessage {
  const time = timeBytes(Math.floor(nowMs / 1_000))
  const mac = macOf(key, [message, variables(key.name, time, FUDGE, 0, Buffer.alloc(0))])
  const id = message.readUInt16BE(0)
  const data = Buffer.concat([nameBytes(ALGORITHM), time, u16(FUDGE, mac.length), mac, u16(id, 0, 0)])
  const bytes = Buffer.concat([message, recordBytes(key.name, TYPE_TSIG, CLASS_ANY, 0, data)])
  bytes.writeUInt16BE(message.readUInt16BE(10) + 1, 10)
  return { bytes, mac }
}

/** Returns why the response to a signed request cannot be trusted. `undefined` if it can. */
export function signatureFault(
  answer: Buffer,
  key: TsigKey,
  requestMac: Buffer,
  nowMs: number,
): string | undefined {
  const { last } = readAnswer(answer)
  if (last?.type !== TYPE_TSIG) return 'it is not signed'
  const { data } = last
  const { name: algorithm, end } = readName(data, 0)
  if (end + 10 > data.length) return 'its signature ends early'
  const time = data.subarray(end, end + 6)
  const fudge = data.readUInt16BE(end + 6)
  const macEnd = end + 10 + data.readUInt16BE(end + 8)
  if (macEnd + 6 > data.length) return 'its signature ends early'
  const mac = data.subarray(end + 10, macEnd)
  const error = data.readUInt16BE(macEnd + 2)
  if (error !== 0) return TSIG_ERRORS[error] ?? `TSIG error ${error}`
  if (last.name !== nameOf(key.name) || algorithm !== ALGORITHM) return 'it is signed with another key'
  // The message before it was signed: without the signature, and with the id of the request.
  const unsigned = Buffer.from(answer.subarray(0, last.at))
  unsigned.writeUInt16BE(data.readUInt16BE(macEnd), 0)
  unsigned.writeUInt16BE(answer.readUInt16BE(10) - 1, 10)
  const other = data.subarray(macEnd + 6)
  const parts = [u16(requestMac.length), requestMac, unsigned, variables(key.name, time, fudge, error, other)]
  const isGenuine = mac.length === MAC_BYTES && timingSafeEqual(mac, macOf(key, parts))
  if (!isGenuine) return 'its signature is wrong'
  const seconds = time.readUIntBE(0, 6)
  return Math.abs(nowMs / 1_000 - seconds) > fudge ? TSIG_ERRORS[18] : undefined
}

const nameOf = (name: string): string => name.toLowerCase().replace(/\.$/, '')

function macOf({ secret }: TsigKey, parts: readonly Buffer[]): Buffer {
  const hmac = createHmac('sha256', Buffer.from(secret, 'base64'))
  for (const part of parts) hmac.update(part)
  return hmac.digest()
}

/** Returns the signed bytes in addition to the message (4.3.3). */
function variables(name: string, time: Buffer, fudge: number, error: number, other: Buffer): Buffer {
  const algorithm = nameBytes(ALGORITHM)
  return Buffer.concat([
    nameBytes(name),
    u16(CLASS_ANY),
    u32(0),
    algorithm,
    time,
    u16(fudge, error, other.length),
    other,
  ])
}

function timeBytes(seconds: number): Buffer {
  const bytes = Buffer.alloc(6)
  bytes.writeUIntBE(seconds, 0, 6)
  return bytes
}
