// The streams of one client that wait for their next request. Where it has as many streams as it may, the one that waited longest,
// of whatever tunnel, gives way to one that is wanted.

import type { Session } from '../../session/session.ts'
import type { Stream, StreamHandler } from '../../session/stream.ts'

/** A stream that no exchange uses. */
export interface Idle {
  /** Closes it at once. */
  giveWay(): void
}

export class IdleStreams {
  /** The one that waited longest first. */
  readonly #waiting = new Set<Idle>()

  add(idle: Idle): void {
    this.#waiting.add(idle)
  }

  delete(idle: Idle): void {
    this.#waiting.delete(idle)
  }

  /** `undefined`: there is no room, or the session is gone. */
  open(
    session: Pick<Session, 'open' | 'isClosed'>,
    tunnel: number,
    handler: StreamHandler,
  ): Stream | undefined {
    const stream = session.open(tunnel, handler)
    if (stream !== undefined || session.isClosed) return stream
    const [oldest] = this.#waiting
    if (oldest === undefined) return undefined
    oldest.giveWay()
    return session.open(tunnel, handler)
  }
}
