// The exit codes of the process, documented in docs/cli.md and public like the error codes.

import type { ErrorCode } from '../errors.ts'

/** The exit codes. Shells expect 130 and 143 from a program that Ctrl+C or SIGTERM ended at once. */
export const EXIT = {
  ok: 0,
  unexpected: 1,
  usage: 2,
  unreachable: 3,
  refused: 4,
  portInUse: 5,
  faultsFound: 6,
  timedOut: 7,
  disconnected: 8,
  interrupted: 130,
  terminated: 143,
} as const

const BY_CODE: Partial<Record<ErrorCode, number>> = {
  OPTION_INVALID: EXIT.usage,
  EXCHANGE_NOT_FOUND: EXIT.usage,
  NAME_INVALID: EXIT.usage,
  TLS_INVALID: EXIT.usage,
  RUNTIME_UNSUPPORTED: EXIT.usage,
  CONFIG_INVALID: EXIT.usage,
  TOKEN_UNENCRYPTED: EXIT.usage,
  LOGIN_INVALID: EXIT.usage,
  OPEN_SERVER: EXIT.usage,
  SERVER_UNREACHABLE: EXIT.unreachable,
  CLUSTER_UNREACHABLE: EXIT.unreachable,
  INSPECTOR_NOT_FOUND: EXIT.unreachable,
  SERVER_REFUSED: EXIT.unreachable,
  SERVER_UNTRUSTED: EXIT.unreachable,
  SERVER_SCHEME: EXIT.unreachable,
  CARRIER_LOST: EXIT.unreachable,
  PROXY_FAILED: EXIT.unreachable,
  PROXY_AUTH_REFUSED: EXIT.unreachable,
  NAME_TAKEN: EXIT.refused,
  NAME_RESERVED: EXIT.refused,
  TOKEN_REFUSED: EXIT.refused,
  CLIENT_LIMIT: EXIT.refused,
  ORIGIN_HEADER_REFUSED: EXIT.refused,
  NOT_ALLOWED: EXIT.refused,
  KIND_REFUSED: EXIT.refused,
  INBOX_REFUSED: EXIT.refused,
  CLIENT_CERTIFICATE_MISSING: EXIT.refused,
  BLOCKED: EXIT.refused,
  ADMIN_REFUSED: EXIT.refused,
  PORT_TAKEN: EXIT.refused,
  TOO_MANY_REFUSALS: EXIT.refused,
  TOKEN_EXPIRED: EXIT.refused,
  ISSUER_UNAVAILABLE: EXIT.refused,
  SERVER_DRAINING: EXIT.refused,
  HOST_TAKEN: EXIT.refused,
  FEATURE_UNSUPPORTED: EXIT.refused,
  TUNNEL_NOT_FOUND: EXIT.refused,
  GUARD_UNAVAILABLE: EXIT.refused,
  POOL_DIFFERS: EXIT.refused,
  REPLAY_IMPOSSIBLE: EXIT.refused,
  BODY_TRUNCATED: EXIT.refused,
  PORT_IN_USE: EXIT.portInUse,
  WAIT_TIMEOUT: EXIT.timedOut,
  DISCONNECTED: EXIT.disconnected,
}

export function exitCodeOf(code: ErrorCode): number {
  return BY_CODE[code] ?? EXIT.unexpected
}
