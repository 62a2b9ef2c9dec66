// Contract: a byte connection with exact backpressure. Implementations: sockets/bun.ts, sockets/node.ts.

/** One end of a TCP connection. */
export interface Endpoint {
  /** An IPv4 address also where IPv6 carried it. */
  readonly address: string
  readonly port: number
}

/** Both ends of a TCP connection, as its accepting side sees them. */
export interface Endpoints {
  readonly source: Endpoint
  readonly destination: Endpoint
}

/** What a server brings to a TLS handshake. */
export interface ServerHandshake {
  /** Of the runtime: certificate, key, versions, ciphers. */
  readonly context: object
  /** What ALPN answers, of what the hello offers. Default: ALPN is not answered. */
  readonly protocol?: string
  /** PEM of the authorities with which `context` verifies a certificate of the far side. One without gets in all the same: see `Socket.asked`. */
  readonly clientCa?: string
  /** Gets the decrypted connection when the handshake is done. */
  accept(socket: Socket): SocketHandler
}

/** A handshake asked for a certificate. */
export interface AskedCertificate {
  /** PEM of the authorities. */
  readonly clientCa: string
  /** Verified. `undefined`: none was shown, or not one of theirs. */
  readonly certificate: PeerCertificate | undefined
}

/** As Node's `X509Certificate` says it. */
export interface PeerCertificate {
  /** A field a line, such as `CN=anna`. */
  readonly subject: string
  /** Such as `DNS:a.example, email:anna@example.com`; `undefined`: it has none. */
  readonly subjectAltName: string | undefined
  /** SHA-256, upper-case hexadecimal with colons. */
  readonly fingerprint256: string
  /** As `Date.parse` reads it. */
  readonly validTo: string
  /** DER. */
  readonly raw: Uint8Array
}

/** The writing side of a connection. What opened it closes it. */
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
  /** Behind `end`: forgets the connection without a reset, so that the kernel sends what it has. Before it: as `terminate`. */
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
  /** What ALPN agreed on; `''`: nothing. Left out where there is no TLS. */
  readonly protocol?: string
  /** The far side showed a certificate that the server's handshake asked for, and it was verified. */
  readonly isCertified?: boolean
  /** What the handshake asked for, and what was shown and verified. Left out: it asked for nothing. */
  readonly asked?: AskedCertificate | undefined
  /**
   * Has the system ask for a sign of life after so much silence, and again for ten seconds; then the connection fails.
   * Left out where a connection cannot die unnoticed.
   */
  keepAlive?(idleMs: number): void
  /** It carries many streams from now on: a large read of it is many small ones, and no bulk. */
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
  /** In place of `from.spliceTo(this, …)`, on a connection that has to know what is moved to it. */
  spliceFrom?(from: Socket, limitBytes: number, done: SpliceDone): Splice | undefined
  /** Has `spliceable` called before anything else is read. `false`: `spliceTo` is not possible here. */
  requestSplice?(): boolean
  /** Whether both ways can be lent now. */
  readonly isLendable?: boolean
  /**
   * Lends the connection to another thread, where the platform can. Until the loan is given back, nothing else may read
   * (or write, or both) the connection. `stop` asks for it back, which happens a moment later: this side ends or cuts the
   * connection, or the far side has closed it. `undefined`: not here, or not now.
   */
  lend?(ways: LentWays, stop: () => void): Loan | undefined
  /** Both ends. `undefined` on a unix socket, and once the connection is gone. */
  endpoints(): Endpoints | undefined
}

/** So many bytes reached the other connection. */
export type SpliceDone = (movedBytes: number) => void

/** Bytes on their way from one connection to another without the main thread. */
export interface Splice {
  /** Of a conversation, and not of bulk: it continues through the other side's turns. */
  readonly isPrompt: boolean
  /** At least so many reached the other connection. */
  readonly movedBytes: number
  /** At most so many did: they left this one. */
  readonly takenBytes: number
  /** Ends it, a moment later; `done` follows. */
  stop(): void
}

/** What of a connection is lent. */
export type LentWays = 'reading' | 'writing' | 'both'

/** A connection in the hands of another thread. */
export interface Loan {
  /** Open until `giveBack`. */
  readonly descriptor: number
  /** Nothing uses the descriptor any more: the connection is the main thread's. What waited for that follows in `goOn`. */
  giveBack(): void
  /** What happened meanwhile takes effect: this side's end, the far side's end, the close. Else it is read again. */
  goOn(fault?: LoanFault): void
}

/**
 * Why a connection that was lent cannot be used any more. `broken`: it failed, which the kernel reported to the other
 * thread and will not report again. `lost`: it is not known which bytes went where. An error: a handler threw it.
 */
export type LoanFault = 'broken' | 'lost' | Error

/** What happens on a connection. `closed` is always the last call, exactly once. */
export interface SocketHandler {
  /** Bytes arrived. The array is the handler's to keep, unless `isScratch` says that it is reused. */
  received(bytes: Uint8Array, isScratch?: boolean): void
  /** The kernel takes bytes again after a short `write`. */
  drained(): void
  /** Bytes come in bulk, or `requestSplice` asked for this call, and the next bytes are not read yet. */
  spliceable?(): void
  /** The far side sent FIN: it will send no more, but may still read. */
  ended(): void
  /** The connection is gone. `error` is set when it did not end by FIN both ways. */
  closed(error?: Error): void
}

/** Where a connection goes. `tls` absent means plain bytes. */
export interface Address {
  /** Name or address. Default `localhost`, both address families. */
  readonly host?: string
  readonly port?: number
  /** Path of a unix socket, instead of host and port. */
  readonly unix?: string
  /** Speak TLS, with these options; `{}` verifies as usual. */
  readonly tls?: TlsOptions
  /** Go there through something else, such as a proxy; then host and port are its business, and `unix` is not used. */
  readonly via?: Via
}

/** What a connection goes through: dialled first, asked for the way on, and then as if it were the far side. */
export interface Via {
  readonly address: Omit<Address, 'via'>
  /** One for each connection. */
  readonly opening: Opening
}

/** What is said on a connection before it belongs to its handler. It knows bytes and no socket. */
export interface Opening {
  /** The connection is up: what to send first. */
  begin(): Uint8Array
  /**
   * Bytes arrived. Returns what to send next, or that it is over: `rest` came behind the opening and belongs to the
   * handler. Throws what the dial is to fail with; bounds what it keeps.
   */
  take(bytes: Uint8Array): Uint8Array | { readonly rest: Uint8Array } | undefined
}

/** How to speak TLS to an address. */
export interface TlsOptions {
  /** Name to verify the certificate against and to send as SNI. Default: the host dialled. */
  readonly serverName?: string
  /** `false` accepts any certificate. Default `true`. */
  readonly verify?: boolean
  /** PEM of an authority to trust besides the system's. */
  readonly ca?: string
  /** PEM: the certificate of this side and its key, for servers that ask for one. */
  readonly cert?: string
  readonly key?: string
  /** The far side's public key has to be this one, besides all else: `sha256//` and base64 of its SHA-256. */
  readonly pin?: string
  /** Offered by ALPN, and the far side has to choose it, such as `h2`. Default: none is offered. */
  readonly protocol?: string
}

/**
 * Opens a connection: resolves once it is up (after the TLS handshake), rejects with the platform's error
 * (`code` such as ECONNREFUSED) when it cannot be. `signal` says that it is not wanted any more: what can be
 * stopped then is, and the caller still has to cut a connection that comes up after all.
 */
export type Dial = (address: Address, handler: SocketHandler, signal?: AbortSignal) => Promise<Socket>
