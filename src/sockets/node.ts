// Byte connections on Node: node:net and node:tls behind the contract of socket.ts.
//
// A net.Socket never refuses bytes: it queues them, and still reads the caller's array while they wait. So each write
// is a copy, and the next one waits until the kernel has it.

import { readSync } from 'node:fs'
import { connect, isIP, type Socket as NetSocket } from 'node:net'
import { createSecureContext, type SecureContext, connect as secure } from 'node:tls'
import { copyOf } from '../bytes.ts'
import { deferred } from '../deferred.ts'
import type { Address, Dial, Endpoints, Opening, Socket, SocketHandler, TlsOptions } from '../socket.ts'
import { authorities } from './authorities.ts'
import { failure } from './gate.ts'
import { pinFault, protocolFault } from './pin.ts'
import { sessionSlot } from './tls-sessions.ts'

/** The maximum number of bytes that are copied and queued at once. */
const MAX_WRITE_BYTES = 1_048_576

/**
 * The addresses of `localhost`. Node asks the system's resolver, which may know one family only. Browsers try both,
 * and so does this client.
 */
const LOCALHOST = ['::1', '127.0.0.1']

/** Opens a connection. Rejects with Node's error: `ECONNREFUSED`, `ENOTFOUND`, `ERR_TLS_CERT_ALTNAME_INVALID`, … */
export const dialNode: Dial = async (address, handler, signal) => {
  const { via, tls } = address
  const { raw, socket } = await dialStraight(via?.address ?? address, signal)
  if (via === undefined) return new Connection(raw, socket, handler)
  const rest = await introduced(socket, via.opening, signal)
  if (tls === undefined) {
    const connection = new Connection(raw, socket, handler)
    if (rest.length > 0) socket.unshift(rest)
    socket.resume()
    return connection
  }
  try {
    // A TLS server never sends first.
    if (rest.length > 0) throw failure('EPROTO', 'bytes came before the TLS handshake')
    return new Connection(raw, await secured(socket, address, tls, signal), handler)
  } catch (error) {
    raw.destroy()
    throw error
  }
}

/** Wraps a socket that a listener accepted. */
export function acceptNode(raw: NetSocket, accept: (socket: Socket) => SocketHandler): void {
  let handler: SocketHandler | undefined
  // The first event comes after this turn of the event loop.
  const connection = new Connection(raw, raw, {
    received: bytes => handler?.received(bytes),
    drained: () => handler?.drained(),
    ended: () => handler?.ended(),
    closed: error => handler?.closed(error),
  })
  handler = accept(connection)
}

async function dialStraight(
  address: Omit<Address, 'via'>,
  signal: AbortSignal | undefined,
): Promise<{ readonly raw: NetSocket; readonly socket: NetSocket }> {
  const { host = 'localhost', port = 0, unix, tls } = address
  const raw =
    unix !== undefined
      ? await opened(connect({ path: unix, allowHalfOpen: true }), 'connect', signal)
      : await dialAny(host === 'localhost' ? LOCALHOST : [host], port, signal)
  return { raw, socket: tls === undefined ? raw : await secured(raw, address, tls, signal) }
}

/** Runs the opening, then pauses. Resolves with the bytes after it; if it fails, cuts the connection and rejects. */
async function introduced(
  socket: NetSocket,
  opening: Opening,
  signal: AbortSignal | undefined,
): Promise<Uint8Array> {
  const { promise, resolve, reject } = deferred<Uint8Array>()
  const step = (next: () => ReturnType<Opening['take']>) => {
    try {
      const result = next()
      if (result instanceof Uint8Array) socket.write(result)
      else if (result !== undefined) {
        socket.off('data', data).pause()
        resolve(result.rest)
      }
    } catch (error) {
      reject(error)
    }
  }
  const data = (bytes: Buffer) => step(() => opening.take(bytes))
  const lost = () => reject(failure('ECONNRESET', 'the connection closed too early'))
  const abort = () => reject(failure('ECONNABORTED', 'the connection is not wanted any more'))
  socket.on('data', data).once('error', reject).once('end', lost).once('close', lost)
  signal?.addEventListener('abort', abort)
  try {
    if (signal?.aborted) abort()
    else step(() => opening.begin())
    return await promise
  } catch (error) {
    socket.on('error', () => {}) // already reported
    socket.destroy()
    throw error
  } finally {
    socket.off('data', data).off('error', reject).off('end', lost).off('close', lost)
    signal?.removeEventListener('abort', abort)
  }
}

