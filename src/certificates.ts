// Contract: the certificate for a name, asked for during a visitor's TLS handshake.

/** A certificate with its key. The same object as long as it is the same certificate: contexts are kept by identity. */
export interface Certificate {
  /** PEM: the certificate itself first, then those between it and the root. */
  readonly cert: string
  /** PEM: the private key that belongs to it. */
  readonly key: string
}

/** Where the server gets certificates from: files, an ACME authority, or code of the caller. */
export interface Certificates {
  /**
   * The certificate for `name`, as the visitor's hello names it; `''` when the hello names none.
   *
   * - A certificate: it is at hand. The handshake goes on in the same turn.
   * - `undefined`: there is none for this name and none is being made. The server ends the handshake with the alert
   *   `unrecognized_name`.
   * - A promise: it is being looked up or ordered, and the handshake waits. The implementation bounds the wait
   *   (`Issuer`: `maxWaitMs`) and how many names may wait (`maxWaiting`), and asks its owner whether the name is
   *   allowed before it spends anything on it. It resolves with `undefined` for a name that is not allowed. It rejects
   *   with a `TunnelError` when the name should have a certificate and has none: `ACME_*`, `DNS_RECORD_FAILED`,
   *   `CERTIFICATE_DELAYED` or `CERTIFICATE_STORE_FAILED`; the server ends the handshake with `internal_error`.
   *
   * It does not throw. It is called once for each full handshake, so an unknown name must cost little.
   */
  find(name: string): Certificate | Promise<Certificate | undefined> | undefined
  /** Those at hand, for the operator. */
  list?(): readonly ListedCertificate[]
}

/** What the operator sees of a certificate. */
export interface ListedCertificate {
  readonly names: readonly string[]
  /** When it ends, milliseconds since 1970. */
  readonly notAfterMs: number
}

/** What the server answers to an authority that checks whether a name leads here. Nothing unless a check is pending. */
export interface ChallengeResponses {
  /**
   * HTTP-01 (RFC 8555, 8.3): the body of the answer to `GET /.well-known/acme-challenge/<token>` on port 80, on any
   * host. `undefined`: no such check is pending, and the request is served as any other.
   */
  httpAnswer(token: string): string | undefined
  /**
   * TLS-ALPN-01 (RFC 8737): the certificate for a hello on port 443 that names `name` and whose only protocol in ALPN
   * is `acme-tls/1`. The server must choose that protocol, and close the connection after the handshake. It is for no
   * other hello: visitors of the same name get the certificate of `find`. `undefined`: no such check is pending.
   */
  tlsCertificate(name: string): Certificate | undefined
}

/** The path in front of the token of an HTTP-01 check. */
export const HTTP_CHALLENGE_PATH = '/.well-known/acme-challenge/'

/** The only protocol in the hello of a TLS-ALPN-01 check. */
export const TLS_CHALLENGE_PROTOCOL = 'acme-tls/1'
