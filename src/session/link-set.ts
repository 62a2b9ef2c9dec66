// The links of one session: which stream's bytes travel on which link, in both directions.

import type { ErrorCode } from '../errors.ts'
import { LINK, LINK_FREE, UNLINK, writeU32, writeU48 } from '../wire/frame.ts'
import type { Link, LinkOwner } from './link.ts'
import type { Outbox } from './outbox.ts'
import type { Scheduler } from './scheduler.ts'
import type { Stream } from './stream.ts'

/**
 * The size of a transfer above which its stream moves to a link. Below it, sharing writes with other streams is
 * faster; measured by `benchmarks/suites/speed.ts --only 64k10`.
 */
export const BULK_BYTES = 16_384

/** The number of links for streams with small pieces. By default, half of them stay free for large transfers. */
const MAX_SMALL = 16

export interface LinkSession {
  readonly isClosed: boolean
  /** Closes the session, because the other side broke the protocol. */
  close(code: ErrorCode): void
  /** Fails a stream on both sides, because bytes of it were lost. */
  lose(stream: Stream): void
  /** Called when the last bytes of a stream came after its END. */
  peerHasEnded(stream: Stream, delivered: number): void
  /** Called with an error of a stream's handler. */
  linkFailed(error: unknown): void
  /** Called when a stream has a large transfer and no link is free. */
  linkWanted(): void
}

export class LinkSet implements LinkOwner {
  readonly #session: LinkSession
  readonly #outbox: Outbox
  readonly #links = new Map<number, Link>()
  readonly #scheduler: Scheduler
  readonly #deadAfterMs: number
  /** The number of bytes that each awaited link had received at the last check. */
  #awaited = new Map<Link, number>()
  #cancelLook: (() => void) | undefined

  /** Makes the links. `deadAfterMs`: the silence after which a link is closed, if its far side said that it sent more. */
  constructor(session: LinkSession, outbox: Outbox, scheduler: Scheduler, deadAfterMs: number) {
    this.#session = session
    this.#outbox = outbox
    this.#scheduler = scheduler
    this.#deadAfterMs = deadAfterMs
  }

  get size(): number {
    return this.#links.size
  }

  has(number: number): boolean {
    return this.#links.has(number)
  }

  get(number: number): Link | undefined {
    return this.#links.get(number)
  }

  values(): Iterable<Link> {
    return this.#links.values()
  }

  /** Adds a link, both directions of which are free. */
  add(link: Link): void {
    // The link may have broken before it was announced.
    if (this.#session.isClosed || link.isClosed) return link.close()
    this.#links.set(link.number, link)
  }

  close(): void {
    this.#cancelLook?.()
    for (const link of this.#links.values()) link.close()
  }

  // ── Sending ────────────────────────────────────────────────────────────────────────────────────────────────

  /** Moves a stream to a free link, once all earlier bytes are in frames. Asks for a link if none is free. */
  move(stream: Stream): Link | undefined {
    if (stream.queue.length > 0) return undefined
    const link = this.#freeFor(stream)
    if (link === undefined) {
      this.#session.linkWanted()
      return undefined
    }
    link.sender = stream
    stream.sendingLink = link
    this.#tell(LINK, stream, link)
    // The far side stores the link's bytes until it knows which stream they belong to.
    this.#outbox.flush()
    return link
  }

  /** Returns a free link, if possible the one that the other side uses for the stream, so that fewer links are needed. */
  #freeFor(stream: Stream): Link | undefined {
    if (stream.receivingLink?.isFree) return stream.receivingLink
    for (const link of this.#links.values()) if (link.isFree) return link
    return undefined
  }

  /** Moves a stream with small pieces, as `move`. */
  moveSmall(stream: Stream): void {
    let taken = 0
    for (const link of this.#links.values()) if (link.sender !== undefined) taken++
    if (taken < MAX_SMALL) this.move(stream)
  }

  /** Called when the stream sends no more. Its direction of the link is free once the far side has all its bytes. */
  leave(stream: Stream): void {
    const link = stream.sendingLink
    if (link === undefined) return
    stream.sendingLink = undefined
    if (link.isClosed || this.#session.isClosed) return
    link.leave(stream, () => {
      if (!link.isClosed && !this.#session.isClosed) this.#tell(UNLINK, stream, link)
    })
  }

  /** Called when LINK_FREE arrived. The link may have been lost since. */
  freed(number: number): void {
    if (this.#links.get(number)?.freed() === false) this.#session.close('PROTOCOL_ERROR')
  }

  #tell(type: number, stream: Stream, link: Link): void {
    const at = this.#outbox.frame(type, stream.id, 10)
    writeU32(this.#outbox.batch, at, link.number)
    writeU48(this.#outbox.batch, at + 4, link.sentBytes)
  }

  // ── Receiving ──────────────────────────────────────────────────────────────────────────────────────────────

  /** Called when LINK arrived. `stream` is undefined if it is gone: its bytes must still be counted. */
  bind(stream: Stream | undefined, id: number, number: number, from: number): void {
    const link = this.#links.get(number)
    if (link === undefined) {
      // The link was lost while the frame was in transit, and the stream with it.
      if (stream !== undefined) this.#session.lose(stream)
      return
    }
    if (stream?.receivingLink !== undefined || stream?.peerEnded) return this.#session.close('PROTOCOL_ERROR')
    if (stream !== undefined) stream.receivingLink = link
    if (!link.bind(stream, id, from)) this.#session.close('PROTOCOL_ERROR')
  }

  /** Called when UNLINK arrived. */
  unbind(id: number, number: number, to: number): void {
    const link = this.#links.get(number)
    if (link?.unbind(id, to) === false) return this.#session.close('PROTOCOL_ERROR')
    if (link?.isEnding) this.#cancelLook ??= this.#planLook()
  }

  /**
   * Checks regularly that a link still brings bytes, if the other side said that all bytes of a stream are on it.
   * Without any, the link is dead.
   */
  #planLook(): () => void {
    return this.#scheduler.after(this.#deadAfterMs / 2, () => {
      const before = this.#awaited
      this.#awaited = new Map()
      let isAwaiting = false
      for (const link of this.#links.values()) {
        isAwaiting ||= link.isEnding
        const received = link.awaitedFrom
        if (received === -1) continue
        if (before.get(link) === received) link.close()
        else this.#awaited.set(link, received)
      }
      this.#cancelLook = isAwaiting && !this.#session.isClosed ? this.#planLook() : undefined
    })
  }

  linkReceived(stream: Stream, bytes: Uint8Array): void {
    stream.heard(bytes.length)
    stream.handler.received(bytes, 0, bytes.length)
  }

  linkFinished(link: Link, stream: Stream | undefined): void {
    const at = this.#outbox.frame(LINK_FREE, 0, 4)
    writeU32(this.#outbox.batch, at, link.number)
    if (stream === undefined) return
    stream.receivingLink = undefined
    if (stream.earlyEnd !== undefined && !stream.isClosed) this.#session.peerHasEnded(stream, stream.earlyEnd)
  }

  linkClosed(link: Link, streams: readonly Stream[]): void {
    // A link that closed before it was added may have the number of another link: compare the objects.
    if (this.#links.get(link.number) === link) this.#links.delete(link.number)
    for (const stream of streams) if (!stream.isClosed) this.#session.lose(stream)
  }

  linkFailed(error: unknown): void {
    this.#session.linkFailed(error)
  }

  linkBroken(): void {
    this.#session.close('PROTOCOL_ERROR')
  }
}
