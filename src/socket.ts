// Contract: a byte connection with exact backpressure. Implementations: sockets/bun.ts, sockets/node.ts.

import type { Hop } from './http/forward.ts'
import type { HeadLimits } from './http/head.ts'

/** One end of a TCP connection. */
export interface Endpoint {
  /** An IPv4 address also where IPv6 carried it. */
  readonly address: string
  readonly port: number
}

/** Both ends of a TCP connection, as its accepting side sees them. */
export interface Endpoints {
  readonly source: Endpoint
  readonly destination: Endpoint
}

/** The writing side of a connection. The one who opened it closes it. */
export interface Socket {
  /**
   * Writes bytes[start, end), all of them by default, to the kernel and says how many it took: fewer than given means
   * full, and `drained` follows. Those not taken stay the caller's; those taken may be overwritten at once. 0 after a
   * close.
   */
  write(bytes: Uint8Array, start?: number, end?: number): number
  /** Sends FIN after what was written; reading goes on. */
  end(): void
  /** Closes both ways at once, with RST where the platform can: the far side must not take it for a clean end. */
  terminate(): void
  /** Behind `end`: forgets the connection without a reset, so that the kernel sends what it has. Before it: as `terminate`. */
  letGo?(): void
  /** Stops reading; the kernel's window then stops the far side. */
  pause(): void
  /** Reads on. */
  resume(): void
  /**
   * Has the system ask for a sign of life after so much silence, and again for ten seconds; then the connection fails.
   * Left out where a connection cannot die unnoticed.
   */
  keepAlive?(idleMs: number): void
  /** Address of the far side, without port; empty on a unix socket. */
  readonly remoteAddress: string
  /**
   * Moves what comes on this connection to another without the program seeing it, where the platform can: up to
   * `limitBytes`, or until this side's FIN, a failure of either, a while without bytes, or `stop`. Only to be called in
   * `turnBegan`. Until `done`, called once and later, nobody may write to the other or end it. What was read by then
   * and did not reach it is told as `received`, right after `done`. `undefined`: not here, or not now.
   */
  spliceTo?(to: Socket, limitBytes: number, done: SpliceDone): Splice | undefined
  /**
   * Gives this connection to lanes for the rest of its life, where the platform can. Nothing may be on its way on it;
   * its end is told as always. `isAppSide`: lanes are begun by the other side. `undefined`: not here, or not now.
   */
  becomeTrunk?(isAppSide: boolean): Trunk | undefined
  /**
   * Has what comes on this connection, which has to be paused since the last tick, served by a lane on a trunk: a
   * visitor's easy requests, on `terms`; without terms, whatever an app sends. Until `over`, called once and later,
   * nobody may write to this connection or end it. `undefined`: not here, or not now.
   */
  enterLane?(trunk: Trunk, lane: number, terms: LaneTerms | undefined, handler: LaneHandler): Lane | undefined
  /** Whether `enterLane` is possible on this connection now. The first question begins what it takes. */
  canEnterLane?(): boolean
  /** Has `turnBegan` called before anything else is read. `false`: `spliceTo` is not possible here. */
  askTurn?(): boolean
  /** Who connected, and where to. `undefined` on a unix socket, and once the connection is gone. */
  endpoints(): Endpoints | undefined
}

/** So many bytes reached the other connection. */
export type SpliceDone = (movedBytes: number) => void

/** Bytes on their way from one connection to another, unseen by the program. */
export interface Splice {
  /** Of a conversation, and not of bulk: it goes on through the other side's turns. */
  readonly isPrompt: boolean
  /** At least so many reached the other connection. */
  readonly movedBytes: number
  /** At most so many did: they left this one. */
  readonly takenBytes: number
  /** Ends it, a moment later; `done` tells. */
  stop(): void
}

/** On whose terms a lane serves. It ends with the first request that does not keep to them. */
export interface LaneTerms {
  /** One number, which is not `since` any more as soon as a request may have to go elsewhere. */
  readonly era: Int32Array<SharedArrayBuffer>
  readonly since: number
  /** What every request has as its Host. */
  readonly hostWithPort: string
  readonly hop: Hop
  readonly limits: HeadLimits
  /** Somebody wants to hear of each exchange. */
  readonly isTold: boolean
}

/** One that a lane has served. */
export interface LaneExchange {
  /** Of a GET. */
  readonly target: string
  readonly status: number
  /** From the request read to the answer sent. */
  readonly durationMs: number
  /** Of the answer, as the visitor got it. */
  readonly bytes: number
}

