// Contract: a byte connection with exact backpressure. Implementations: sockets/bun.ts, sockets/node.ts.

/** An end of a TCP connection. */
export interface Endpoint {
  /** An IPv4 address also where IPv6 carried it. */
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
  /** The context of the runtime: certificate, key, versions, ciphers. */
  readonly context: object
  /** The protocol that ALPN chooses of those that the hello offers. Default: ALPN is without a response. */
  readonly protocol?: string
  /**
   * The PEM text of the authorities with which `context` verifies a certificate of the far side. A visitor without a
   * certificate is accepted all the same: see `Socket.asked`.
   */
  readonly clientCa?: string
  /** Gets the decrypted connection when the handshake is done. */
  accept(socket: Socket): SocketHandler
}

/** A handshake asked for a certificate. */
export interface AskedCertificate {
  /** The PEM text of the authorities. */
  readonly clientCa: string
  /** The verified certificate. `undefined`: none was shown, or not one of theirs. */
  readonly certificate: PeerCertificate | undefined
}

/** A certificate, as Node's `X509Certificate` describes it. */
export interface PeerCertificate {
  /** A field a line, such as `CN=anna`. */
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
   * Writes bytes[start, end), all of them by default, to the kernel and says how many it took: fewer than given means
   * full, and `drained` follows. Those not taken stay the caller's; those taken may be overwritten at once. 0 after a
   * close.
   */
  write(bytes: Uint8Array, start?: number, end?: number): number
  /** Sends FIN after what was written; reading continues. */
  end(): void
  /**
   * Closes both ways at once, with RST where the platform can: the far side must not take it for a clean end. `code` says why, for
   * connections that can pass it on.
   */
  terminate(code?: string): void
  /** Forgets the connection after `end` without a reset, so that the kernel sends what it has. Before it: as `terminate`. */
  letGo?(): void
  /** Stops reading; the kernel's window then stops the far side. */
  pause(): void
  /** Reads on. */
  resume(): void
  /**
   * Speaks TLS on this connection from now on, as its server. `first` was read of it already and belongs to the handshake.
   * The handler of this socket is called no more, and a handshake that fails ends the connection. Left out where TLS cannot
   * be begun later.
   */
  secure?(first: Uint8Array, handshake: ServerHandshake): void
  /** The protocol that ALPN chose. Empty if it chose none. Left out where there is no TLS. */
  readonly protocol?: string
  /** The far side showed a certificate that the server's handshake asked for, and it was verified. */
  readonly isCertified?: boolean
  /**
   * The certificate request of the handshake, with the certificate that was shown and verified. Left out: it asked for nothing.
   */
  readonly asked?: AskedCertificate | undefined
  /**
   * Asks the system to probe the connection after `idleMs` of silence, for ten seconds; then the connection fails. Left out
   * where a connection cannot die unnoticed.
   */
  keepAlive?(idleMs: number): void
  /** Marks the connection as one that carries many streams: a large read is many small ones, and no large transfer. */
  share?(): void
  /** Bytes came that nothing has read yet. Left out where that is not known. */
  readonly hasUnread?: boolean
  /** Address of the far side, without port; empty on a unix socket. */
  readonly remoteAddress: string
  /**
   * Moves what comes on this connection to another without the main thread, where the platform can: up to `limitBytes`, or
   * until this side's FIN, a failure of either, a while without bytes, or `stop`. Only to be called in `spliceable`. Both
   * are lent until `done`, which is called once and later. Bytes that were read by then and did not reach the other follow
   * as `received`, right after `done`. `undefined`: not here, or not now.
   */
  spliceTo?(to: Socket, limitBytes: number, done: SpliceDone): Splice | undefined
  /** Moves bytes in place of `from.spliceTo(this, …)`, on a connection that has to know what is moved to it. */
  spliceFrom?(from: Socket, limitBytes: number, done: SpliceDone): Splice | undefined
  /** Asks for a call of `spliceable` before anything else is read. `false`: `spliceTo` is not possible here. */
  requestSplice?(): boolean
  /** Whether both ways can be lent now. */
  readonly isLendable?: boolean
  /**
   * Lends the connection to another thread, where the platform can. Until the loan is returned, nothing else may read
   * (or write, or both) the connection. `stop` asks for it back, which happens a moment later: this side ends or cuts the
   * connection, or the far side has closed it. `undefined`: not here, or not now.
   */
  lend?(ways: LentWays, stop: () => void): Loan | undefined
  /** Returns both ends. `undefined` on a unix socket, and once the connection is gone. */
  endpoints(): Endpoints | undefined
}

