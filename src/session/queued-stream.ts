// A stream without a session: counts written and consumed bytes, and queues bytes to send.

import type { ErrorCode } from '../errors.ts'
import type { ByteStream, StreamHandler } from './byte-stream.ts'

export abstract class QueuedStream implements ByteStream {
  handler: StreamHandler
  isClosed = false
  sentBytes = 0
  peerEnded = false
  protected hasEnded = false
  deliveredBytes = 0
  protected readonly queue: Uint8Array[] = []
  /** The number of bytes of `queue[0]` that were sent. */
  protected queueOffset = 0

  constructor(handler: StreamHandler) {
    this.handler = handler
  }

  write(bytes: Uint8Array, start = 0, end: number = bytes.length): boolean {
    if (this.isClosed || this.hasEnded) return true
    if (start === end) return this.queue.length === 0
    this.sentBytes += end - start
    return this.send(bytes, start, end)
  }

  end(): void {
    if (this.isClosed || this.hasEnded) return
    this.hasEnded = true
    this.sendEnd()
  }

  reset(_code: ErrorCode): void {
    if (!this.isClosed) this.sendReset()
  }

  giveUp(code: ErrorCode): void {
    const delivered = this.sentBytes - this.waitingBytes
    this.reset(code)
    this.handler.reset(code, delivered)
  }

  consumed(count: number): void {
    this.deliveredBytes += count
    if (!this.isClosed && !this.peerEnded) this.giveCredit(count)
  }

  writeFrom(): undefined {}

  moveToLink(): void {}

  requestSplice(): void {}

  get isBackedUp(): boolean {
    return this.queue.length > 0
  }

  get waitingBytes(): number {
    let bytes = -this.queueOffset
    for (const piece of this.queue) bytes += piece.length
    return bytes
  }

  /** Sends bytes[start, end). Returns `false` if some are queued for lack of room. */
  protected abstract send(bytes: Uint8Array, start: number, end: number): boolean
  protected abstract sendEnd(): void
  /** Closes both directions with an error. */
  protected abstract sendReset(): void
  /** Called when the handler consumed `count` more bytes. */
  protected abstract giveCredit(count: number): void
}
