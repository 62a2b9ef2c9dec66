// The streams of one client that wait for their next request. Where it has as many streams as it may, the one that waited longest,
// of whatever tunnel, gives way to one that is wanted; without one, the visitor that has most streams gives one up.

import type { ByteStream, StreamHandler } from '../../session/byte-stream.ts'
import type { Session } from '../../session/session.ts'
import type { Taker, Takers } from '../limits/takers.ts'

export class IdleStreams {
  /** The one that waited longest first. */
  readonly #waiting = new Set<Taker>()
  /** Of each tunnel that has any: who has its streams. */
  readonly taken: Set<Takers> = new Set<Takers>()
  #isMakingRoom = false

  add(idle: Taker): void {
    this.#waiting.add(idle)
  }

  delete(idle: Taker): void {
    this.#waiting.delete(idle)
  }

  /** `undefined`: there is no room, or the session is gone. */
  open(
    session: Pick<Session, 'open' | 'isClosed'>,
    tunnel: number,
    handler: StreamHandler,
    visitor: string,
    own: Takers,
  ): ByteStream | undefined {
    // Who gives way may ask again at once, before the one that it gave way to.
    if (this.#isMakingRoom) return undefined
    const stream = session.open(tunnel, handler)
    if (stream !== undefined || session.isClosed) return stream
    const [oldest] = this.#waiting
    if (oldest !== undefined) oldest.giveWay()
    else if (!this.makeRoomFor(visitor, own, this.taken)) return undefined
    return session.open(tunnel, handler)
  }

  /** As that of `Takers`. */
  makeRoomFor(visitor: string, own: Takers, among?: Iterable<Takers>): boolean {
    this.#isMakingRoom = true
    try {
      return own.makeRoomFor(visitor, among)
    } finally {
      this.#isMakingRoom = false
    }
  }
}
