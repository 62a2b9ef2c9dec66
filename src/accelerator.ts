// Contract: what moves bytes between connections without the main thread. Implementation: accelerator/door.ts, for Bun on
// Linux. Everything works without it: each of its methods may return "not here" or "not now".
//
//   splice   what comes on one connection goes to another         (bulk, and raw conversations)
//   lane     easy requests of one visitor, and their responses      visitor ══ trunk ══ app
//   trunk    a connection between server and client that lanes share

import type { Hop } from './http/forward.ts'
import type { HeadLimits } from './http/head.ts'
import type { Tracing } from './http/tracing.ts'
import type { Socket, Splice } from './socket.ts'

/** All that the rest of the code may ask of it. */
export interface Accelerator {
  /** Whether this process can have any of it. */
  readonly isPossible: boolean
  /**
   * Moves what comes on one connection to another, up to `limitBytes` or the end. Both are lent until `ended`, which is
   * called once and later. `undefined`: not now.
   */
  splice(
    from: Socket,
    to: Socket,
    limitBytes: number,
    pace: Pace,
    ended: (movedBytes: number, leftover: Uint8Array | undefined) => void,
  ): Splice | undefined
  /** Starts the thread that serves lanes, and waits for it. `false`: not here, or not now. */
  ready(): Promise<boolean>
  /**
   * Gives a connection to lanes for the rest of its life; its end is reported as always. Nothing may be in transit on it.
   * `isAppSide`: lanes are begun by the other side. `undefined`: not now.
   */
  openTrunk(socket: Socket, isAppSide: boolean): Trunk | undefined
  /** Calls `listener` for each fault of the threads from now on. Returns the function that stops it. */
  watchFaults(listener: (fault: Fault) => void): () => void
}

/**
 * The priority of a splice: `bulk` gives way to all other traffic. Prompt is a conversation, whose pieces are so small that
 * their delay counts.
 */
export type Pace = 'bulk' | 'prompt'

/** A failure of the worker threads. */
export interface Fault {
  /** Whether a thread died or ended its work (`failed`), or the process has `scarce`: there are too few descriptors. */
  readonly kind: 'failed' | 'scarce'
  /** The description, in one sentence. */
  readonly detail: string
  readonly cause?: unknown
}

/**
 * The count of small reads of this process, to which bulk transfers give way. One number, without atomics on the main thread: a
 * count that is lost between two threads harms nothing.
 */
export const smallReads: Int32Array<SharedArrayBuffer> = new Int32Array(new SharedArrayBuffer(4))

/** A connection that lanes share. */
export interface Trunk {
  /** A number for a lane that this side begins. The other side has to learn which stream it is for. */
  nextLane(): number
  /**
   * Serves what comes on a connection, which has to be paused since the last tick, in a lane: a visitor's easy requests, on
   * `terms`; without terms, whatever an app sends. The connection is lent until `over`. `undefined`: not now.
   */
  enter(socket: Socket, lane: number, terms: LaneTerms | undefined, handler: LaneHandler): Lane | undefined
  /** Refuses a lane that the other side started. Its bytes come as `more`, if that is possible. */
  refuse(lane: number, handler: LaneHandler): void
}

/** The longest request that a lane serves, with its body. */
export const EASY_REQUEST_BYTES = 16_384

export interface RequestLimits extends HeadLimits {
  /** The maximum size of a request body in bytes. `0`: no bodies. */
  readonly maxBodyBytes: number
}

/** The terms that a lane serves on. It ends with the first request that does not keep to them. */
export interface LaneTerms {
  /** The epoch of routing in shared memory: it changes as soon as a request may have to go to another place. */
  readonly routingEpoch: Int32Array<SharedArrayBuffer>
  /** The value of `routingEpoch` when the lane was granted. */
  readonly grantedEpoch: number
  /** The number of exchanges that may still be reported one by one, whatever `isReported` says. Lanes count it down. */
  readonly reportsLeft: Int32Array<SharedArrayBuffer>
  readonly hostWithPort: string
  readonly hop: Hop
  readonly limits: RequestLimits
  /** Requests that are not plain GETs, without a body, end the lane. */
  readonly isForGets: boolean
  /** Each exchange is reported, however many there are. */
  readonly isReported: boolean
  /** Each request takes one of each, or ends the lane. */
  readonly allotted: readonly Int32Array<SharedArrayBuffer>[]
  /** The generator of request ids. `undefined` if requests get none. */
  readonly tracing: Tracing | undefined
  /** Whether the lane fills in `LaneCounts.measures`. */
  readonly isMeasured: boolean
  /** Each exchange has a line there. */
  readonly log: LaneLog | undefined
}

/** The access log of a lane's exchanges; of each there is a line, as `plugins/access-line.ts` makes it. */
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
  /** Ends it, a moment later. */
  stop(): void
}

/** A receiver of the reports of a lane, in this order. */
export interface LaneHandler {
  /** An exchange is over, a moment ago; only those that are reported one by one. */
  exchanged?(exchange: LaneExchange): void
  /** Called with `count` lines for the log, also from other lanes with the same log. */
  logged?(lines: Uint8Array, count: number): void
  /** The connection is the main thread's again. Called once. */
  over(end: LaneEnd): void
  /** Bytes of the other side that were not passed on. Later frames of the stream follow all of them. */
  more(bytes: Uint8Array): void
  /** Called once, when no more bytes come. `isTorn`: the trunk is gone, and some of them may have been lost with it. */
  back(isTorn: boolean): void
}

export interface LaneCounts {
  readonly requests: number
  /** Bytes of their requests, as the visitor sent them, and of their responses, as it got them. */
  readonly bytesIn: number
  readonly bytesOut: number
  /** The exchanges that were not reported one by one. */
  readonly unreported: ExchangeCounts
  /** A row as `measures.ts` has it, of all exchanges; `undefined`: nothing was measured. A copy. */
  readonly measures?: Float64Array | undefined
}

export interface ExchangeCounts {
  readonly requests: number
  /** The number of exchanges with a status of 500 or above, or with an error code that is not `CANCELLED`. */
  readonly errors: number
  readonly bytes: number
}

/** A lane is over. The main thread gets the bytes that it read and did not serve. */
export interface LaneEnd {
  readonly counts: LaneCounts
  /** Bytes that went to the other side, and that came from it, without those that follow as `more`. */
  readonly sentBytes: number
  readonly receivedBytes: number
  /** Bytes of the visitor. */
  readonly request: Uint8Array | undefined
  /** Whether the bytes are a request that the app already has, as the lane forwarded it. */
  readonly isAsked: boolean
  /** The trunk is gone, and it is not known what the other side got: the stream cannot be used any more. */
  readonly isTorn: boolean
  /** Bytes for the visitor, which has the beginning of the response: its request is served otherwise. */
  readonly unsent: Uint8Array | undefined
}
