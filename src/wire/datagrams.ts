// Datagrams in a stream of bytes, each with its length before it. The boundaries do not depend on how the stream is
// divided.
//
//   ┌────────────┬─────────────────┬────────────┬───
//   │ length u16 │ payload         │ length u16 │ …
//   └────────────┴─────────────────┴────────────┴───

/** The size of the length before each datagram. */
export const DATAGRAM_HEADER_BYTES = 2

/** Frames datagrams one after the other, into an array that has room for them. Returns the end position. */
export function frameDatagrams(datagrams: readonly Uint8Array[], framed: Uint8Array): number {
  let at = 0
  for (const datagram of datagrams) {
    framed[at] = datagram.length >>> 8
    framed[at + 1] = datagram.length
    framed.set(datagram, at + DATAGRAM_HEADER_BYTES)
    at += DATAGRAM_HEADER_BYTES + datagram.length
  }
  return at
}

/** Sends datagrams in order. Returns how many were taken: fewer than given mean that there is no more room. */
export type SendDatagrams = (datagrams: readonly Uint8Array[]) => number

/** Cuts datagrams out of pieces of any size. All lengths are valid, so no input can be wrong. */
export class DatagramReader {
  readonly #send: SendDatagrams
  readonly #header: Uint8Array = new Uint8Array(DATAGRAM_HEADER_BYTES)
  #headerEnd = 0
  /** The datagram that started in an earlier piece, once its length is known. */
  #payload: Uint8Array | undefined
  #payloadEnd = 0

  constructor(send: SendDatagrams) {
    this.#send = send
  }

  /**
   * Takes bytes and sends the complete datagrams, all of a piece at once and at most `most`. Returns how many bytes
   * were taken; fewer if `send` was full or there were more datagrams. Give the rest again.
   */
  receive(bytes: Uint8Array, most: number = Number.POSITIVE_INFINITY): number {
    if (most <= 0 || !this.retry()) return 0
    let at = 0
    let left = most
    if (this.#headerEnd > 0) {
      at = this.#fill(bytes, 0)
      if (!this.retry()) return at
      left--
    }
    const start = at
    const datagrams: Uint8Array[] = []
    for (let end = endOf(bytes, at); end <= bytes.length; end = endOf(bytes, at)) {
      if (datagrams.length >= left) break
      datagrams.push(bytes.subarray(at + DATAGRAM_HEADER_BYTES, end))
      at = end
    }
    if (datagrams.length > 0) {
      const sent = this.#send(datagrams)
      if (sent < datagrams.length) return start + framedBytes(datagrams, sent)
    }
    return datagrams.length < left ? this.#fill(bytes, at) : at
  }

  /** Sends complete datagrams that were not sent. Returns `false` if there is still no room. */
  retry(): boolean {
    if (this.#payload === undefined || this.#payloadEnd < this.#payload.length) return true
    if (this.#send([this.#payload]) === 0) return false
    this.#payload = undefined
    this.#headerEnd = 0
    return true
  }

  /** Stores a part of a datagram from `from` on. Returns the position that it reached. */
  #fill(bytes: Uint8Array, from: number): number {
    let at = from
    while (this.#headerEnd < DATAGRAM_HEADER_BYTES && at < bytes.length)
      this.#header[this.#headerEnd++] = bytes[at++] ?? 0
    if (this.#headerEnd < DATAGRAM_HEADER_BYTES) return at
    if (this.#payload === undefined) {
      this.#payload = new Uint8Array(lengthAt(this.#header, 0))
      this.#payloadEnd = 0
    }
    const count = Math.min(bytes.length - at, this.#payload.length - this.#payloadEnd)
    this.#payload.set(bytes.subarray(at, at + count), this.#payloadEnd)
    this.#payloadEnd += count
    return at + count
  }
}

function lengthAt(bytes: Uint8Array, at: number): number {
  return ((bytes[at] ?? 0) << 8) | (bytes[at + 1] ?? 0)
}

/** Returns where the datagram at `at` ends; infinite while its length has not arrived. */
function endOf(bytes: Uint8Array, at: number): number {
  if (at + DATAGRAM_HEADER_BYTES > bytes.length) return Number.POSITIVE_INFINITY
  return at + DATAGRAM_HEADER_BYTES + lengthAt(bytes, at)
}

function framedBytes(datagrams: readonly Uint8Array[], count: number): number {
  let bytes = 0
  for (let index = 0; index < count; index++) bytes += DATAGRAM_HEADER_BYTES + (datagrams[index]?.length ?? 0)
  return bytes
}