/** A connection that lanes share. See `splice/trunk.ts`. */
export interface Trunk {
  /** A number for a lane that this side begins. The other side is told which stream it is for. */
  nextLane(): number
  /** For a lane that the other side began, and that cannot be here. What it sent is told as `more`, if it can be told. */
  refuse(lane: number, handler: LaneHandler): void
}

/** Easy requests of one visitor, and their answers, on their way without the program. See `splice/lane.ts`. */
export interface Lane {
  readonly counts: LaneCounts
  /** Ends it, a moment later. */
  stop(): void
}

/** What is heard of a lane, in this order. */
export interface LaneHandler {
  /** One after the other, a moment later; if the terms say so. */
  exchanged?(exchange: LaneExchange): void
  /** The connection is the program's again. Called once. */
  over(end: LaneEnd): void
  /** Bytes of the other side that were not passed on, behind `over`. What it sends otherwise comes behind all of them. */
  more(bytes: Uint8Array): void
  /** No more come. Called once. `isTorn`: the trunk is gone, and some of them may have been lost with it. */
  back(isTorn: boolean): void
}

/** What a lane has served so far. */
export interface LaneCounts {
  /** Exchanges that are over. */
  readonly requests: number
  /** Bytes of their requests, as the visitor sent them, and of their answers, as it got them. */
  readonly bytesIn: number
  readonly bytesOut: number
}

/** A lane is over. What it read and did not serve is the program's. */
export interface LaneEnd {
  readonly counts: LaneCounts
  /** Bytes that went to the other side, and that came from it, but for those that will be told as `more`. */
  readonly sentBytes: number
  readonly receivedBytes: number
  /** Bytes of the visitor. */
  readonly request: Uint8Array | undefined
  /** They are a request that the app got already, as the lane forwarded it. */
  readonly isAsked: boolean
  /** The trunk is gone, and nobody knows what the other side got: the stream is good for nothing any more. */
  readonly isTorn: boolean
  /** Bytes for the visitor, who has the beginning of the answer: its request is served otherwise. */
  readonly unsent: Uint8Array | undefined
}

/** What happens on a connection. `closed` is always the last call, exactly once. */
export interface SocketHandler {
  /** Bytes arrived. The array is the handler's to keep, unless `isScratch` says that it is reused. */
  received(bytes: Uint8Array, isScratch?: boolean): void
  /** The kernel takes bytes again after a short `write`. */
  drained(): void
  /** Bytes come in bulk, or somebody asked for it, and the next of them are not read yet: the moment for `spliceTo`. */
  turnBegan?(): void
  /** The far side sent FIN: it will send no more, but may still read. */
  ended(): void
  /** The connection is gone. `error` is set when it did not end by FIN both ways. */
  closed(error?: Error): void
}

/** Where a connection goes. `tls` absent means plain bytes. */
export interface Address {
  /** Name or address. Default `localhost`, both address families. */
  readonly host?: string
  readonly port?: number
  /** Path of a unix socket, instead of host and port. */
  readonly unix?: string
  /** Speak TLS, with these options; `{}` verifies as usual. */
  readonly tls?: TlsOptions
  /** Go there through something else, such as a proxy; then host and port are its business, and `unix` is not used. */
  readonly via?: Via
}

/** What a connection goes through: dialled first, asked for the way on, and then as if it were the far side. */
export interface Via {
  readonly address: Omit<Address, 'via'>
  /** One for each connection. */
  readonly opening: Opening
}

/** What is said on a connection before it belongs to its handler. It knows bytes and no socket. */
export interface Opening {
  /** The connection is up: what to send first. */
  begin(): Uint8Array
  /**
   * Bytes arrived. Returns what to send next, or that it is over: `rest` came behind the opening and belongs to the
   * handler. Throws what the dial is to fail with; bounds what it keeps.
   */
  take(bytes: Uint8Array): Uint8Array | { readonly rest: Uint8Array } | undefined
}

/** How to speak TLS to an address. */
export interface TlsOptions {
  /** Name to verify the certificate against and to send as SNI. Default: the host dialled. */
  readonly serverName?: string
  /** `false` accepts any certificate. Default `true`. */
  readonly verify?: boolean
  /** PEM of an authority to trust besides the system's. */
  readonly ca?: string
}

/**
 * Opens a connection: resolves once it is up (after the TLS handshake), rejects with the platform's error
 * (`code` such as ECONNREFUSED) when it cannot be. `signal` says that nobody wants it any more: what can be stopped
 * then is, and whoever gave it still has to cut a connection that comes up after all.
 */
export type Dial = (address: Address, handler: SocketHandler, signal?: AbortSignal) => Promise<Socket>
