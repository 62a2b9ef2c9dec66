// A visitor's way to a lane: a stream of its own once its requests come easy, and when to give it up.

import type { Lane, LaneEnd, LaneTerms, Socket } from '../socket.ts'
import type { LaneGrant } from './front.ts'
import type { Exchange, Reserved, Rewrite, Upstream, Visit } from './upstream.ts'
import type { VisitorConnection } from './visitor.ts'

/** So many easy exchanges within `SOON_MS` make a visitor that a lane is for. */
const EASY_EXCHANGES = 8
const SOON_MS = 1_000
/** A lane that served fewer was not worth its while: the next one has to wait for twice as many easy exchanges. */
const WORTHWHILE_REQUESTS = 64
const MAX_WANTED_EASY = 65_536
/** Exchanges after which a stream that is not fit for a lane, such as one whose last lane is not back yet, is given back. */
const MAX_WAITED = 8

export class VisitorLane {
  readonly #mayBegin: () => boolean
  #easyCount = 0
  #easySince = 0
  #wantedEasy = EASY_EXCHANGES
  #upstream: Upstream | undefined
  #reserved: Reserved | undefined
  #waited = 0
  /** What the lane left in the middle. */
  #unfinished: LaneGrant | undefined

  /** `mayBegin`: whether there could be a lane for the visitor now. */
  constructor(mayBegin: () => boolean) {
    this.#mayBegin = mayBegin
  }

  /** An exchange is over, and the connection goes on. `isEasy`: a lane could have served it. */
  exchanged(isEasy: boolean): void {
    if (this.#reserved !== undefined) {
      if (isEasy && ++this.#waited <= MAX_WAITED) return
      if (isEasy) this.#wantedEasy = Math.min(2 * this.#wantedEasy, MAX_WANTED_EASY)
      this.giveUp()
    } else if (!isEasy) this.#easyCount = 0
    else if (this.#easyCount++ === 0) this.#easySince = performance.now()
  }

  /** Where a request that was routed to an upstream goes: to the visitor's own way there, if it has one. */
  begin(upstream: Upstream, visit: Visit): Exchange {
    if (this.#reserved !== undefined && (this.#upstream !== upstream || !this.#reserved.isOpen)) this.giveUp()
    if (this.#reserved === undefined && this.#isWanted()) {
      this.#reserved = upstream.reserve?.()
      this.#upstream = upstream
      this.#waited = 0
    }
    return (this.#reserved ?? upstream).begin(visit)
  }

  get isReady(): boolean {
    return this.#reserved?.isReadyForLane === true
  }

  /** `ended` is told once, later: `undefined` if there was no lane after all. */
  enter(
    visitor: Socket,
    grant: LaneGrant,
    terms: (rewrite: Rewrite | undefined) => LaneTerms,
    isUndisturbed: () => boolean,
    ended: (end: LaneEnd | undefined) => void,
  ): void {
    const reserved = this.#reserved
    if (reserved === undefined) return ended(undefined)
    let lane: Lane | undefined
    reserved.enterLane(visitor, terms(reserved.rewrite), {
      isUndisturbed,
      began: begun => {
        lane = begun
        grant.began(begun)
      },
      exchanged: exchange => grant.exchanged(exchange),
      ended: end => {
        const isWorthwhile = end !== undefined && end.counts.requests >= WORTHWHILE_REQUESTS
        this.#wantedEasy = isWorthwhile ? EASY_EXCHANGES : Math.min(2 * this.#wantedEasy, MAX_WANTED_EASY)
        // An exchange that the lane began goes on here. The stream is everybody's after it.
        if (end?.isAsked && !end.isTorn) this.#unfinished = grant
        else this.giveUp()
        ended(end)
        this.giveUp()
        if (lane !== undefined && end !== undefined) grant.ended(lane, end)
      },
    })
  }

  /** Where the request goes that the visitor holds now, if a lane sent it already: whatever has changed since. */
  unfinishedAt(visitor: VisitorConnection): Upstream | undefined {
    const grant = this.#unfinished
    this.#unfinished = undefined
    if (grant === undefined || this.#reserved?.isOpen !== true) return undefined
    grant.goesOn(visitor)
    return this.#upstream
  }

  /** The visitor is gone, or its stream is not what it needs. */
  giveUp(): void {
    const reserved = this.#reserved
    this.#reserved = undefined
    this.#upstream = undefined
    this.#unfinished = undefined
    this.#easyCount = 0
    reserved?.release()
  }

  #isWanted(): boolean {
    if (this.#easyCount < this.#wantedEasy) return false
    // Slow as they come, a stream of their own would save nothing.
    const isSoon = performance.now() - this.#easySince < (SOON_MS * this.#wantedEasy) / EASY_EXCHANGES
    this.#easyCount = 0
    return isSoon && this.#mayBegin()
  }
}
