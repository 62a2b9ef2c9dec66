// The errors that the header of a frame shows (RFC 9113 section 6): its size, and which stream it may name.

import { type Fault, FRAME_SIZE_ERROR, PROTOCOL_ERROR } from './error-codes.ts'
import * as Frame from './frame.ts'

const fault = (code: number, reason: string): Fault => ({ code, reason })

const SIZE = fault(FRAME_SIZE_ERROR, 'a frame of a wrong size')
const TOO_SHORT = fault(FRAME_SIZE_ERROR, 'a frame too short for its flags')
const NO_STREAM = fault(PROTOCOL_ERROR, 'a frame on a stream that no request can have')
const ON_STREAM = fault(PROTOCOL_ERROR, 'a frame of the connection on a stream')
const PUSHED = fault(PROTOCOL_ERROR, 'PUSH_PROMISE, which is not enabled')

/** Returns the error of a frame with this header that ends the connection, independent of earlier frames. */
export function faultOfHeader(
  type: number,
  flags: number,
  stream: number,
  length: number,
): Fault | undefined {
  switch (type) {
    case Frame.DATA:
      return length < (flags & Frame.PADDED ? 1 : 0) ? TOO_SHORT : faultOfStream(stream)
    case Frame.HEADERS:
      if (length < (flags & Frame.PADDED ? 1 : 0) + (flags & Frame.HAS_PRIORITY ? 5 : 0)) return TOO_SHORT
      return faultOfStream(stream)
    case Frame.PRIORITY:
      // Its size concerns only the stream. Any stream may be named, also one that does not exist.
      return stream === 0 ? NO_STREAM : undefined
    case Frame.RST_STREAM:
      return length === 4 ? faultOfStream(stream) : SIZE
    case Frame.SETTINGS:
      if (flags & Frame.ACK ? length !== 0 : length % 6 !== 0) return SIZE
      return stream === 0 ? undefined : ON_STREAM
    case Frame.PUSH_PROMISE:
      // A client may not push, and as a client this side does not allow it.
      return PUSHED
    case Frame.PING:
      if (length !== 8) return SIZE
      return stream === 0 ? undefined : ON_STREAM
    case Frame.GOAWAY:
      if (length < 8) return SIZE
      return stream === 0 ? undefined : ON_STREAM
    case Frame.WINDOW_UPDATE:
      if (length !== 4) return SIZE
      return stream === 0 ? undefined : faultOfStream(stream)
    case Frame.CONTINUATION:
      return faultOfStream(stream)
    default:
      // Unknown frames are ignored.
      return undefined
  }
}

/** Returns the error of a stream id. Even ids would be pushed streams, which do not exist. */
function faultOfStream(stream: number): Fault | undefined {
  return stream % 2 === 1 ? undefined : NO_STREAM
}