/** Connects to the first of the hosts that responds. */
async function dialAny(
  hosts: readonly string[],
  port: number,
  signal: AbortSignal | undefined,
): Promise<NetSocket> {
  let refusal: unknown
  for (const host of hosts) {
    try {
      const raw = await opened(connect({ host, port, allowHalfOpen: true, noDelay: true }), 'connect', signal)
      if (!isOwn(raw)) return raw
      raw.destroy()
      throw failure('ECONNREFUSED', 'nothing listens there')
    } catch (error) {
      // "Refused" says more than "this machine has no IPv6".
      if (refusal === undefined || codeOf(error) === 'ECONNREFUSED') refusal = error
    }
  }
  throw refusal
}

async function secured(
  raw: NetSocket,
  address: Address,
  options: TlsOptions,
  signal: AbortSignal | undefined,
): Promise<NetSocket> {
  const { serverName = address.host ?? 'localhost', verify = true, pin, protocol } = options
  const slot = sessionSlot(address)
  const socket = secure({
    ...(slot?.session !== undefined && { session: Buffer.from(slot.session) }),
    // Half-open, as `raw` is.
    socket: raw,
    // Without a name to send, the certificate is checked against `host`. An address is never sent (RFC 6066).
    host: serverName,
    servername: isIP(serverName) === 0 ? serverName : '',
    rejectUnauthorized: verify,
    ...(protocol !== undefined && { ALPNProtocols: [protocol] }),
    secureContext: contextOf(options),
  })
  socket.on('session', session => {
    if (slot !== undefined) slot.session = session
  })
  try {
    const up = await opened(socket, 'secureConnect', signal)
    const fault =
      (pin === undefined ? undefined : pinFault(pin, socket.getPeerX509Certificate()?.publicKey)) ??
      protocolFault(protocol, socket.alpnProtocol || '')
    if (fault !== undefined) throw fault
    return up
  } catch (error) {
    raw.destroy()
    throw error
  }
}

/**
 * The TLS contexts by options. Dials with the same options share one, because reading the authorities takes longer
 * than a handshake.
 */
const contexts = new WeakMap<TlsOptions, SecureContext>()

function contextOf(options: TlsOptions): SecureContext {
  const known = contexts.get(options)
  if (known !== undefined) return known
  const { verify = true, ca, cert, key } = options
  const trusted = verify ? authorities(ca) : undefined
  const context = createSecureContext({
    ...(cert !== undefined && key !== undefined && { cert, key }),
    ...(trusted !== undefined && { ca: trusted }),
  })
  contexts.set(options, context)
  return context
}

/** Resolves once the socket is up. */
function opened(
  socket: NetSocket,
  event: 'connect' | 'secureConnect',
  signal: AbortSignal | undefined,
): Promise<NetSocket> {
  return new Promise((resolve, reject) => {
    const abort = () => socket.destroy(failure('ECONNABORTED', 'the connection is not wanted any more'))
    const closed = () => {
      signal?.removeEventListener('abort', abort)
      reject(failure('ECONNRESET', 'the connection closed before it was up'))
    }
    socket.once('error', reject).once('close', closed)
    socket.once(event, () => {
      signal?.removeEventListener('abort', abort)
      socket.off('error', reject).off('close', closed)
      resolve(socket)
    })
    if (signal?.aborted) abort()
    else signal?.addEventListener('abort', abort)
  })
}

class Connection implements Socket {
  /** The TCP connection below `#socket`; the same object without TLS. */
  readonly #raw: NetSocket
  readonly #socket: NetSocket
  #wantsDrain = false
  #hasEnded = false
  #peerEnded = false
  #isTerminated = false
  #isClosed = false
  /** The error that closes or will close the connection. `undefined` after FIN in both directions. */
  #failure: Error | undefined
  readonly #handler: SocketHandler
  readonly #written: () => void
  readonly remoteAddress: string

