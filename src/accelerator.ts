// Contract: worker threads that move bytes between connections without the main thread. Implementation:
// accelerator/door.ts, for Bun on Linux. Everything works without it: each of its methods may return "not here" or
// "not now".
//
//   splice   bytes of one connection go to another              (large transfers, interactive connections)
//   lane     small requests of one visitor, and their responses      visitor ══ trunk ══ app
//   trunk    a connection between server and client that lanes share

import type { Hop } from './http/forward.ts'
import type { HeadLimits } from './http/head.ts'
import type { Tracing } from './http/tracing.ts'
import type { Socket, Splice } from './socket.ts'

/** The operations that other code may use. */
export interface Accelerator {
  /** Whether this process can use the accelerator. */
  readonly isPossible: boolean
  /**
   * Moves bytes from one connection to another, up to `limitBytes` or the end. Both are lent until `ended`, which is
   * called once and never at once. `undefined` if this is impossible now.
   */
  splice(
    from: Socket,
    to: Socket,
    limitBytes: number,
    pace: Pace,
    ended: (movedBytes: number, leftover: Uint8Array | undefined) => void,
  ): Splice | undefined
  /** Starts the thread that serves lanes, and waits for it. Resolves with `false` if this is impossible here, or now. */
  ready(): Promise<boolean>
  /**
   * Gives a connection to lanes for the rest of its life; its end is reported as usual. No bytes may be in transit on
   * it. `isAppSide`: the other side begins lanes. `undefined` if this is impossible now.
   */
  openTrunk(socket: Socket, isAppSide: boolean): Trunk | undefined
  /** Calls `listener` for each fault of the threads from now on. Returns the function that stops it. */
  watchFaults(listener: (fault: Fault) => void): () => void
}

/**
 * The kind of traffic of a splice. `bulk` is a large transfer and gives way to all other traffic. `prompt` is an
 * interactive connection, whose pieces are so small that their delay counts.
 */
export type Pace = 'bulk' | 'prompt'

/** A failure of the worker threads. */
export interface Fault {
  /** Whether a thread died or stopped (`failed`), or the process has too few descriptors (`scarce`). */
  readonly kind: 'failed' | 'scarce'
  /** The description, in one sentence. */
  readonly detail: string
  readonly cause?: unknown
}

/**
 * The number of small reads of this process. Large transfers pause while it grows. The main thread uses no atomics: a
 * count that is lost between two threads does no harm.
 */
export const smallReads: Int32Array<SharedArrayBuffer> = new Int32Array(new SharedArrayBuffer(4))

/** A connection that lanes share. */
export interface Trunk {
  /** Returns a number for a lane that this side begins. The other side must learn which stream it belongs to. */
  nextLane(): number
  /**
   * Serves a connection in a lane: a visitor's small requests, on `terms`; without terms, whatever an app sends. The connection
   * must have been paused since the last tick, and is lent until `over`. `undefined` if this is impossible now.
   */
  enter(socket: Socket, lane: number, terms: LaneTerms | undefined, handler: LaneHandler): Lane | undefined
  /** Refuses a lane that the other side started. Its bytes are passed to `more`, if possible. */
  refuse(lane: number, handler: LaneHandler): void
}

/** The maximum size of a request that a lane serves, with its body. */
export const EASY_REQUEST_BYTES = 16_384

export interface RequestLimits extends HeadLimits {
  /** The maximum size of a request body in bytes. `0`: no bodies. */
  readonly maxBodyBytes: number
}

/** The terms for a lane. It ends with the first request that does not meet them. */
export interface LaneTerms {
  /** The number in shared memory that changes as soon as a request may have to go to another destination. */
  readonly routingEpoch: Int32Array<SharedArrayBuffer>
  /** The value of `routingEpoch` when the lane was granted. */
  readonly grantedEpoch: number
  /** The number of exchanges that may still be reported one by one, even without `isReported`. Lanes count it down. */
  readonly reportsLeft: Int32Array<SharedArrayBuffer>
  readonly hostWithPort: string
  readonly hop: Hop
  readonly limits: RequestLimits
  /** Whether the lane ends with the first request that is not a plain GET without a body. */
  readonly isForGets: boolean
  /** Whether every exchange is reported. */
  readonly isReported: boolean
  /** The allotments of guards. Each request takes one from each, or ends the lane. */
  readonly allotted: readonly Int32Array<SharedArrayBuffer>[]
  /** The generator of request ids. `undefined` if requests get none. */
  readonly tracing: Tracing | undefined
  /** Whether the lane fills in `LaneCounts.measures`. */
  readonly isMeasured: boolean
  /** The access log for the exchanges. `undefined` if there is none. */
  readonly log: LaneLog | undefined
}

/** The access log of a lane's exchanges, with one line for each, as `plugins/access-line.ts` makes it. */
export interface LaneLog {
  readonly number: number
  readonly ids: BigInt64Array<SharedArrayBuffer>
  readonly sample: number
  readonly query: boolean
  /** The bytes of each line between the id and the path. */
  readonly middle: Uint8Array
}

export interface LaneExchange {
  readonly requestId: string
  readonly method: string
  readonly target: string
  readonly status: number
  /** The time from the read of the request to the sent response, in milliseconds. */
  readonly durationMs: number
  readonly requestBytes: number
  /** The number of bytes of the response, as the visitor got it. */
  readonly bytes: number
}

export interface Lane {
  readonly counts: LaneCounts
  /** Ends the lane, a moment later. */
  stop(): void
}

/** Receives the reports of a lane, in this order. */
export interface LaneHandler {
  /** Called when an exchange has ended, if it is reported one by one. */
  exchanged?(exchange: LaneExchange): void
  /** Called with `count` lines for the log, also from other lanes with the same log. */
  logged?(lines: Uint8Array, count: number): void
  /** Called once, when the connection belongs to the main thread again. */
  over(end: LaneEnd): void
  /** Called with bytes from the other side that were not passed on. Later frames of the stream follow all of them. */
  more(bytes: Uint8Array): void
  /** Called once, after the last bytes. `isTorn`: the trunk has closed, and bytes may be lost. */
  back(isTorn: boolean): void
}

export interface LaneCounts {
  readonly requests: number
  /** The number of bytes of their requests as sent by the visitor, and of their responses as received by it. */
  readonly bytesIn: number
  readonly bytesOut: number
  /** The exchanges that were not reported one by one. */
  readonly unreported: ExchangeCounts
  /** A copy of the measurements of all exchanges, as a row of `measures.ts`. `undefined` if nothing was measured. */
  readonly measures?: Float64Array | undefined
}

export interface ExchangeCounts {
  readonly requests: number
  /** The number of exchanges with a status of 500 or above, or with an error code that is not `CANCELLED`. */
  readonly errors: number
  readonly bytes: number
}

/** The end of a lane. The main thread gets the bytes that the lane read and did not serve. */
export interface LaneEnd {
  readonly counts: LaneCounts
  /** The bytes that went to the other side, and those that came from it, without those that follow as `more`. */
  readonly sentBytes: number
  readonly receivedBytes: number
  /** Bytes from the visitor. */
  readonly request: Uint8Array | undefined
  /** Whether the bytes are a request that the lane has already forwarded to the app. */
  readonly isAsked: boolean
  /** Whether the trunk is gone and it is unknown what the other side got, so that the stream cannot be used any more. */
  readonly isTorn: boolean
  /** Bytes for a visitor who has the beginning of the response. The main thread completes the request. */
  readonly unsent: Uint8Array | undefined
}
