// Contract: a byte connection with exact backpressure. Implementations: sockets/bun.ts, sockets/node.ts.

/** One end of a TCP connection. */
export interface Endpoint {
  /** The address, as IPv4 even if IPv6 carried it. */
  readonly address: string
  readonly port: number
}

/** The two ends of a TCP connection, as its accepting side sees them. */
export interface Endpoints {
  readonly source: Endpoint
  readonly destination: Endpoint
}

/** The server's side of a TLS handshake. */
export interface ServerHandshake {
  /** The runtime's TLS context: certificate, key, versions, ciphers. */
  readonly context: object
  /** The protocol that ALPN chooses of those in the hello. Default: no ALPN reply. */
  readonly protocol?: string
  /**
   * The PEM text of the authorities with which `context` verifies a certificate of the far side. A visitor without a
   * certificate is also accepted: see `Socket.asked`.
   */
  readonly clientCa?: string
  /** Called with the decrypted connection after the handshake. Returns its handler. */
  accept(socket: Socket): SocketHandler
}

/** A request for a certificate in a handshake. */
export interface AskedCertificate {
  /** The PEM text of the authorities. */
  readonly clientCa: string
  /** The verified certificate. `undefined` if none was shown, or other authorities signed it. */
  readonly certificate: PeerCertificate | undefined
}

/** A certificate, as Node's `X509Certificate` describes it. */
export interface PeerCertificate {
  /** The subject, with one field per line, such as `CN=anna`. */
  readonly subject: string
  /** The alternative names, such as `DNS:a.example, email:anna@example.com`. `undefined` if it has none. */
  readonly subjectAltName: string | undefined
  /** The SHA-256 fingerprint, in upper-case hexadecimal with colons. */
  readonly fingerprint256: string
  /** The end of its validity, as `Date.parse` reads it. */
  readonly validTo: string
  /** The certificate in DER. */
  readonly raw: Uint8Array
}

/** The writing side of a connection. Its opener closes it. */
export interface Socket {
  /**
   * Writes bytes[start, end), by default all, to the kernel. Returns how many it took: fewer than given mean that it is full, and
   * `drained` follows. The bytes taken may be overwritten at once; the others remain the caller's. Returns 0 after a close.
   */
  write(bytes: Uint8Array, start?: number, end?: number): number
  /** Sends FIN after the written bytes; reading continues. */
  end(): void
  /**
   * Closes both directions at once, with RST if the platform can, so that the far side does not see a clean end.
   * `code` is the reason, for connections that can pass it on.
   */
  terminate(code?: string): void
  /** Forgets the connection after `end` without a reset, so that the kernel sends the rest. Before `end`: as `terminate`. */
  letGo?(): void
  /** Stops reading; the kernel's window then stops the far side. */
  pause(): void
  /** Reads again after `pause`. */
  resume(): void
  /**
   * Begins TLS on this connection, as the server. `first` was already read and belongs to the handshake. The handler
   * of this socket gets no more calls, and a failed handshake ends the connection. Absent if TLS cannot begin later.
   */
  secure?(first: Uint8Array, handshake: ServerHandshake): void
  /** The protocol that ALPN chose. Empty if it chose none. Absent without TLS. */
  readonly protocol?: string
  /** Whether the far side showed a certificate that the server's handshake requested and verified. */
  readonly isCertified?: boolean
  /** The request for a certificate in the handshake, with the verified certificate. Absent if none was requested. */
  readonly asked?: AskedCertificate | undefined
  /**
   * Lets the system probe the connection after `idleMs` of silence, for ten seconds; then the connection fails.
   * Absent if a connection cannot die unnoticed.
   */
  keepAlive?(idleMs: number): void
  /**
   * Marks the connection as one that carries many streams: a large read consists of many small ones, and is not a large transfer.
   */
  share?(): void
  /** Whether bytes have arrived that were not read yet. Absent if that is unknown. */
  readonly hasUnread?: boolean
  /** The address of the far side, without port; empty on a unix socket. */
  readonly remoteAddress: string
  /**
   * Moves bytes of this connection to another without the main thread, if the platform can: up to `limitBytes`, or until this
   * side's FIN, a failure of either, some time without bytes, or `stop`. Call it only in `spliceable`. Both are lent until
   * `done`, which is called once and never at once. Bytes that were read by then and did not reach the other connection follow as
   * `received`, right after `done`. `undefined` if this is impossible here, or now.
   */
  spliceTo?(to: Socket, limitBytes: number, done: SpliceDone): Splice | undefined
  /** Moves bytes in place of `from.spliceTo(this, …)`, on a connection that must know which bytes are moved to it. */
  spliceFrom?(from: Socket, limitBytes: number, done: SpliceDone): Splice | undefined
  /** Asks for a call of `spliceable` before further bytes are read. Returns `false` if `spliceTo` is impossible here. */
  requestSplice?(): boolean
  /** Whether another thread can borrow both directions now. */
  readonly isLendable?: boolean
  /**
   * Lends the connection to another thread, if the platform can. Until the loan ends, no other code may read (or
   * write, or both). `stop` asks for the connection back, which comes a moment later, because this side ends or cuts
   * it or the far side has closed it. `undefined` if this is impossible here, or now.
   */
  lend?(ways: LentWays, stop: () => void): Loan | undefined
  /** Returns both ends. `undefined` on a unix socket, and once the connection is gone. */
  endpoints(): Endpoints | undefined
}

