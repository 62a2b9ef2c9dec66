// Contract: the certificate for a name, asked for during a visitor's TLS handshake.

/** A certificate with its key. One certificate is always the same object, because TLS contexts are cached by it. */
export interface Certificate {
  /** The certificate chain as PEM: the certificate itself, then those between it and the root. */
  readonly cert: string
  /** The private key of the certificate as PEM. */
  readonly key: string
}

/** A source of certificates for the server: files, an ACME authority, or your own code. */
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
   *   with a `TunnelError` when the name should have a certificate and has none: `ACME_*`, `ACME_CHALLENGE_FAILED`,
   *   `CERTIFICATE_DELAYED` or `STORE_FAILED`; the server ends the handshake with `internal_error`.
   *
   * Never throws. Called once for each full handshake, so an unknown name must cost little.
   */
  find(name: string): Certificate | Promise<Certificate | undefined> | undefined
  /** Lists the certificates that are available, for the operator. */
  list?(): readonly ListedCertificate[]
}

/** A certificate as the operator sees it. */
export interface ListedCertificate {
  readonly names: readonly string[]
  /** The end of its validity, in milliseconds since 1970. */
  readonly notAfterMs: number
}

/** The responses to an authority that checks whether a name points here. Nothing unless a check is pending. */
export interface ChallengeResponses {
  /**
   * Returns the body of the response to `GET /.well-known/acme-challenge/<token>` on port 80 of any host, for HTTP-01 (RFC
   * 8555, 8.3). `undefined`: no such check is pending, and the request is served as any other.
   */
  httpAnswer(token: string): string | undefined
  /**
   * Returns the certificate for a hello on port 443 that names `name` and offers only `acme-tls/1` in ALPN, for TLS-ALPN-01
   * (RFC 8737). The server must choose that protocol, and close the connection after the handshake. It is for no other hello:
   * visitors of the same name get the certificate of `find`. `undefined`: no such check is pending.
   */
  tlsCertificate(name: string): Certificate | undefined
}

/** The path before the token of an HTTP-01 check. */
export const HTTP_CHALLENGE_PATH = '/.well-known/acme-challenge/'

/** The only protocol in the hello of a TLS-ALPN-01 check. */
export const TLS_CHALLENGE_PROTOCOL = 'acme-tls/1'
