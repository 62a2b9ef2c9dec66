// The first bytes of a TLS connection: the name the visitor asks for (SNI), read without decrypting or replying.
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
  /**
   * The name in lower case, without a dot at its end, with the protocols that ALPN offers, in its order; none without ALPN.
   * `protocols`: what ALPN offers, in its order; empty without ALPN.
   */
  | { readonly kind: 'name'; readonly name: string; readonly protocols: readonly string[] }
  /** A valid hello that names no host, or an address in place of one. */
  | { readonly kind: 'nameless'; readonly protocols: readonly string[] }
  /** The bytes are not TLS. */
  | { readonly kind: 'foreign' }
  /** The bytes begin like TLS, but are not a hello that we understand completely. `reason` is for a log. */
  | { readonly kind: 'invalid'; readonly reason: string }

/**
 * The maximum size of a hello with its record headers. Browsers with post-quantum keys send up to 2 KB, in two segments; a
 * session ticket can add a few. 16 KiB is what one record may hold, and where BoringSSL and nginx's preread stop as well.
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
 * Reads one hello, however its bytes were cut. Never throws. It keeps a copy for itself: who passes the connection on
 * keeps what it gave, `MAX_HELLO_BYTES` and the last read at most.
 */
export class ClientHelloReader {
  /** The handshake message, put together from the records. */
  readonly #hello: ByteBuffer = new ByteBuffer()
  readonly #header: Uint8Array = new Uint8Array(RECORD_HEADER_BYTES)
  #headerLength = 0
  /** Bytes of the current record still to come. */
  #recordLeft = 0
  /** Bytes taken so far, record headers included. */
  #taken = 0

  /** Takes the next bytes. After any verdict but `more` the reader is of no more use. */
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
    // Bytes that begin as TLS and then differ are broken TLS.
    if (index === 0 && byte !== HANDSHAKE)
      return this.#isFirstRecord ? FOREIGN : invalid('another record comes within the hello')
    // The minor version says nothing (RFC 8446, 5.1).
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

  /** Bytes of the hello still to come; `undefined` before it has said how many it has. */
  get #missing(): number | undefined {
    const { all, length } = this.#hello
    return length < HELLO_HEADER_BYTES ? undefined : HELLO_HEADER_BYTES + readU24(all, 1) - length
  }

  /** Whether the record ends with the hello at the latest: nothing may follow it there before the reply. */
  #checkRecord(): HelloVerdict | undefined {
    const missing = this.#missing
    if (missing === undefined) return undefined
    // Early data is in records of its own.
    if (missing < 0 || this.#recordLeft > missing) return invalid('a record goes on behind the hello')
    return this.#checkSize(missing)
  }

  /** Refuses a hello if at least `announced` bytes are still to come and that is too much. */
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

/** A host name; empty for an address, which is not a name; `undefined` for anything else than one of the two. */
function readServerName(body: Bytes): string | undefined {
  const list = body.vector(2)
  const type = list.byte()
  const value = list.vector(2)
  // One name of each type, and there is only one type.
  if (body.isBroken || body.size > 0 || list.isBroken || list.size > 0 || type !== 0) return undefined
  const text = value.text().toLowerCase()
  // RFC 6066 has neither addresses nor a last dot; clients that send them mean no harm.
  if (parseIp(text) !== undefined) return ''
  const name = text.endsWith('.') ? text.slice(0, -1) : text
  return name.length <= 253 && name.split('.').every(label => LABEL.test(label)) ? name : undefined
}

/** Underscores are not host name, but people have them in DNS: as for the Host of HTTP. */
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

/** A place in bytes[at, end). Reading beyond the end gives nothing and is remembered. */
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

  /** Returns the bytes that follow a length of one or two bytes. */
  vector(lengthBytes: 1 | 2): Bytes {
    const length = lengthBytes === 1 ? this.byte() : this.u16()
    const start = this.#at
    this.skip(length)
    return new Bytes(this.#bytes, start, this.#at)
  }

  /** Each byte as the character of its number. */
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

/** An unencrypted fatal alert, as a reply to a hello: then the connection closes (RFC 8446 section 6). */
function fatalAlert(description: number): Uint8Array {
  return Uint8Array.of(21, 3, 3, 0, 2, 2, description)
}

/** No host of this name here, or no name was given: `unrecognized_name`, 112. A new array each time. */
export function unrecognizedNameAlert(): Uint8Array {
  return fatalAlert(112)
}

/** The host is known, but it has no client now: `internal_error`, 80. A new array each time. */
export function internalErrorAlert(): Uint8Array {
  return fatalAlert(80)
}
