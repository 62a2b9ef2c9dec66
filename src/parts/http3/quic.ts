// The runtime's HTTP/3, `node:quic`, which is experimental in Bun 1.4.5. No other file uses it. A self-test checks
// what the server depends on.

import { createPrivateKey } from 'node:crypto'
import { SocketAddress } from 'node:net'
import { constants } from 'node:os'
import type * as Quic from 'node:quic'
import { messageOf } from '../../errors.ts'
import type { ServerTls } from '../../sockets/bun.ts'
import { ignoreUnreachable } from '../../sockets/unreachable-peers.ts'

/** The property of a writer with a promise for room; null when it has ended. */
export const DRAINS: unique symbol = Symbol.for('Stream.drainableProtocol') as never

/** The methods that the published types lack. */
interface Cutting {
  /** Cuts off the response with this code. */
  resetStream(code: bigint): void
  /** Asks the visitor to send no more of its request. */
  stopSending(code: bigint): void
}
interface Writer {
  /** The number of bytes that it has room for; null when it has ended. */
  readonly desiredSize: number | null
  /** Copies the bytes. Returns `false` if there is no room; then none were taken. */
  writeSync(bytes: Uint8Array): boolean
  /** Ends the stream. Returns -1 if that is impossible now. */
  endSync(): number
  end(): Promise<unknown>
  [DRAINS](): Promise<unknown> | null
}
export type QuicStream = Omit<Quic.QuicStream, 'writer'> & Cutting & { readonly writer: Writer }
export type QuicSession = Quic.QuicSession
/** The fields of a head or of trailers. A repeated name has all of its values. */
export type FieldValues = NodeJS.Dict<string | string[]>

export interface QuicOptions {
  readonly hostname: string
  readonly port: number
  /** The certificate for visitors whose name has no other. `undefined`: their handshakes fail. */
  readonly certificate: ServerTls | undefined
  /** The maximum number of requests in progress on one connection. */
  readonly maxStreams: number
  readonly maxHeadBytes: number
  readonly maxHeaderCount: number
  /** The maximum number of connections, in total and of one address; 0: no limit. */
  readonly maxConnections: number
  readonly maxAddressConnections: number
  readonly handshakeMs: number
}

export interface QuicListening {
  readonly port: number
  /** Sets the certificate of new handshakes for `name`; `*` means all other names. */
  show(name: string, certificate: ServerTls): void
  /** Accepts no more connections. */
  stop(): void
  /** Accepts no more connections, and cuts the open ones. */
  cut(): void
}

/** The bytes that a visitor may send before this code has read them; see `HELD_BYTES` for the stored ones. */
const WINDOW_BYTES = 262_144
/** The silence in seconds after which the connection of a visitor that left without a message is closed. */
const SILENT_SECONDS = 30
/** The maximum number of connections: QUIC's own fields have 16 bits. */
const MOST_CONNECTIONS = 65_535
const ALL_NAMES = '*'

