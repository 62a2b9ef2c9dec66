// The peer's SETTINGS (RFC 9113 section 6.5.2, RFC 8441 section 3), and their validation.

import { DEFAULT_TABLE_BYTES } from './dynamic-table.ts'
import { FLOW_CONTROL_ERROR, PROTOCOL_ERROR } from './error-codes.ts'
import { LEAST_MAX_FRAME_BYTES, MAX_U31, MOST_MAX_FRAME_BYTES, readU32 } from './frame.ts'
import { INITIAL_WINDOW_BYTES } from './windows.ts'

export const HEADER_TABLE_SIZE = 0x1
export const ENABLE_PUSH = 0x2
export const MAX_CONCURRENT_STREAMS = 0x3
export const INITIAL_WINDOW_SIZE = 0x4
export const MAX_FRAME_SIZE = 0x5
export const MAX_HEADER_LIST_SIZE = 0x6
export const ENABLE_CONNECT_PROTOCOL = 0x8

/** The settings of the other side; before it sends any, the defaults of RFC 9113. */
export class PeerSettings {
  headerTableSize: number = DEFAULT_TABLE_BYTES
  /** The smallest table size during the last `read`, which the encoder must also announce (RFC 7541 section 4.2). */
  leastHeaderTableSize: number = DEFAULT_TABLE_BYTES
  maxConcurrentStreams: number = Number.POSITIVE_INFINITY
  initialWindowSize: number = INITIAL_WINDOW_BYTES
  maxFrameSize: number = LEAST_MAX_FRAME_BYTES
  maxHeaderListSize: number = Number.POSITIVE_INFINITY
  /** Whether a WebSocket may be opened on a stream (RFC 8441). */
  enableConnectProtocol = false
  /** The reason why `read` refused the settings. */
  problem = ''

  readonly #isServer: boolean

  /**
   * Makes the settings of a peer with this role. A server may not allow pushes, and ENABLE_CONNECT_PROTOCOL from a
   * client has no meaning.
   */
  constructor(role: 'server' | 'client') {
    this.#isServer = role === 'server'
  }

  /** Reads the entries in bytes[start, end), six bytes each, in order. Returns the code of a connection error, or 0. */
  read(bytes: Uint8Array, start: number, end: number): number {
    this.leastHeaderTableSize = this.headerTableSize
    for (let at = start; at < end; at += 6) {
      const code = this.#take((bytes[at]! << 8) | bytes[at + 1]!, readU32(bytes, at + 2))
      if (code !== 0) return code
    }
    return 0
  }

  #take(id: number, value: number): number {
    switch (id) {
      case HEADER_TABLE_SIZE:
        this.headerTableSize = value
        this.leastHeaderTableSize = Math.min(this.leastHeaderTableSize, value)
        return 0
      case ENABLE_PUSH:
        return value > (this.#isServer ? 0 : 1) ? this.#refuse(PROTOCOL_ERROR, 'ENABLE_PUSH') : 0
      case MAX_CONCURRENT_STREAMS:
        this.maxConcurrentStreams = value
        return 0
      case INITIAL_WINDOW_SIZE:
        if (value > MAX_U31) return this.#refuse(FLOW_CONTROL_ERROR, 'INITIAL_WINDOW_SIZE')
        this.initialWindowSize = value
        return 0
      case MAX_FRAME_SIZE:
        if (value < LEAST_MAX_FRAME_BYTES || value > MOST_MAX_FRAME_BYTES)
          return this.#refuse(PROTOCOL_ERROR, 'MAX_FRAME_SIZE')
        this.maxFrameSize = value
        return 0
      case MAX_HEADER_LIST_SIZE:
        this.maxHeaderListSize = value
        return 0
      case ENABLE_CONNECT_PROTOCOL:
        if (value > 1 || (this.enableConnectProtocol && value === 0))
          return this.#refuse(PROTOCOL_ERROR, 'ENABLE_CONNECT_PROTOCOL')
        this.enableConnectProtocol = value === 1
        return 0
      default:
        // Unknown settings are ignored.
        return 0
    }
  }

  #refuse(code: number, name: string): number {
    this.problem = `a value that ${name} may not have`
    return code
  }
}