/** Called when `movedBytes` reached the other connection. */
export type SpliceDone = (movedBytes: number) => void

/** Bytes in transit from one connection to another without the main thread. */
export interface Splice {
  /** Whether the bytes are interactive, and not a large transfer: such a splice continues through the other side's turns. */
  readonly isPrompt: boolean
  /** The number of bytes that certainly reached the other connection. */
  readonly movedBytes: number
  /** The number of bytes that left this connection, and may have reached the other one. */
  readonly takenBytes: number
  /** Ends it, a moment later; `done` follows. */
  stop(): void
}

/** The directions of a connection that are lent. */
export type LentWays = 'reading' | 'writing' | 'both'

/** A connection in the hands of another thread. */
export interface Loan {
  /** The descriptor, open until `giveBack`. */
  readonly descriptor: number
  /**
   * Returns the connection to the main thread: nothing else uses the descriptor any more. Events that waited follow in `goOn`.
   */
  giveBack(): void
  /** Applies what happened during the loan: this side's end, the far side's end, the close. Else it is read again. */
  goOn(fault?: LoanFault): void
}

/**
 * The reason why a lent connection cannot be used any more. `broken`: it failed, which the kernel reported to the other thread
 * and will not report again. `lost`: it is not known which bytes went where. An error: a handler threw it.
 */
export type LoanFault = 'broken' | 'lost' | Error

/** A receiver of the events of a connection. `closed` is always the last call, exactly once. */
export interface SocketHandler {
  /** Called when bytes arrived. The array is the handler's until it returns, and no longer: what has to wait is copied. */
  received(bytes: Uint8Array): void
  /** The kernel takes bytes again after a short `write`. */
  drained(): void
  /** Bytes come in bulk, or `requestSplice` asked for this call, and the next bytes are not read yet. */
  spliceable?(): void
  /** The far side sent FIN: it will send no more, but may still read. */
  ended(): void
  /** Called when the connection is gone. `error` is set unless it ended with FIN in both directions. */
  closed(error?: Error): void
}

/** The destination of a connection. `tls` absent means plain bytes. */
export interface Address {
  /** The name or address of the host. Default `localhost`, both address families. */
  readonly host?: string
  readonly port?: number
  /** The path of a unix socket, instead of host and port. */
  readonly unix?: string
  /** The options of TLS; `{}` verifies as usual. */
  readonly tls?: TlsOptions
  /** An intermediate such as a proxy; host and port are then for it, and `unix` is not used. */
  readonly via?: Via
}

/** An intermediate of a connection: it is dialled first, asked for the way on, and then used like the far side. */
export interface Via {
  readonly address: Omit<Address, 'via'>
  /** Makes an opening for each connection. */
  readonly opening: Opening
}

/** A dialogue at the start of a connection, before the connection belongs to its handler. It knows bytes and no socket. */
export interface Opening {
  /** The connection is up: what to send first. */
  begin(): Uint8Array
  /**
   * Bytes arrived. Returns what to send next, or that it is over: `rest` came behind the opening and belongs to the
   * handler. Throws what the dial is to fail with; bounds what it keeps.
   */
  take(bytes: Uint8Array): Uint8Array | { readonly rest: Uint8Array } | undefined
}

/** The TLS options of an address. */
export interface TlsOptions {
  /** The name that the certificate must have, and that is sent as SNI. Default: the host dialled. */
  readonly serverName?: string
  /** Whether to verify the certificate. Default `true`. */
  readonly verify?: boolean
  /** The PEM text of an authority to trust in addition to the system's. */
  readonly ca?: string
  /** The certificate of this side as PEM, for servers that ask for one. */
  readonly cert?: string
  readonly key?: string
  /** The far side's public key has to be this one, besides all else: `sha256//` and base64 of its SHA-256. */
  readonly pin?: string
  /** The protocol to offer in ALPN, such as `h2`; the far side has to choose it. Default: none is offered. */
  readonly protocol?: string
}

/**
 * Opens a connection: resolves once it is up (after the TLS handshake), rejects with the platform's error
 * (`code` such as ECONNREFUSED) when it cannot be. `signal` says that it is not wanted any more: what can be
 * stopped then is, and the caller still has to cut a connection that comes up after all.
 */
export type Dial = (address: Address, handler: SocketHandler, signal?: AbortSignal) => Promise<Socket>
