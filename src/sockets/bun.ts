// Byte connections on Bun: Bun.connect and Bun.listen behind the contract of socket.ts.
//
// Behaviour of Bun 1.4.5, each observed: `end()` closes at once, `shutdown()` is the half-close; `write` returns -1
// on a dead connection; `drain` is also called without a reason; `close` may be called within `terminate` and may
// lack its error; a TLS dial resolves before the handshake; `tls: {}` means no TLS at all; a unix socket cannot send
// RST. After `upgradeTLS`, the socket below still reports the encrypted bytes; on a TLS socket it does nothing.
// `localhost` is dialled on both address families, and Bun itself sets TCP_NODELAY on every connection.

import { deferred } from '../deferred.ts'
import { freeDescriptors } from '../descriptors.ts'
import { TunnelError } from '../errors.ts'
import { loadFfi, openLibc, UNPACE_SYMBOLS, unpace } from '../libc.ts'
import type { Address, Dial, Socket, SocketHandler, TlsOptions, Via } from '../socket.ts'
import { Connection, type Owner, type Pass } from './bun-connection.ts'
import {
  ALPN_LISTEN_EVENTS,
  ENCRYPTED_EVENTS,
  PLAIN_DIAL_EVENTS,
  PLAIN_LISTEN_EVENTS,
  TLS_DIAL_EVENTS,
  TLS_LISTEN_EVENTS,
} from './bun-events.ts'
import { lowestVersion, replacementFault, secureContext } from './bun-tls.ts'
import { descriptorOf } from './descriptor.ts'
import { failure, Gate } from './gate.ts'
import type { InheritedSocket } from './inherited.ts'
import { Securing } from './securing.ts'
import { sessionSlot } from './tls-sessions.ts'

/** The TLS of a listener. */
export interface ServerTls {
  /** The certificate chain as PEM. */
  readonly cert: string
  readonly key: string
  /** The oldest version. Default `1.2`. */
  readonly minVersion?: '1.2' | '1.3'
  /** The OpenSSL names of the ciphers for TLS 1.2 connections. Default `FORWARD_SECRET_CIPHERS`. */
  readonly ciphers?: string
}

/**
 * The ciphers with forward secrecy and authenticated encryption that RFC 9325 section 4.2 recommends for TLS 1.2. By
 * default, Bun also allows RSA key exchange and CBC.
 */
export const FORWARD_SECRET_CIPHERS: string = [
  'ECDHE-ECDSA-AES128-GCM-SHA256',
  'ECDHE-RSA-AES128-GCM-SHA256',
  'ECDHE-ECDSA-AES256-GCM-SHA384',
  'ECDHE-RSA-AES256-GCM-SHA384',
  'ECDHE-ECDSA-CHACHA20-POLY1305',
  'ECDHE-RSA-CHACHA20-POLY1305',
].join(':')

export interface ListenOptions<P extends Pass = Pass> {
  /** Address to bind. Default `0.0.0.0`. */
  readonly hostname?: string
  /** The port; 0 for any free port. */
  readonly port?: number
  /**
   * Whether other processes of this user may also listen on the port, if they set it: each connection goes to one of
   * them. Default `false`.
   */
  readonly sharesPort?: boolean
  /** The path of a unix socket, in place of hostname and port. */
  readonly unix?: string
  /** A socket that listens already, in place of these. The listener owns it from now on. */
  readonly inherited?: InheritedSocket | undefined
  /** The TLS of every connection; `accept` is called after the handshake. */
  readonly tls?: ServerTls
  /** Returns the protocol to choose from those that a hello offers. `undefined` for none. Default: none. Only with `tls`. */
  chooseProtocol?(offered: readonly string[]): string | undefined
  /** Called when the system accepted a connection, before TLS. `undefined` cuts it at once. Default: all are admitted. */
  admit?(socket: Socket): P | undefined
  /** Called for a new connection. The returned handler gets its events. */
  accept(socket: Socket, pass: P | undefined): SocketHandler
  /** Called when a handler threw: its connection is cut, and the others continue. */
  failed?(error: Error): void
}

