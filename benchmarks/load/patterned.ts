// One end of a transfer of many gigabytes: sends and checks a body that is known at every place and kept nowhere.

import type { Socket, SocketHandler } from '../../src/socket.ts'

/** Length of the pattern: no power of two, so that a block in the wrong place shows. */
const PERIOD = 65_537
const PIECE = PERIOD * 3
const pattern: Buffer = Buffer.alloc(PERIOD * 4)
for (let at = 0; at < pattern.length; at++) pattern[at] = (at % PERIOD) * 31 + ((at % PERIOD) >> 8)

/** Expects a head, then a body of the pattern; sends the same. */
export class PatternedEnd implements SocketHandler {
  socket: Socket | undefined
  head = ''
  sentBytes = 0
  receivedBytes = 0
  wrongPieces = 0
  isClosed = false
  /** Called when the head is there. */
  onHead: () => void = () => {}
  #bytesToSend = 0
  #changed: () => void = () => {}

  /** Sends a head and `count` bytes of body as fast as they are taken. */
  send(head: string, count: number): void {
    this.socket?.write(Buffer.from(head))
    this.#bytesToSend = count
    this.drained()
  }

  /** Resolves when all was received, or the connection is gone. */
  async all(count: number): Promise<void> {
    while (this.receivedBytes < count && !this.isClosed) {
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#changed = resolve
      await promise
    }
  }

  received(bytes: Uint8Array): void {
    if (this.head.endsWith('\r\n\r\n')) return this.#check(bytes)
    const text = Buffer.from(bytes).toString('latin1')
    const end = text.indexOf('\r\n\r\n')
    this.head += end === -1 ? text : text.slice(0, end + 4)
    if (end === -1) return
    this.onHead()
    if (end + 4 < bytes.length) this.#check(bytes.subarray(end + 4))
  }

  drained(): void {
    while (this.sentBytes < this.#bytesToSend) {
      const from = this.sentBytes % PERIOD
      const piece = pattern.subarray(from, from + Math.min(PIECE, this.#bytesToSend - this.sentBytes))
      const taken = this.socket?.write(piece) ?? 0
      this.sentBytes += taken
      if (taken < piece.length) return
    }
  }

  ended(): void {
    this.#changed()
  }

  closed(): void {
    this.isClosed = true
    this.#changed()
  }

  #check(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; at += PERIOD) {
      const place = (this.receivedBytes + at) % PERIOD
      const piece = bytes.subarray(at, at + PERIOD)
      if (Buffer.compare(piece, pattern.subarray(place, place + piece.length)) !== 0) this.wrongPieces++
    }
    this.receivedBytes += bytes.length
    this.#changed()
  }
}
