// Datagrams in a stream of bytes, each behind its length: boundaries are kept, whatever pieces the stream comes in.
//
//   ┌────────────┬─────────────────┬────────────┬───
//   │ length u16 │ payload         │ length u16 │ …
//   └────────────┴─────────────────┴────────────┴───

/** The size of the length before each datagram. */
export const DATAGRAM_HEADER_BYTES = 2

/** Frames datagrams one behind the other, into an array that has room for them. Returns where the last one ends. */
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

/** Sends datagrams in order and says how many were taken: fewer than given means full. */
export type SendDatagrams = (datagrams: readonly Uint8Array[]) => number

/** Cuts datagrams out of whatever pieces arrive. All lengths are valid, so nothing that arrives can be wrong. */
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
   * Takes bytes and sends the datagrams that are complete, all of a piece at once and at most `most`. Returns how many
   * bytes were taken: fewer when `send` was full or there were more datagrams. The rest is to be given again.
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

  /** Sends what was taken whole but not sent. `false`: still full. */
  retry(): boolean {
    if (this.#payload === undefined || this.#payloadEnd < this.#payload.length) return true
    if (this.#send([this.#payload]) === 0) return false
    this.#payload = undefined
    this.#headerEnd = 0
    return true
  }

  /** Keeps the beginning, or more, of a datagram from `from` on. Returns how far into the bytes it came. */
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

/** Returns where the datagram that begins at `at` ends; infinite while its length has not arrived. */
function endOf(bytes: Uint8Array, at: number): number {
  if (at + DATAGRAM_HEADER_BYTES > bytes.length) return Number.POSITIVE_INFINITY
  return at + DATAGRAM_HEADER_BYTES + lengthAt(bytes, at)
}

function framedBytes(datagrams: readonly Uint8Array[], count: number): number {
  let bytes = 0
  for (let index = 0; index < count; index++) bytes += DATAGRAM_HEADER_BYTES + (datagrams[index]?.length ?? 0)
  return bytes
}
