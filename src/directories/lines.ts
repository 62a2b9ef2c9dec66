// Splits received bytes into lines of JSON.

/** The maximum length of a line. All names of a server with 100,000 of them need less. */
export const MAX_LINE_BYTES: number = 64 * 1024 * 1024

export class Lines {
  readonly #line: (value: unknown) => void
  readonly #most: number
  #pieces: Uint8Array[] = []
  #bytes = 0

  constructor(line: (value: unknown) => void, most: number = MAX_LINE_BYTES) {
    this.#line = line
    this.#most = most
  }

  /** Takes bytes. Returns `false` if a line is too long, or not JSON. */
  take(bytes: Uint8Array): boolean {
    let from = 0
    for (let end = bytes.indexOf(10); end >= 0; end = bytes.indexOf(10, from)) {
      const text = Buffer.concat([...this.#pieces, bytes.subarray(from, end)]).toString()
      this.#pieces = []
      this.#bytes = 0
      from = end + 1
      let value: unknown
      try {
        value = JSON.parse(text)
      } catch {
        return false
      }
      this.#line(value)
    }
    this.#pieces.push(bytes.slice(from))
    this.#bytes += bytes.length - from
    return this.#bytes <= this.#most
  }
}
