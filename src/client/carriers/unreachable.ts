// Makes the error for a server that cannot be reached: the code, the address, and the reason in words.

import { messageOf, TunnelError } from '../../errors.ts'
import type { Address, Dial } from '../../socket.ts'
import { answeredPlain, speaksTls, UNTRUSTED } from '../origins/tls-check.ts'
import { alertOf, distrustOf } from './tls-faults.ts'

/** The destination of an attempt, for messages: `https://tunnel.example`. */
export interface Destination {
  readonly address: Address
  readonly host: string
  /** The path of the `ServerAddress`. */
  readonly path: string
}

/** The error for a connection that was made and ended without a byte of a response. */
export class NoAnswer extends Error {
  constructor(cause?: Error) {
    super('the connection ended before an answer', { cause })
    this.name = 'NoAnswer'
  }
}

const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nothing listens there',
  ENOTFOUND: 'no address is known for this name',
  EAI_AGAIN: 'the name could not be looked up',
  ECONNRESET: 'the connection was reset',
  EHOSTUNREACH: 'there is no route to it',
  ENETUNREACH: 'there is no network',
  ETIMEDOUT: 'it did not answer',
}

/** Returns the error for a failed dial. If a proxy reported the reason, its error is passed on. */
export function unreachable(cause: unknown, to: Destination): TunnelError {
  if (cause instanceof TunnelError) return cause
  const label = labelOf(to)
  const text = messageOf(cause)
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : ''
  if (to.address.tls !== undefined && UNTRUSTED.test(code)) {
    const { reason, action } = distrustOf(code, text, 'server')
    const detail = `The certificate of ${label} is not trusted: ${reason}.`
    return new TunnelError('SERVER_UNTRUSTED', detail, { cause, action })
  }
  if (to.address.tls !== undefined && answeredPlain(cause)) {
    const detail = `The port of ${label} does not speak TLS: use http://${to.host}${to.path}.`
    return new TunnelError('SERVER_SCHEME', detail, { cause })
  }
  const action = alertOf(code, text, 'server')?.action
  return new TunnelError('SERVER_UNREACHABLE', `${label} cannot be reached: ${reasonOf(cause)}.`, {
    cause,
    action,
  })
}

/** Returns why a dial failed, in words. */
export function reasonOf(cause: unknown): string {
  const text = messageOf(cause)
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : ''
  if (UNTRUSTED.test(code))
    return `its certificate is not trusted: ${distrustOf(code, text, 'server').reason}`
  return (
    alertOf(code, text, 'server')?.reason ??
    (REASONS[code] === undefined ? text : `${REASONS[code]} (${code})`)
  )
}

/**
 * An attempt without TLS that got no response may have reached a TLS port. Tries a TLS handshake, and resolves with
 * the error to report instead.
 */
export async function explained(
  error: TunnelError,
  to: Destination,
  dial: Dial,
  timeoutMs: number,
): Promise<TunnelError> {
  if (to.address.tls !== undefined || !(error.cause instanceof NoAnswer)) return error
  if (!(await speaksTls(to.address, dial, timeoutMs))) return error
  const detail = `The port of ${labelOf(to)} speaks TLS: use https://${to.host}${to.path}.`
  return new TunnelError('SERVER_SCHEME', detail, { cause: error.cause })
}

export function labelOf({ address, host, path }: Destination): string {
  return `${address.tls === undefined ? 'http' : 'https'}://${host}${path}`
}
