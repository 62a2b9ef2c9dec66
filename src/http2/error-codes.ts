// The error codes of HTTP/2 (RFC 9113 section 7), and the description of an error.

export const NO_ERROR = 0x0
export const PROTOCOL_ERROR = 0x1
export const INTERNAL_ERROR = 0x2
export const FLOW_CONTROL_ERROR = 0x3
export const SETTINGS_TIMEOUT = 0x4
export const STREAM_CLOSED = 0x5
export const FRAME_SIZE_ERROR = 0x6
export const REFUSED_STREAM = 0x7
export const CANCEL = 0x8
export const COMPRESSION_ERROR = 0x9
export const CONNECT_ERROR = 0xa
export const ENHANCE_YOUR_CALM = 0xb
export const INADEQUATE_SECURITY = 0xc
export const HTTP_1_1_REQUIRED = 0xd

export const CODE_NAMES: readonly string[] = [
  'NO_ERROR',
  'PROTOCOL_ERROR',
  'INTERNAL_ERROR',
  'FLOW_CONTROL_ERROR',
  'SETTINGS_TIMEOUT',
  'STREAM_CLOSED',
  'FRAME_SIZE_ERROR',
  'REFUSED_STREAM',
  'CANCEL',
  'COMPRESSION_ERROR',
  'CONNECT_ERROR',
  'ENHANCE_YOUR_CALM',
  'INADEQUATE_SECURITY',
  'HTTP_1_1_REQUIRED',
]

/** An error of the peer. The reason goes into the debug data of GOAWAY and into logs. */
export interface Fault {
  readonly code: number
  readonly reason: string
}
