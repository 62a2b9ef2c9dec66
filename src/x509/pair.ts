// Explains in words why a certificate and its key cannot be used together.

import { createPrivateKey, X509Certificate } from 'node:crypto'

/** Returns the fault of a pair. `undefined` if they fit. */
export function pairFault(cert: string, key: string): string | undefined {
  const certificate = parsed(() => new X509Certificate(cert))
  if (certificate === undefined) return 'The certificate is not a certificate in PEM format.'
  const privateKey = parsed(() => createPrivateKey(key))
  if (privateKey === undefined) return 'The key is not a private key in PEM format.'
  if (!certificate.checkPrivateKey(privateKey)) return 'The key does not belong to the certificate.'
  return undefined
}

function parsed<Value>(parse: () => Value): Value | undefined {
  try {
    return parse()
  } catch {
    // The text is not PEM of this kind, and OpenSSL's message says no more.
    return undefined
  }
}
