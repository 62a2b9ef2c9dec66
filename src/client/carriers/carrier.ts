// Contract: opens a carrier from a client to its server. Implementations: carriers/direct.ts, carriers/ws.ts.

import { type ErrorCode, isErrorCode, optionInvalid, TunnelError } from '../../errors.ts'
import type { Carrier, CarrierHandler } from '../../session/carrier.ts'
import type { Address } from '../../socket.ts'
import { VERSION } from '../../version.ts'
import { type Destination, labelOf } from './unreachable.ts'

/** A carrier that also carries text messages, for the JSON wire. */
export interface TextCarrier extends Carrier {
  /** Sends a text message. Returns `false` if it waits for the network: `drained` follows. */
  sendText(message: string): boolean
}

export interface CarrierRequest {
  readonly address: Address
  readonly host: string
  /** The path of the `ServerAddress`. */
  readonly path: string
  /** The query with its `?`, or `''`. */
  readonly query: string
  /** The token for the Authorization header. */
  readonly token?: string | undefined
  /** Subprotocols to offer, best first. */
  readonly protocols: readonly string[]
  /** The time in milliseconds from the first packet to the response. If exceeded: `SERVER_UNREACHABLE`. */
  readonly timeoutMs: number
  /** The name of the proxy between client and server, for messages. */
  readonly proxyLabel?: string | undefined
  readonly signal: AbortSignal
  /** The maximum length of a text message in bytes. Default 0: text ends the carrier. */
  readonly maxTextBytes?: number
  readonly text?: (message: string) => void
}

/** Takes a new carrier with the subprotocol that the server chose, `''` for none. Returning `undefined` closes the carrier. */
export type AcceptCarrier = (carrier: TextCarrier, protocol: string) => CarrierHandler | undefined

/**
 * Connects to the server and asks for a WebSocket. Resolves with the chosen subprotocol, after `accept`. Rejects with
 * `SERVER_UNREACHABLE`, `SERVER_UNTRUSTED`, `SERVER_SCHEME`, `TOKEN_REFUSED`, `SERVER_REFUSED`, `OPTION_INVALID`, or
 * the code that a server of ours sent.
 */
export type OpenCarrier = (request: CarrierRequest, accept: AcceptCarrier) => Promise<string>

/** The maximum number of bytes that are read of the body of a refusal. */
export const MAX_REFUSAL_BYTES = 4_096

/** The server's response in place of a 101, as the `cause` of the TunnelError. */
export class UpgradeRefusal extends Error {
  readonly status: number
  readonly body: string

  constructor(status: number, body: string) {
    super(`HTTP ${status}`)
    this.name = 'UpgradeRefusal'
    this.status = status
    this.body = body
  }
}

/** Makes the error. `named`: the value of the header x-localtunnels-error. */
export function refusalError(
  status: number,
  named: string | undefined,
  body: string,
  to: Destination & { readonly token?: string | undefined },
): TunnelError {
  const cause = new UpgradeRefusal(status, body)
  if (isErrorCode(named)) {
    const isMissing = named === 'TOKEN_REFUSED' && to.token === undefined
    const detail = isMissing ? 'The server wants a token, and got none.' : undefined
    return new TunnelError(named, detail, { cause })
  }
  // nginx and other servers respond like this to plain HTTP on a TLS port.
  if (status === 400 && /plain HTTP request|HTTPS port/i.test(body)) {
    const detail = `The port of ${labelOf(to)} speaks TLS: use https://${to.host}${to.path}.`
    return new TunnelError('SERVER_SCHEME', detail, { cause })
  }
  const what = status < 400 ? ': a web server, not a tunnel server' : ''
  const detail = `${labelOf(to)} answered with status ${status}${what}.`
  return new TunnelError(codeOfStatus(status), detail, { cause })
}

/**
 * Returns the code for a status of a server or of a proxy in front. A proxy also responds while the server restarts,
 * which must not end the client for good.
 */
function codeOfStatus(status: number): ErrorCode {
  if (status === 401) return 'TOKEN_REFUSED'
  return status >= 500 || status === 408 || status === 429 ? 'SERVER_UNREACHABLE' : 'SERVER_REFUSED'
}

export function tooLate(): TunnelError {
  return new TunnelError('SERVER_UNREACHABLE', 'The tunnel server did not respond in time.')
}

export function stopped(): TunnelError {
  return new TunnelError('STATE_INVALID', 'The client was disconnected while it was connecting.')
}

/** Returns the headers of a request. A token is part of a header line, so it must not be able to end one. */
export function carrierHeaders({ token }: CarrierRequest): Readonly<Record<string, string>> {
  const agent = { 'User-Agent': `localtunnels/${VERSION}` }
  if (token === undefined) return agent
  if (!/^[\x21-\x7e]+$/.test(token)) {
    throw optionInvalid('The token has characters other than visible ASCII.')
  }
  return { ...agent, Authorization: `Bearer ${token}` }
}