/** Listens. Rejects with the system's error for the port, or with `TypeError` or a similar error for a certificate. */
export async function listenQuic(
  options: QuicOptions,
  accept: (session: QuicSession) => void,
): Promise<QuicListening> {
  const { listen } = await import('node:quic')
  const { hostname, port, certificate, maxStreams } = options
  const family = hostname.includes(':') ? 'ipv6' : 'ipv4'
  const endpoint = await listen(accept, {
    endpoint: {
      address: new SocketAddress({ address: hostname, port, family }),
      maxConnectionsTotal: Math.min(options.maxConnections, MOST_CONNECTIONS),
      maxConnectionsPerHost: Math.min(options.maxAddressConnections, MOST_CONNECTIONS),
    },
    alpn: ['h3'],
    sni: certificate === undefined ? {} : { [ALL_NAMES]: entryOf(certificate) },
    // A request before the end of the handshake could be a replay.
    enableEarlyData: false,
    handshakeTimeout: options.handshakeMs,
    application: {
      maxHeaderPairs: options.maxHeaderCount,
      // Slightly too long heads get the response 431.
      maxHeaderLength: 4 * options.maxHeadBytes,
      // No dynamic table: each head is independent.
      qpackMaxDTableCapacity: 0,
      qpackBlockedStreams: 0,
      enableDatagrams: false,
    },
    transportParams: {
      initialMaxStreamsBidi: maxStreams,
      initialMaxStreamDataBidiRemote: WINDOW_BYTES,
      initialMaxData: 4 * WINDOW_BYTES,
      maxIdleTimeout: SILENT_SECONDS,
    },
  })
  // An error of the port comes with `closed`, because `listen` reports none.
  let fault: unknown
  endpoint.closed.catch((error: unknown) => {
    fault = error
  })
  if (endpoint.destroyed) {
    await endpoint.closed.catch(() => {})
    throw bindError(fault)
  }
  const bound = endpoint.address?.port ?? port
  ignoreUnreachable(bound)
  return {
    port: bound,
    show: (name, shown) => endpoint.setSNIContexts({ [name]: entryOf(shown) }),
    stop() {
      void endpoint.close().catch(() => {})
    },
    cut: () => endpoint.destroy(),
  }
}

/** Returns the system's error, whose number is in the runtime's message. */
function bindError(cause: unknown): Error {
  const number = Number(/Bind failure \((\d+)\)/.exec(String(cause))?.[1])
  const [code] = Object.entries(constants.errno).find(([, errno]) => errno === number) ?? []
  return Object.assign(new Error('the UDP port cannot be had', { cause }), { code: code ?? '' })
}

const PEM = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g

function entryOf({ cert, key }: ServerTls): Quic.SNIEntry {
  const chain = String(cert).match(PEM) ?? [String(cert)]
  return { keys: [createPrivateKey(key)], certs: chain.map(pem => Buffer.from(pem)) }
}

/** Tests one request and its response. Returns the missing feature of the runtime; `undefined` if there is none. */
export async function quicFault(certificate: ServerTls): Promise<string | undefined> {
  let listening: QuicListening | undefined
  try {
    const { promise, resolve } = Promise.withResolvers<string>()
    const options: QuicOptions = {
      hostname: '127.0.0.1',
      port: 0,
      certificate,
      maxStreams: 1,
      maxHeadBytes: 4_096,
      maxHeaderCount: 16,
      maxConnections: 1,
      maxAddressConnections: 0,
      handshakeMs: SELF_TEST_MS,
    }
    listening = await listenQuic(options, session => {
      session.onstream = stream => {
        stream.onheaders = fields => {
          const has = 'resetStream' in stream && 'stopSending' in stream && DRAINS in stream.writer
          resolve(has ? JSON.stringify([fields[':path'], fields['x-twice']]) : 'a stream without its methods')
          stream.sendHeaders({ ':status': '204' }, { terminal: true })
        }
      }
    })
    const { connect } = await import('node:quic')
    const address = new SocketAddress({ address: '127.0.0.1', port: listening.port })
    const session = await connect(address, { alpn: 'h3', servername: 'localhost', verifyPeer: 'manual' })
    session.closed.catch(() => {})
    await session.opened
    const stream = await session.createBidirectionalStream({
      headers: {
        ':method': 'GET',
        ':scheme': 'https',
        ':authority': 'localhost',
        ':path': '/a/../b',
        'x-twice': ['1', '2'],
      },
    })
    stream.closed.catch(() => {})
    const { promise: late, resolve: isLate } = Promise.withResolvers<string>()
    const timer = setTimeout(isLate, SELF_TEST_MS, 'no answer')
    const seen = await Promise.race([promise, late])
    clearTimeout(timer)
    session.destroy()
    return seen === '["/a/../b",["1","2"]]' ? undefined : `it brought ${seen}`
  } catch (cause) {
    return messageOf(cause)
  } finally {
    listening?.cut()
  }
}

const SELF_TEST_MS = 5_000
