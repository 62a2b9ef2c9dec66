// Checks whether a port speaks TLS, only after a failed attempt, so that the message can say what to use instead.

import type { Address, Dial } from '../../socket.ts'

/** A pattern for the errors of OpenSSL and Node about a certificate that is not trusted. */
export const UNTRUSTED: RegExp = /CERT|SELF_SIGNED|UNABLE_TO_|ALTNAME/
/** A pattern for the errors of a TLS client whose peer does not speak TLS. Bun 1.4.5 has them only in the message. */
const NO_TLS = /WRONG_VERSION_NUMBER|HTTP_REQUEST|ERR_SSL_PACKET_LENGTH|ERR_SSL_UNEXPECTED_MESSAGE/

/** Whether a TLS handshake failed because the far side responded in plain text. */
export function answeredPlain(cause: unknown): boolean {
  if (!(cause instanceof Error)) return NO_TLS.test(String(cause))
  return NO_TLS.test(`${'code' in cause ? String(cause.code) : ''} ${cause.message}`)
}

/** Tries a handshake. A certificate that is not trusted also proves TLS. Never rejects. */
export async function speaksTls(address: Address, dial: Dial, timeoutMs: number): Promise<boolean> {
  const given = new AbortController()
  const timer = setTimeout(() => given.abort(), timeoutMs)
  try {
    const nothing = { received() {}, drained() {}, ended() {}, closed() {} }
    const socket = await dial({ ...address, tls: {} }, nothing, given.signal)
    socket.terminate()
    return true
  } catch (cause) {
    return cause instanceof Error && 'code' in cause && UNTRUSTED.test(String(cause.code))
  } finally {
    clearTimeout(timer)
  }
}
