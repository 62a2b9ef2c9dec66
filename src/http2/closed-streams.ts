// The streams that ended lately, and how. Frames for them that were in transit are not errors of the peer.

/** The number of remembered streams: more than a peer can have open, so that every stream with frames in flight is known. */
const REMEMBERED = 256

export class ClosedStreams {
  /** A ring of ids. A negative id means that this side reset the stream. */
  readonly #ids = new Int32Array(REMEMBERED)
  #next = 0

  add(stream: number, isReset: boolean): void {
    this.#ids[this.#next] = isReset ? -stream : stream
    this.#next = (this.#next + 1) % REMEMBERED
  }

  wasReset(stream: number): boolean {
    return this.#ids.includes(-stream)
  }

  /** Whether both sides ended the stream, or the peer reset it. */
  wasEnded(stream: number): boolean {
    return this.#ids.includes(stream)
  }
}