export interface Listening {
  /** The bound port; 0 for a unix socket. */
  readonly port: number
  /** The descriptor of the listening socket. `undefined` if it is closed. */
  readonly descriptor: number | undefined
  /** Accepts no more connections. `closeActive` also cuts those that are open. */
  stop(closeActive?: boolean): void
  /**
   * Checks another certificate. Resolves with a function that applies it to later handshakes. Rejects with OpenSSL's
   * error. Only with `tls`. The ciphers change with it, the oldest version does not.
   */
  prepareTls(tls: ServerTls): Promise<() => void>
}

/**
 * Opens a connection. Rejects with Bun's error: `ECONNREFUSED`, `ENOTFOUND`, `ERR_TLS_CERT_ALTNAME_INVALID`, … The
 * signal ends handshakes, but not the dial itself, which Bun cannot stop: to an address that drops every packet, it
 * continues and keeps the process alive, until the system gives up after two minutes.
 */
export const dialBun: Dial = async (address, handler, signal) => {
  const { via, tls } = address
  if (via === undefined) return dialStraight(address, handler, signal)
  // TLS in TLS, which Bun has only in node:tls.
  if (tls && via.address.tls) return (await import('./node.ts')).dialNode(address, handler, signal)
  return dialVia(address, via, handler, signal)
}

async function dialStraight(
  address: Omit<Address, 'via'>,
  handler: SocketHandler,
  signal: AbortSignal | undefined,
): Promise<Connection> {
  const tls = address.tls && (await dialTls(address.tls))
  return wanted(signal, address, handler, connection => {
    const options = {
      allowHalfOpen: true,
      data: connection,
      socket: tls ? TLS_DIAL_EVENTS : PLAIN_DIAL_EVENTS,
      ...(tls && { tls }),
    }
    const { host: hostname = 'localhost', port = 0, unix } = address
    const connected =
      unix === undefined ? Bun.connect({ hostname, port, ...options }) : Bun.connect({ unix, ...options })
    connected.catch(error =>
      connection.dialling?.reject(isRefused(error) && hasNoneFree() ? failure('EMFILE', NONE_FREE) : error),
    )
  })
}

const NONE_FREE = 'this process has no free descriptors'

/** Whether a dial was refused. Bun 1.4.5 also reports this for a dial without a free descriptor. */
function isRefused(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ECONNREFUSED'
}

const hasNoneFree = (): boolean => freeDescriptors(1) === 0

async function dialVia(
  target: Address,
  { address, opening }: Via,
  handler: SocketHandler,
  signal: AbortSignal | undefined,
): Promise<Socket> {
  const { host, tls } = target
  const gate = new Gate(opening, handler)
  const below = await dialStraight(address, gate, signal)
  const rest = await gate.open(below, signal)
  if (tls === undefined) {
    gate.handOver(rest)
    return below
  }
  try {
    // A TLS server never sends first, and these bytes cannot be returned to Bun.
    if (rest.length > 0) throw failure('EPROTO', 'bytes came before the TLS handshake')
    const options = await dialTls({ ...(host !== undefined && { serverName: host }), ...tls })
    below.isPlain = false
    below.raw.reload({ socket: ENCRYPTED_EVENTS })
    return await wanted(signal, target, handler, connection => {
      below.raw.upgradeTLS<Connection>({ data: connection, socket: TLS_DIAL_EVENTS, tls: options })
    })
  } catch (error) {
    below.terminate()
    throw error
  }
}

/** Resolves once the connection that `begin` starts is open, unless the signal aborts first. */
async function wanted(
  signal: AbortSignal | undefined,
  address: Address,
  handler: SocketHandler,
  begin: (connection: Connection) => void,
): Promise<Connection> {
  const { promise, resolve, reject } = deferred<Connection>()
  const connection = new Connection(handler, { resolve, reject }, address.tls?.verify !== false)
  connection.tlsSession = sessionSlot(address)
  connection.pin = address.tls?.pin
  connection.wantedProtocol = address.tls?.protocol
  const abort = () => {
    reject(failure('ECONNABORTED', 'the connection is not wanted any more'))
    connection.isUnwanted = true
    connection.raw?.terminate()
  }
  signal?.addEventListener('abort', abort)
  try {
    if (signal?.aborted) abort()
    else begin(connection)
    return await promise
  } finally {
    signal?.removeEventListener('abort', abort)
  }
}

