// Decides when a visitor gets a lane: reserves a stream once its requests are small, and decides when to release it.

import type { Lane } from '../../accelerator.ts'
import { IDEMPOTENT } from '../../http/characters.ts'
import type { Arrival } from '../../server/contracts/front.ts'
import type { Reserved } from '../../server/contracts/lane.ts'
import type { LaneSite, VisitorShortcut } from '../../server/contracts/laning.ts'
import type { Ease, Exchange, Upstream, Visit } from '../../server/contracts/upstream.ts'
import type { LaneGrant } from './install.ts'

/** The number of small exchanges within `SOON_MS` that qualify a visitor for a lane. */
const EASY_EXCHANGES = 8
const SOON_MS = 1_000
/** The number of requests below which a lane was not worth it: the next one needs twice as many small exchanges first. */
const WORTHWHILE_REQUESTS = 64
const MAX_WANTED_EASY = 65_536
/** The number of exchanges after which an unsuitable stream is released, such as one whose last lane was not returned. */
const MAX_WAITED = 8

/** A visitor's connection, and the terms on which a lane for it may begin. */
interface Site<Request> extends Omit<LaneSite<Request>, 'offer'> {
  /** Grants a lane. `undefined` if none is allowed. */
  grant(): LaneGrant<Request> | undefined
}

export class VisitorLane<Request> implements VisitorShortcut<Request> {
  readonly #site: Site<Request>
  #easyCount = 0
  #easySince = 0
  #wantedEasy = EASY_EXCHANGES
  /** Whether a request was not a plain GET. */
  #hasBodies = false
  /** The upstream of the visitor's last request. */
  #lastUpstream: Upstream | undefined
  #upstream: Upstream | undefined
  #reserved: Reserved | undefined
  #waited = 0
  #grant: LaneGrant<Request> | undefined
  /** The grant of an exchange that the lane left incomplete. */
  #unfinished: LaneGrant<Request> | undefined

  constructor(site: Site<Request>) {
    this.#site = site
  }

  exchanged(ease: Ease): void {
    if (this.#reserved !== undefined) {
      if (ease !== 'none' && ++this.#waited <= MAX_WAITED) return
      if (ease !== 'none') this.#wantedEasy = Math.min(2 * this.#wantedEasy, MAX_WANTED_EASY)
      this.giveUp()
    } else if (ease === 'none') this.#forget()
    else if (ease === 'easy' && this.#easyCount++ === 0) this.#easySince = performance.now()
  }

  begin(upstream: Upstream, visit: Visit): Exchange {
    const isResumed = this.#unfinished !== undefined
    this.#unfinished = undefined
    const isFit = isResumed || (this.#upstream === upstream && this.#reserved?.isOpen === true)
    if (this.#reserved !== undefined && !isFit) this.giveUp()
    // A lane serves one host. A proxy in front with requests for several tunnels would begin and end one each time.
    if (this.#lastUpstream !== upstream) this.#forget()
    this.#lastUpstream = upstream
    this.#hasBodies ||= visit.head.method !== 'GET' || visit.head.body !== 'none'
    if (this.#reserved === undefined && this.#isWanted()) {
      this.#reserved = upstream.reserve?.(visit)
      this.#upstream = upstream
      this.#waited = 0
    }
    return (this.#reserved ?? upstream).begin(visit)
  }

  get isReady(): boolean {
    return this.#reserved?.isLendable === true
  }

  isGranted(): boolean {
    this.#grant = this.#site.grant()
    if (this.#grant === undefined) this.giveUp()
    return this.#grant !== undefined
  }

  enter(): void {
    const site = this.#site
    const reserved = this.#reserved
    const grant = this.#grant
    this.#grant = undefined
    if (reserved === undefined || grant === undefined) return site.left(undefined)
    const { routingEpoch, grantedEpoch, reportsLeft, isReported, isMeasured, isForGets, allotted, log } =
      grant
    const terms = {
      routingEpoch,
      grantedEpoch,
      reportsLeft,
      hostWithPort: site.hostWithPort(),
      hop: site.hop(reserved.rewrite),
      limits: site.limits(),
      isReported,
      isMeasured,
      isForGets,
      allotted,
      log,
      tracing: site.tracing(),
    }
    let lane: Lane | undefined
    reserved.lend(site.socket, terms, {
      isUndisturbed: () => site.isUndisturbed(),
      began: begun => {
        lane = begun
        grant.began(begun)
      },
      exchanged: exchange => grant.exchanged(exchange),
      logged: (lines, count) => grant.logged(lines, count),
      ended: end => {
        const isWorthwhile = end !== undefined && end.counts.requests >= WORTHWHILE_REQUESTS
        this.#wantedEasy = isWorthwhile ? EASY_EXCHANGES : Math.min(2 * this.#wantedEasy, MAX_WANTED_EASY)
        // An exchange that the lane started continues here. The stream then returns to the pool.
        if (end?.isAsked) this.#unfinished = grant
        else this.giveUp()
        site.left(end)
        this.giveUp()
        if (lane !== undefined && end !== undefined) grant.ended(lane, end)
      },
    })
  }

  resumed(arrival: Arrival): Request | undefined {
    const grant = this.#unfinished
    const upstream = this.#upstream
    if (grant === undefined || upstream === undefined) return undefined
    // The app may have had the request. If it does no harm twice, it is sent again as if it had just come; otherwise
    // it fails with the closed connection.
    if (this.#reserved?.isOpen !== true && IDEMPOTENT.has(arrival.head.method)) {
      this.giveUp()
      return undefined
    }
    return grant.resume(arrival, upstream)
  }

  giveUp(): void {
    const reserved = this.#reserved
    this.#reserved = undefined
    this.#upstream = undefined
    this.#unfinished = undefined
    this.#lastUpstream = undefined
    this.#forget()
    reserved?.release()
  }

  #forget(): void {
    this.#easyCount = 0
    this.#hasBodies = false
  }

  #isWanted(): boolean {
    if (this.#easyCount < this.#wantedEasy) return false
    // These visitors are slow, so a stream of their own would save nothing.
    const isSoon = performance.now() - this.#easySince < (SOON_MS * this.#wantedEasy) / EASY_EXCHANGES
    const { socket } = this.#site
    const grant = isSoon && socket.isLendable === true ? this.#site.grant() : undefined
    const isWanted = grant !== undefined && !(grant.isForGets && this.#hasBodies)
    this.#forget()
    return isWanted
  }
}
