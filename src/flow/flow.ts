// The datagrams of one visitor as a Socket. It reads and writes framed datagrams, so a Join moves them over a stream
// like any other bytes.

import type { Socket, SocketHandler } from '../socket.ts'
import { DATAGRAM_HEADER_BYTES, frameDatagrams, type SendDatagrams } from '../wire/datagrams.ts'
import { FlowSender } from './sender.ts'
import type { FlowShare } from './share.ts'

/** The maximum size of one write with the datagrams of a tick. A session frame can carry it whole. */
const BATCH_BYTES = 61_440
/** The array in which batches are framed, one at a time. A new array for each batch cost the server a fifth of its time. */
const framed = new Uint8Array(BATCH_BYTES + DATAGRAM_HEADER_BYTES + 0xffff)
/**
 * The bytes of all flows of a tunnel that may wait for credit or for a full carrier. If exceeded, datagrams are
 * dropped. At 10 Mbit/s they take a second to send, after which most programs no longer need a reply.
 */
export const MAX_BACKLOG_BYTES = 1_048_576

export class Flow implements Socket {
  readonly remoteAddress: string
  readonly #handler: SocketHandler
  readonly #share: FlowShare
  readonly #sender: FlowSender
  readonly #closed: () => void
  readonly #turnEnded: () => void
  /** The datagrams of this turn of the event loop. */
  #batch: Uint8Array[] = []
  #batchBytes = 0
  #isFlushPlanned = false
  /** Whether the stream has no room: the last write waits, and datagrams that arrive are dropped. */
  #isPaused = false
  #waitingBytes = 0
  #lastAt: number
  #stopTimer: () => void
  #isClosed = false

  /**
   * Makes a flow. `send` sends to the far side. `closed` is called once, before the handler's `closed`, when nothing
   * more will be sent.
   */
  constructor(
    remoteAddress: string,
    handler: SocketHandler,
    share: FlowShare,
    send: SendDatagrams,
    closed: () => void,
  ) {
    this.remoteAddress = remoteAddress
    this.#handler = handler
    this.#share = share
    this.#sender = new FlowSender(share, send, () => handler.drained())
    this.#closed = closed
    this.#lastAt = share.options.scheduler.now()
    this.#stopTimer = this.#armTimer(share.options.idleTimeoutMs)
    this.#turnEnded = () => {
      this.#isFlushPlanned = false
      this.#flush()
    }
  }

  // ── From the far side ──────────────────────────────────────────────────────────────────────────────────────

  arrived(datagram: Uint8Array): void {
    if (this.#isClosed) return
    if (this.#isPaused || this.#share.backlogBytes >= MAX_BACKLOG_BYTES) return this.#share.options.dropped(1)
    this.#batch.push(datagram)
    this.#batchBytes += DATAGRAM_HEADER_BYTES + datagram.length
    if (this.#batchBytes >= BATCH_BYTES) this.#flush()
    else if (!this.#isFlushPlanned) {
      this.#isFlushPlanned = true
      this.#share.atTurnEnd(this.#turnEnded)
    }
  }

  /** Called when the kernel takes datagrams again. */
  drained(): void {
    this.#sender.drained()
  }

  #flush(): void {
    if (this.#batchBytes === 0 || this.#isClosed) return
    const batch = this.#batch
    const bytes = this.#batchBytes
    this.#batch = []
    this.#batchBytes = 0
    // A batch that was sent earlier in this turn may have used up the room.
    if (this.#isPaused) return this.#share.options.dropped(batch.length)
    this.#lastAt = this.#share.options.scheduler.now()
    this.#waitingBytes = bytes
    this.#handler.received(framed.subarray(0, frameDatagrams(batch, framed)))
  }

  // ── To the far side ────────────────────────────────────────────────────────────────────────────────────────

  write(bytes: Uint8Array, start = 0, end: number = bytes.length): number {
    if (this.#isClosed) return 0
    this.#lastAt = this.#share.options.scheduler.now()
    return this.#sender.write(bytes, start, end)
  }

  /** Ends the flow. Datagrams have no half-close. */
  end(): void {
    this.#flush()
    this.#close()
  }

  terminate(): void {
    this.#close(new Error('the flow was cut'))
  }

  /** Pauses. Datagrams cannot be held back, so those that arrive until `resume` are dropped. */
  pause(): void {
    if (this.#isPaused || this.#isClosed) return
    this.#isPaused = true
    this.#share.backlogBytes += this.#waitingBytes
  }

  resume(): void {
    if (!this.#isPaused) return
    this.#isPaused = false
    this.#share.backlogBytes -= this.#waitingBytes
  }

  /** Returns nothing, because a flow is not a connection. */
  endpoints(): undefined {}

  // ── The end ────────────────────────────────────────────────────────────────────────────────────────────────

  /** Sets a timer at most once per period, rather than for each datagram. */
  #armTimer(ms: number): () => void {
    const { scheduler, idleTimeoutMs } = this.#share.options
    return scheduler.after(ms, () => {
      const restMs = this.#lastAt + idleTimeoutMs - scheduler.now()
      // Timers may be a fraction of a millisecond early.
      if (restMs < 1) this.end()
      else this.#stopTimer = this.#armTimer(restMs)
    })
  }

  #close(error?: Error): void {
    if (this.#isClosed) return
    this.resume()
    this.#isClosed = true
    this.#stopTimer()
    this.#sender.close()
    this.#batch = []
    this.#closed()
    this.#handler.closed(error)
  }
}
