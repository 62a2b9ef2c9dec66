// The contract of a session: its options, its handler, and the counting of its streams.

import type { ErrorCode } from '../errors.ts'
import type { ByteStream, StreamHandler } from './byte-stream.ts'
import type { HeartbeatOptions } from './heartbeat.ts'
import type { Scheduler } from './scheduler.ts'
import type { Turns } from './turns.ts'
import type { WindowLimits } from './windows.ts'

export interface SessionOptions extends HeartbeatOptions, WindowLimits {
  /** The role of this end. Only the server opens streams. */
  readonly role: 'server' | 'client'
  readonly scheduler: Scheduler
  /** The maximum number of open streams. If exceeded, an OPEN gets RESET `TUNNEL_BUSY`. */
  readonly maxStreams: number
  /** The bytes of frames without data that may wait for a full carrier. If exceeded, the session ends with `FLOOD`. */
  readonly maxCarrierBacklogBytes: number
  /** Divides time among sessions: frames beyond a portion wait for a turn. Without it, all are handled at once. */
  readonly turns?: Turns
  readonly streamBudget?: StreamBudget
}

/** A limit on streams that other sessions share. */
export interface StreamBudget {
  /** Counts one more stream. Returns `false` if the limit is reached. */
  open(): boolean
  close(): void
}

export interface SessionHandler {
  /**
   * Called when the server opened a stream (client role only). Returns the stream's handler, or a code to refuse it. `maxStreams`
   * counts streams only: the handler must count what outlives a reset stream, such as a dial in progress.
   */
  opened(stream: ByteStream, tunnel: number): StreamHandler | ErrorCode
  /** Returns the number of tunnels that the other side has or asked for (server role only). */
  tunnelCount?(): number
  /** Called with a control message, whose bytes may be used only during the call. */
  control(json: Uint8Array): void
  /** Called when the other side takes no new streams. It leaves when the open ones have finished, or at once after an error. */
  leaving(code: ErrorCode): void
  /** Called when a stream has a large transfer and no link is free. */
  linkWanted?(): void
  /** Called once when the session is over, after all its streams were reset. */
  closed(code: ErrorCode, error?: Error): void
}
