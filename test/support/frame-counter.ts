// Counts the frames of a session that pass through a connection, byte by byte, with a reading of its own.

/** What a connection's direction is in the middle of. */
type State = 'http' | 'ws-header' | 'ws-payload'

export class FrameCounter {
  #state: State = 'http'
  #last4 = 0
  #header: number[] = []
  #payloadLeft = 0
  #isMasked = false
  #mask: readonly number[] = []
  #maskAt = 0
  #isBinary = false
  #frameHeader: number[] = []
  #frameLeft = 0

  /** Counts frames in `bytes`, stopping behind the `allowed`-th. `end`: where it stopped. */
  feed(bytes: Uint8Array, allowed: number): { readonly count: number; readonly end: number } {
    let count = 0
    for (let at = 0; at < bytes.length; at++) {
      if (count >= allowed) return { count, end: at }
      if (this.#take(bytes[at]!)) count++
    }
    return { count, end: bytes.length }
  }

  /** `true`: a frame ended with this byte. */
  #take(byte: number): boolean {
    switch (this.#state) {
      case 'http':
        this.#last4 = ((this.#last4 << 8) | byte) >>> 0
        if (this.#last4 === 0x0d0a0d0a) this.#state = 'ws-header'
        return false
      case 'ws-header':
        this.#header.push(byte)
        this.#readHeader()
        return false
      case 'ws-payload': {
        const plain = this.#isMasked ? byte ^ this.#mask[this.#maskAt++ & 3]! : byte
        if (--this.#payloadLeft === 0) this.#state = 'ws-header'
        return this.#isBinary && this.#takeFrameByte(plain)
      }
    }
  }

  #readHeader(): void {
    const [first = 0, second = 0] = this.#header
    if (this.#header.length < 2) return
    const short = second & 127
    const lengthBytes = short === 126 ? 2 : short === 127 ? 8 : 0
    this.#isMasked = (second & 128) !== 0
    if (this.#header.length < 2 + lengthBytes + (this.#isMasked ? 4 : 0)) return
    const long = this.#header.slice(2, 2 + lengthBytes).reduce((sum, one) => sum * 256 + one, 0)
    this.#payloadLeft = lengthBytes === 0 ? short : long
    this.#mask = this.#header.slice(2 + lengthBytes)
    this.#maskAt = 0
    const opcode = first & 15
    if (opcode !== 0) this.#isBinary = opcode === 2
    this.#header = []
    if (this.#payloadLeft > 0) this.#state = 'ws-payload'
  }

  #takeFrameByte(byte: number): boolean {
    if (this.#frameHeader.length < 8) {
      this.#frameHeader.push(byte)
      if (this.#frameHeader.length < 8) return false
      const [high = 0, middle = 0, low = 0] = this.#frameHeader
      this.#frameLeft = high * 65_536 + middle * 256 + low
    } else this.#frameLeft--
    if (this.#frameLeft > 0) return false
    this.#frameHeader = []
    return true
  }
}