/** Listens. Throws Bun's error, such as `EADDRINUSE`. */
export function listenBun<P extends Pass>(options: ListenOptions<P>): Listening {
  const { hostname = '0.0.0.0', port = 0, sharesPort = false, unix, inherited, tls } = options
  const failed = (error: Error) => options.failed?.(error)
  const securing = tls === undefined ? new Securing(failed) : undefined
  const owner: Owner = {
    admit: options.admit && (socket => options.admit?.(socket)),
    // The value comes from `admit` above.
    accept: (socket, pass) => options.accept(socket, pass as P | undefined),
    failed,
    isCutting: false,
    securing,
    context: undefined,
    chooseProtocol: options.chooseProtocol && (offered => options.chooseProtocol?.(offered)),
  }
  const tlsEvents = options.chooseProtocol === undefined ? TLS_LISTEN_EVENTS : ALPN_LISTEN_EVENTS
  const rest = {
    allowHalfOpen: true,
    // The `data` of each accepted socket until `open` replaces it.
    data: owner as never,
    socket: tls ? tlsEvents : PLAIN_LISTEN_EVENTS,
    ...(tls && { tls: bunTls(tls) }),
  }
  // Missing in Bun's types: listens on an existing socket. Such a listener does not know its port.
  const own = { hostname, port, ...(sharesPort && { reusePort: true }) }
  const at = inherited === undefined ? own : { hostname, port, fd: inherited.descriptor }
  const listener =
    unix === undefined
      ? Bun.listen<Connection>({ ...at, ...rest })
      : Bun.listen<Connection>({ unix, ...rest })
  if (unix === undefined && /^(?:127\.|::1$|localhost$)/.test(hostname)) unpaced(descriptorOf(listener))
  let isStopped = false
  return {
    port: inherited?.port ?? ('port' in listener ? (listener.port ?? 0) : 0),
    get descriptor() {
      return isStopped ? undefined : descriptorOf(listener)
    },
    stop(closeActive = false) {
      isStopped = true
      owner.isCutting = closeActive
      listener.stop(closeActive)
      if (closeActive) securing?.cut()
    },
    async prepareTls({ cert, key, ciphers = FORWARD_SECRET_CIPHERS }) {
      // An empty text would count as no certificate, and every handshake would fail.
      if (cert === '' || key === '') throw failure('ERR_TLS', 'the certificate or the key is empty')
      const context = await secureContext({ cert, key, ciphers })
      const fault = await replacementFault({ cert, key }, context)
      if (fault !== undefined)
        throw new TunnelError(
          'RUNTIME_UNSUPPORTED',
          `Bun ${Bun.version} cannot replace the certificate of a listener: ${fault}. Start the server again for that.`,
        )
      return () => {
        owner.context = context
      }
    },
  }
}

/** Turns off pacing on a listener for this machine only, whose connections are all local. */
function unpaced(descriptor: number | undefined): void {
  if (process.platform !== 'linux' || descriptor === undefined) return
  try {
    const ffi = loadFfi()
    unpace(openLibc(ffi, UNPACE_SYMBOLS), ffi.ptr, descriptor)
  } catch {
    // Slower, but it works.
  }
}

function bunTls({
  cert,
  key,
  minVersion = '1.2',
  ciphers = FORWARD_SECRET_CIPHERS,
}: ServerTls): Bun.TLSOptions {
  return { cert, key, ciphers, ...lowestVersion(minVersion) }
}

/** Whether the process was started with the system's authorities. Reading them here would take 15 ms of the start. */
const KNOWS_SYSTEM: boolean = process.execArgv.includes('--use-system-ca')

async function dialTls({
  serverName,
  verify = true,
  ca,
  cert,
  key,
  protocol,
}: TlsOptions): Promise<Bun.TLSOptions> {
  const isKnown = !verify || (ca === undefined && KNOWS_SYSTEM)
  const trusted = isKnown ? undefined : (await import('./authorities.ts')).authorities(ca)
  return {
    // Always set, because an empty object means no TLS to Bun.
    rejectUnauthorized: verify,
    ...(serverName !== undefined && { serverName }),
    // Missing in Bun's types: a name with its length before it.
    ...(protocol !== undefined && {
      ALPNProtocols: Buffer.from([protocol.length, ...Buffer.from(protocol)]),
    }),
    ...(cert !== undefined && key !== undefined && { cert, key }),
    ...(trusted !== undefined && { ca: trusted }),
  }
}
