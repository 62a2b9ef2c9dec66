// Reads the requested name (SNI) from the first bytes of a TLS connection, without decrypting or replying.
//
//   record      │ 22 │ 3, any │ length │ fragment of the handshake … │   the hello may lie in several records,
//   handshake   │ 1 │ length, 3 bytes │ hello │                         and a record in several reads
//   hello       │ version │ random, 32 │ session id │ ciphers │ compressions │ extensions │
//
// RFC 8446 sections 4.1.2 and 5.1, RFC 6066 section 3 (server_name), RFC 7301 (ALPN).

import { ByteBuffer } from '../bytes.ts'
import { parseIp } from './ip-address.ts'

export type HelloVerdict =
  /** All bytes so far may begin a hello. */
  | { readonly kind: 'more' }
  /** The name in lower case, without a dot at its end. `protocols`: those that ALPN offers, in its order; empty without ALPN. */
  | { readonly kind: 'name'; readonly name: string; readonly protocols: readonly string[] }
  /** A valid hello without a host name, or with an address in place of one. */
  | { readonly kind: 'nameless'; readonly protocols: readonly string[] }
  /** The bytes are not TLS. */
  | { readonly kind: 'foreign' }
  /** The bytes begin like TLS, but are not a hello that this reader understands completely. `reason` is for a log. */
  | { readonly kind: 'invalid'; readonly reason: string }

/**
 * The maximum size of a hello with its record headers. Browsers with post-quantum keys send up to 2 KB in two segments; a session
 * ticket can add a few. One record can hold 16 KiB, which is also the limit of BoringSSL and nginx's preread.
 */
export const MAX_HELLO_BYTES = 16_384

const HANDSHAKE = 22
const CLIENT_HELLO = 1
const RECORD_HEADER_BYTES = 5
const HELLO_HEADER_BYTES = 4
const SERVER_NAME = 0
const ALPN = 16

const MORE: HelloVerdict = { kind: 'more' }
const FOREIGN: HelloVerdict = { kind: 'foreign' }

/**
 * Reads one hello, however its bytes were divided. Never throws. It has a copy of its own: a caller that passes the
 * connection on must keep the bytes it gave, `MAX_HELLO_BYTES` and the last read at most.
 */
export class ClientHelloReader {
  /** The handshake message, collected from the records. */
  readonly #hello: ByteBuffer = new ByteBuffer()
  readonly #header: Uint8Array = new Uint8Array(RECORD_HEADER_BYTES)
  #headerLength = 0
  /** The number of bytes of the current record still to come. */
  #recordLeft = 0
  /** The number of bytes so far, record headers included. */
  #taken = 0