  constructor(raw: NetSocket, socket: NetSocket, handler: SocketHandler) {
    this.#raw = raw
    this.#socket = socket
    this.#handler = handler
    this.remoteAddress = raw.remoteAddress ?? ''
    this.#written = () => {
      if (!this.#wantsDrain || socket.writableLength > 0 || socket.destroyed) return
      this.#wantsDrain = false
      this.#tell(() => handler.drained())
    }
    const failed = (error: Error) => {
      this.#failure ??= error
    }
    socket.on('data', (bytes: Buffer) => this.#tell(() => handler.received(bytes)))
    socket.on('end', () => {
      if (wasReset(raw, this.#hasEnded)) {
        failed(failure('ECONNRESET', 'the far side reset the connection'))
        return this.terminate()
      }
      this.#peerEnded = true
      this.#tell(() => handler.ended())
    })
    socket.on('error', failed)
    socket.on('close', () => this.#closed())
    if (raw === socket) return
    // The connection below reports a reset. The TLS connection may only report that it is over.
    raw.on('error', failed)
    raw.on('close', () => {
      socket.destroy()
      // TLS in TLS does not report its end if the connection below ends first.
      setImmediate(() => this.#closed())
    })
  }

  write(bytes: Uint8Array, start = 0, end: number = bytes.length): number {
    const socket = this.#socket
    if (this.#hasEnded || this.#isTerminated || socket.destroyed) return 0
    if (socket.writableLength > 0) {
      this.#wantsDrain = true
      return 0
    }
    const copy = copyOf(bytes, start, Math.min(end, start + MAX_WRITE_BYTES))
    if (copy.length < end - start) this.#wantsDrain = true
    socket.write(copy, this.#written)
    return copy.length
  }

  end(): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    this.#socket.end()
  }

  terminate(): void {
    if (this.#isTerminated) return
    this.#isTerminated = true
    this.#failure ??= failure('ECONNABORTED', 'the connection was cut by this side')
    // Only the connection below can send RST, also for TLS. A unix socket cannot send one.
    if (this.#raw.remoteAddress === undefined) this.#socket.destroy()
    else this.#raw.resetAndDestroy()
  }

  /** Returns nothing: Node only dials here. */
  endpoints(): Endpoints | undefined {
    const { remoteAddress, remotePort = 0, localAddress, localPort = 0 } = this.#raw
    if (remoteAddress === undefined || localAddress === undefined) return undefined
    return {
      source: { address: localAddress, port: localPort },
      destination: { address: remoteAddress, port: remotePort },
    }
  }

  keepAlive(idleMs: number): void {
    // libuv sends ten probes, one per second.
    this.#raw.setKeepAlive(true, idleMs)
  }

  pause(): void {
    this.#socket.pause()
  }

  resume(): void {
    this.#socket.resume()
  }

  /** Calls a handler. If it throws, its connection ends: in the event loop the error would end the process. */
  #tell(event: () => void): void {
    try {
      event()
    } catch (error) {
      this.#failure = error instanceof Error ? error : new Error(String(error))
      this.terminate()
    }
  }

  #closed(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    if (!this.#hasEnded || !this.#peerEnded) {
      this.#failure ??= failure('ECONNRESET', 'the connection closed before both sides ended')
    }
    this.#handler.closed(this.#failure)
  }
}

/**
 * Whether the end that was read is a reset. libuv reports an end if the last read before a reset was a short one.
 * Before this side's FIN, `getpeername` shows that the connection is gone, even if a write got the error. After both
 * ends the connection is gone in any case; then a read gets the error, which no write can have taken. Both calls use
 * the handle, because Node stores the address and reads no more. `false` if the handle cannot be used.
 */
function wasReset(raw: NetSocket, hasEnded: boolean): boolean {
  const handle: unknown = process.platform === 'linux' ? Reflect.get(raw, '_handle') : undefined
  if (typeof handle !== 'object' || handle === null) return false
  if (!('getpeername' in handle && 'fd' in handle)) return false
  const { getpeername, fd } = handle
  if (typeof getpeername !== 'function' || typeof fd !== 'number' || fd < 0) return false
  if (!hasEnded) return getpeername.call(handle, {}) !== 0
  try {
    readSync(fd, Buffer.alloc(1))
    return false
  } catch (error) {
    return codeOf(error) !== 'EAGAIN' // a TLS end, on a connection that continues
  }
}

/** Whether the connection is joined to itself: see `isRefusedAsOwn` of bun-connection.ts. */
function isOwn({ localPort, remotePort, localAddress, remoteAddress }: NetSocket): boolean {
  return localPort === remotePort && localAddress === remoteAddress
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined
}
