// Gives the pieces of a complete request to one exchange, as fast as its app takes them.

import type { Exchange } from '../../server/contracts/upstream.ts'

export class PiecesSender {
  #exchange: Exchange | undefined
  #pieces: readonly Uint8Array[]
  #next = 0
  #isPaused = false
  #isSending = false

  constructor(pieces: readonly Uint8Array[]) {
    this.#pieces = pieces
  }

  start(exchange: Exchange): void {
    this.#exchange = exchange
    this.#send()
  }

  stop(): void {
    this.#exchange = undefined
    this.#pieces = []
  }

  pause(): void {
    this.#isPaused = true
  }

  resume(): void {
    this.#isPaused = false
    this.#send()
  }

  #send(): void {
    // An exchange may pause, resume and end while it is given a piece.
    if (this.#isSending) return
    this.#isSending = true
    while (!this.#isPaused && this.#exchange !== undefined && this.#next < this.#pieces.length) {
      const piece = this.#pieces[this.#next++]
      if (piece !== undefined) this.#exchange.body(piece)
    }
    this.#isSending = false
    if (this.#exchange === undefined || this.#next < this.#pieces.length) return
    const exchange = this.#exchange
    this.stop()
    exchange.bodyEnded()
  }
}