/** Called when `movedBytes` reached the other connection. */
export type SpliceDone = (movedBytes: number) => void

/** Bytes that move from one connection to another without the main thread. */
export interface Splice {
  /** Whether the bytes are interactive rather than a large transfer. Such a splice continues when the other side sends. */
  readonly isPrompt: boolean
  /** The number of bytes that have certainly reached the other connection. */
  readonly movedBytes: number
  /** The number of bytes that left this connection, and may have reached the other one. */
  readonly takenBytes: number
  /** Ends the splice, a moment later; `done` follows. */
  stop(): void
}

/** The directions of a connection that are lent. */
export type LentWays = 'reading' | 'writing' | 'both'

/** A connection that another thread has. */
export interface Loan {
  /** The descriptor, open until `giveBack`. */
  readonly descriptor: number
  /**
   * Returns the connection to the main thread: no other code uses the descriptor any more. Events that waited follow in `goOn`.
   */
  giveBack(): void
  /** Applies the events of the loan: this side's end, the far side's end, the close. Without any, reading continues. */
  goOn(fault?: LoanFault): void
}

/**
 * Why a lent connection cannot be used any more. `broken`: it failed, and the kernel, which reported this to the
 * other thread, will not report it again. `lost`: it is unknown which bytes went where. An error: a handler threw it.
 */
export type LoanFault = 'broken' | 'lost' | Error

/** Receives the events of a connection. `closed` is always the last call, exactly once. */
export interface SocketHandler {
  /** Called when bytes arrived. The array may be used only during the call: copy bytes that have to wait. */
  received(bytes: Uint8Array): void
  /** Called when the kernel takes bytes again after a short `write`. */
  drained(): void
  /** Called during a large transfer, or after `requestSplice`, before the next bytes are read. */
  spliceable?(): void
  /** Called when the far side sent FIN: it sends no more, but may still read. */
  ended(): void
  /** Called when the connection is gone. `error` is set unless it ended with FIN in both directions. */
  closed(error?: Error): void
}

/** The destination of a connection. Without `tls`, bytes are plain. */
export interface Address {
  /** The name or address of the host. Default `localhost`, on both address families. */
  readonly host?: string
  readonly port?: number
  /** The path of a unix socket, in place of host and port. */
  readonly unix?: string
  /** The options of TLS; `{}` verifies the certificate as usual. */
  readonly tls?: TlsOptions
  /** An intermediate such as a proxy, which connects to host and port; `unix` is then ignored. */
  readonly via?: Via
}

/** An intermediate of a connection: it is dialled first, asked to connect further, and then used like the far side. */
export interface Via {
  readonly address: Omit<Address, 'via'>
  /** Makes an opening for each connection. */
  readonly opening: Opening
}

/** A dialogue at the start of a connection, before the connection belongs to its handler. It handles bytes without a socket. */
export interface Opening {
  /** Called when the connection is open. Returns the first bytes to send. */
  begin(): Uint8Array
  /**
   * Called when bytes arrived. Returns the bytes to send next, or that the dialogue is over: `rest` came after it and
   * belongs to the handler. Throws the error with which the dial fails. Limits the bytes that it stores.
   */
  take(bytes: Uint8Array): Uint8Array | { readonly rest: Uint8Array } | undefined
}

/** The TLS options of an address. */
export interface TlsOptions {
  /** The name that is sent as SNI and that the certificate must have. Default: the dialled host. */
  readonly serverName?: string
  /** Whether to verify the certificate. Default `true`. */
  readonly verify?: boolean
  /** The PEM text of an authority to trust in addition to the system's. */
  readonly ca?: string
  /** The certificate of this side as PEM, for servers that ask for one. */
  readonly cert?: string
  readonly key?: string
  /** The public key that the far side must have, in addition to all other checks: `sha256//` and base64 of its SHA-256. */
  readonly pin?: string
  /** The protocol to offer in ALPN, such as `h2`, which the far side must choose. Default: none. */
  readonly protocol?: string
}

/**
 * Opens a connection. Resolves once it is open, after any TLS handshake; rejects with the platform's error (`code` such as
 * ECONNREFUSED). `signal` aborts the dial as far as possible; the caller must still cut a connection that opens afterwards.
 */
export type Dial = (address: Address, handler: SocketHandler, signal?: AbortSignal) => Promise<Socket>
