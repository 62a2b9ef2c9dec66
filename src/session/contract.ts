// The contract of a session: its options, its handler, and what counts its streams.

import type { ErrorCode } from '../errors.ts'
import type { ByteStream, StreamHandler } from './byte-stream.ts'
import type { HeartbeatOptions } from './heartbeat.ts'
import type { Scheduler } from './scheduler.ts'
import type { Turns } from './turns.ts'
import type { WindowLimits } from './windows.ts'

export interface SessionOptions extends HeartbeatOptions, WindowLimits {
  /** The role. Only the server opens streams. */
  readonly role: 'server' | 'client'
  readonly scheduler: Scheduler
  /** Streams open at once. If exceeded: the reply to an OPEN is RESET `TUNNEL_BUSY`. */
  readonly maxStreams: number
  /** Frames without data that may wait while the carrier is full, bytes. If exceeded: `FLOOD`, without a word. */
  readonly maxCarrierBacklogBytes: number
  /** The turns, shared with other sessions: more frames at once than a portion wait there. Without it all are taken at once. */
  readonly turns?: Turns
  readonly streamBudget?: StreamBudget
}

/** A contract for the number of streams that the session may have, which others also count. */
export interface StreamBudget {
  /** Counts one more. Returns `false` if there is to be none. */
  open(): boolean
  close(): void
}

export interface SessionHandler {
  /**
   * The server opened a stream (client role only). Returns the stream's handler, or the code to refuse it with.
   * `maxStreams` counts streams: what outlives one that was reset, such as a dial in progress, is the handler's to count.
   */
  opened(stream: ByteStream, tunnel: number): StreamHandler | ErrorCode
  /** Tunnels that the other side has, or has asked for and may get (server role only). */
  tunnelCount?(): number
  /** A control message. The bytes are only valid during the call. */
  control(json: Uint8Array): void
  /** The other side takes no new streams: it leaves when what is open has finished, or at once for what went wrong. */
  leaving(code: ErrorCode): void
  /** A stream sends in bulk and no link is free: one more would be of use. */
  linkWanted?(): void
  /** The session is over, exactly once; all its streams were reset before. */
  closed(code: ErrorCode, error?: Error): void
}
