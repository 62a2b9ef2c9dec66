// TLS contexts of certificates: each is made once (0.4 ms, 6.5 KB), and freed with the certificate.

import { createSecureContext, type SecureContext } from 'node:tls'
import type { Certificate } from '../certificates.ts'
import { TunnelError } from '../errors.ts'
import { pairFault } from './pair.ts'

export interface ContextOptions {
  /** Names of ciphers for TLS 1.2. Default: those of the runtime. */
  readonly ciphers?: string | undefined
  /** The oldest version. Default `1.2`. */
  readonly minVersion?: '1.2' | '1.3' | undefined
  /** The PEM text of the authorities of visitors' certificates. Default: none is asked for. */
  readonly clientCa?: string | undefined
}

/**
 * A cache of contexts. A context lives as long as the object that `Certificates.find` returned. Session tickets are
 * only valid for their own context, so a new certificate begins with full handshakes.
 */
export class SecureContexts {
  readonly #contexts = new WeakMap<Certificate, SecureContext>()
  readonly #options: ContextOptions

  constructor(options: ContextOptions = {}) {
    this.#options = options
  }

  /** Returns the context. Throws `TLS_INVALID` for an unusable certificate. */
  of(certificate: Certificate): SecureContext {
    const known = this.#contexts.get(certificate)
    if (known !== undefined) return known
    const { cert, key } = certificate
    const { ciphers, minVersion = '1.2', clientCa } = this.#options
    try {
      const context = createSecureContext({
        cert,
        key,
        minVersion: `TLSv${minVersion}`,
        ...(ciphers !== undefined && { ciphers }),
        ...(clientCa !== undefined && {
          ca: clientCa,
          allowPartialTrustChain: true,
          requestCert: true,
          rejectUnauthorized: false,
        }),
      })
      this.#contexts.set(certificate, context)
      return context
    } catch (cause) {
      throw new TunnelError('TLS_INVALID', pairFault(cert, key), { cause })
    }
  }
}