  /** Takes the next bytes. After any verdict but `more`, the reader cannot be used again. */
  receive(bytes: Uint8Array): HelloVerdict {
    let at = 0
    while (at < bytes.length) {
      if (this.#recordLeft === 0) {
        const refusal = this.#takeHeaderByte(bytes[at++]!)
        if (refusal !== undefined) return refusal
        continue
      }
      const count = Math.min(this.#recordLeft, bytes.length - at)
      const refusal = this.#takeFragment(bytes.subarray(at, at + count))
      if (refusal !== undefined) return refusal
      at += count
    }
    return MORE
  }

  #takeHeaderByte(byte: number): HelloVerdict | undefined {
    const index = this.#headerLength++
    this.#header[index] = byte
    this.#taken++
    // Bytes that begin like TLS and then differ are invalid TLS.
    if (index === 0 && byte !== HANDSHAKE)
      return this.#isFirstRecord ? FOREIGN : invalid('another record comes within the hello')
    // The minor version has no meaning (RFC 8446 section 5.1).
    if (index === 1 && byte !== 3)
      return this.#isFirstRecord ? FOREIGN : invalid('a record is of another version')
    if (this.#headerLength < RECORD_HEADER_BYTES) return undefined
    this.#headerLength = 0
    this.#recordLeft = readU16(this.#header, 3)
    if (this.#recordLeft === 0) return invalid('a record is empty')
    return this.#checkSize(this.#recordLeft) ?? this.#checkRecord()
  }

  get #isFirstRecord(): boolean {
    return this.#taken <= RECORD_HEADER_BYTES
  }

  #takeFragment(piece: Uint8Array): HelloVerdict | undefined {
    this.#hello.add(piece)
    this.#taken += piece.length
    this.#recordLeft -= piece.length
    if (this.#hello.all[0] !== CLIENT_HELLO) return invalid('the first message is no ClientHello')
    const refusal = this.#checkRecord()
    if (refusal !== undefined || this.#missing !== 0) return refusal
    return readHello(new Bytes(this.#hello.all, HELLO_HEADER_BYTES, this.#hello.length))
  }

  /** The number of bytes of the hello still to come. `undefined` before its length is known. */
  get #missing(): number | undefined {
    const { all, length } = this.#hello
    return length < HELLO_HEADER_BYTES ? undefined : HELLO_HEADER_BYTES + readU24(all, 1) - length
  }

  /** Checks that the record ends with the hello at the latest. No data may follow it before the reply. */
  #checkRecord(): HelloVerdict | undefined {
    const missing = this.#missing
    if (missing === undefined) return undefined
    // Early data comes in records of its own.
    if (missing < 0 || this.#recordLeft > missing) return invalid('a record goes on behind the hello')
    return this.#checkSize(missing)
  }

  /** Refuses a hello that needs at least `announced` more bytes, if that is too many. */
  #checkSize(announced: number): HelloVerdict | undefined {
    if (this.#taken + announced <= MAX_HELLO_BYTES) return undefined
    return invalid(`the hello is longer than ${MAX_HELLO_BYTES} bytes`)
  }
}

function invalid(reason: string): HelloVerdict {
  return { kind: 'invalid', reason }
}

function readHello(hello: Bytes): HelloVerdict {
  const major = hello.byte()
  hello.skip(1 + 32)
  const sessionId = hello.vector(1)
  const ciphers = hello.vector(2)
  const compressions = hello.vector(1)
  if (
    hello.isBroken ||
    major !== 3 ||
    sessionId.size > 32 ||
    ciphers.size < 2 ||
    ciphers.size % 2 !== 0 ||
    compressions.size < 1
  ) {
    return invalid('the hello is malformed')
  }
  // TLS 1.2 allows a hello without extensions.
  if (hello.size === 0) return { kind: 'nameless', protocols: [] }
  const extensions = hello.vector(2)
  if (hello.isBroken || hello.size > 0) return invalid('the extensions do not fill the hello')
  return readExtensions(extensions)
}

function readExtensions(extensions: Bytes): HelloVerdict {
  const seen = new Set<number>()
  let name: string | undefined
  let protocols: readonly string[] | undefined = []
  while (extensions.size > 0) {
    const type = extensions.u16()
    const body = extensions.vector(2)
    if (extensions.isBroken) return invalid('an extension is cut off')
    if (seen.has(type)) return invalid('an extension comes twice')
    seen.add(type)
    if (type === SERVER_NAME) {
      name = readServerName(body)
      if (name === undefined) return invalid('the server name is not one host name')
    } else if (type === ALPN) {
      protocols = readProtocols(body)
      if (protocols === undefined) return invalid('the list of protocols is malformed')
    }
  }
  return name === undefined || name === ''
    ? { kind: 'nameless', protocols }
    : { kind: 'name', name, protocols }
}

/** Returns a host name; empty for an address, which is not a name; `undefined` for anything else. */
function readServerName(body: Bytes): string | undefined {
  const list = body.vector(2)
  const type = list.byte()
  const value = list.vector(2)
  // The list may have one name of each type, and only one type exists.
  if (body.isBroken || body.size > 0 || list.isBroken || list.size > 0 || type !== 0) return undefined
  const text = value.text().toLowerCase()
  // RFC 6066 allows neither addresses nor a trailing dot. Clients that send them do so without intent.
  if (parseIp(text) !== undefined) return ''
  const name = text.endsWith('.') ? text.slice(0, -1) : text
  return name.length <= 253 && name.split('.').every(label => LABEL.test(label)) ? name : undefined
}

/** A pattern for a label. Underscores are not allowed in host names, but some DNS names have them, as in the Host of HTTP. */
const LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/

function readProtocols(body: Bytes): readonly string[] | undefined {
  const list = body.vector(2)
  if (body.isBroken || body.size > 0 || list.size === 0) return undefined
  const protocols: string[] = []
  while (list.size > 0) {
    const protocol = list.vector(1)
    if (list.isBroken || protocol.size === 0) return undefined
    protocols.push(protocol.text())
  }
  return protocols
}

/** A position in bytes[at, end). Reading beyond the end returns nothing and is remembered. */
class Bytes {
  isBroken = false
  readonly #bytes: Uint8Array
  #at: number
  readonly #end: number

  constructor(bytes: Uint8Array, at: number, end: number) {
    this.#bytes = bytes
    this.#at = at
    this.#end = end
  }

  get size(): number {
    return this.#end - this.#at
  }

  byte(): number {
    return this.#has(1) ? this.#bytes[this.#at++]! : 0
  }

  u16(): number {
    return this.byte() * 256 + this.byte()
  }

  skip(count: number): void {
    if (this.#has(count)) this.#at += count
  }

  /** Returns the bytes after a length of one or two bytes. */
  vector(lengthBytes: 1 | 2): Bytes {
    const length = lengthBytes === 1 ? this.byte() : this.u16()
    const start = this.#at
    this.skip(length)
    return new Bytes(this.#bytes, start, this.#at)
  }

  /** Returns text with one character for each byte. */
  text(): string {
    return String.fromCharCode(...this.#bytes.subarray(this.#at, this.#end))
  }

  #has(count: number): boolean {
    if (this.size >= count) return true
    this.isBroken = true
    return false
  }
}

function readU16(bytes: Uint8Array, at: number): number {
  return (bytes[at]! << 8) | bytes[at + 1]!
}

function readU24(bytes: Uint8Array, at: number): number {
  return (bytes[at]! << 16) | readU16(bytes, at + 1)
}

// ── Answering without speaking TLS ─────────────────────────────────────────────────────────────────────────────

/** Returns an unencrypted fatal alert, as a reply to a hello. The connection must then close (RFC 8446 section 6). */
function fatalAlert(description: number): Uint8Array {
  return Uint8Array.of(21, 3, 3, 0, 2, 2, description)
}

/** Returns the alert `unrecognized_name` (112), in a new array: no host of this name is here, or no name was given. */
export function unrecognizedNameAlert(): Uint8Array {
  return fatalAlert(112)
}

/** Returns the alert `internal_error` (80), in a new array: the host is known, but has no client now. */
export function internalErrorAlert(): Uint8Array {
  return fatalAlert(80)
}
