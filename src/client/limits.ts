// All limits of a client, with their defaults.

import { optionInvalid } from '../errors.ts'
import { checkNames, whole } from '../option-names.ts'

/**
 * The limits of a client that can be changed. Whole numbers; the minimum is 1 unless `0` is explained. Other values
 * and unknown names are `OPTION_INVALID`.
 */
export interface ClientLimits {
  /**
   * Streams open at once, which are connections to the app; on the JSON wire requests. Default 8,192: twice what a server
   * of ours opens for a tunnel, below the usual file descriptors. If exceeded: refused with `TUNNEL_BUSY`, or 503.
   */
  readonly maxStreams: number
  /** Connections next to the carrier for bulk. Default 32. If exceeded: bulk shares the carrier. `0`: none are made. */
  readonly maxLinks: number
  /** The receive window that a stream may grow to from 256 KiB. Default 4 MiB: what a stalled app can cost. `0`: no growth. */
  readonly maxStreamWindowBytes: number
  /** The allowed growth of the windows of all streams together. Default 64 MiB. If exceeded: none grows. `0`: no growth. */
  readonly maxSessionWindowBytes: number
  /**
   * Replies to the server (PONG, RESET, CREDIT and similar ones) that may wait while it does not read; data waits at its
   * source. Default 4 MiB. If exceeded: the connection is given up with `FLOOD`, and made again.
   */
  readonly maxCarrierBacklogBytes: number
  /**
   * Responses of the app that are being collected, all requests together: the JSON wire carries whole ones only. Default
   * 256 MiB, five of the largest. If exceeded: the request whose response grows is 503 `TUNNEL_BUSY`.
   */
  readonly maxCollectedBytes: number
}

export const DEFAULT_CLIENT_LIMITS: ClientLimits = {
  maxStreams: 8_192,
  maxLinks: 32,
  maxStreamWindowBytes: 4_194_304,
  maxSessionWindowBytes: 67_108_864,
  maxCarrierBacklogBytes: 4_194_304,
  maxCollectedBytes: 268_435_456,
}

/** The limits that leave the client unusable at 0. */
const NEVER_ZERO: ReadonlySet<string> = new Set(['maxStreams', 'maxCarrierBacklogBytes', 'maxCollectedBytes'])

export function clientLimits(wished: Partial<ClientLimits>): ClientLimits {
  checkNames(wished, DEFAULT_CLIENT_LIMITS, 'limits')
  const given = Object.entries(wished).filter(([, value]) => value !== undefined)
  for (const [name, value] of given) whole(`limits.${name}`, value, NEVER_ZERO.has(name) ? 1 : 0)
  return { ...DEFAULT_CLIENT_LIMITS, ...Object.fromEntries(given) }
}

/** The longest time of a timer in JavaScript; with a longer one it would fire at once. */
const MAX_TIMER_MS = 2_147_483_647

/** Returns the value. Throws `OPTION_INVALID` if no timer can wait for that long. */
export function positive(name: string, value: number): number {
  if (value > 0 && value <= MAX_TIMER_MS) return value
  throw optionInvalid(`${name} must be 1 to ${MAX_TIMER_MS} milliseconds, not ${value}.`)
}
