// Features of Bun's TLS that its published types lack, in one file (QUIC, which is optional, has its own:
// bun-quic.ts). Each was tried with Bun 1.4.5; `tlsFault` tries the first again before a server depends on it.
//
// - `upgradeTLS({ isServer, initialData, tls: { secureContext } })` speaks TLS on a connection whose first bytes were
//   read
//   already. The connection below still reports encrypted bytes, and its close. `reload` would change the handlers of all
//   connections of its listener.
// - `alpnCallback`, an event of such a connection, chooses its protocol. Without it visitors speak HTTP/1.1.
// - `session`, an event of a dialled connection, has the session that `setSession` of a later one resumes. Without
//   either each handshake is a
//   full one.
// - `getPeerX509Certificate` has the key for `pin`. Without it, dials with a pin are refused.
// - `setKeyCert` replaces the certificate of one connection before its hello is read: a reload tries it first
//   (`replacementFault`).
// - `minVersion` of a listener is a number; a name, as node:tls has it, is refused.

import type { KeyObject, X509Certificate } from 'node:crypto'
import type { SecureContextOptions } from 'node:tls'
import { deferred } from '../deferred.ts'
import type { ServerHandshake } from '../socket.ts'
import type { Connection, RawSocket } from './bun-connection.ts'
import type { ConnectionEvents } from './bun-events.ts'

/** A TLS context of Bun, which is opaque. */
export type SecureContext = object

interface UntypedSocket {
  setKeyCert(context: SecureContext): void
  setSession?(session: Uint8Array): void
  getPeerX509Certificate?(): X509Certificate | undefined
  upgradeTLS(options: {
    readonly isServer: true
    readonly initialData: Uint8Array
    readonly tls: {
      readonly secureContext: SecureContext
      readonly requestCert?: boolean
      readonly rejectUnauthorized?: boolean
    }
    readonly data: unknown
    readonly socket: unknown
  }): unknown
}

/** The versions as the numbers in the protocol. */
const VERSIONS = { '1.2': 0x0303, '1.3': 0x0304 } as const

/** Returns the TLS option of a listener for the lowest version. */
export const lowestVersion = (version: keyof typeof VERSIONS): object => ({ minVersion: VERSIONS[version] })

/** Makes a TLS context. Throws OpenSSL's error for an unusable certificate. */
export async function secureContext(options: SecureContextOptions): Promise<SecureContext> {
  const { createSecureContext } = await import('node:tls')
  const { context }: { context: SecureContext } = createSecureContext(options)
  return context
}

/** Uses a certificate on a connection whose hello was not read yet, in place of its listener's. */
export function showCertificate(raw: object, context: SecureContext): void {
  untyped(raw).setKeyCert(context)
}

/**
 * Sets the session before the handshake of a dialled connection. If the server no longer knows the session, the
 * handshake is a full one.
 */
export function resumeSession(raw: RawSocket, session: Uint8Array): void {
  untyped(raw).setSession?.(session)
}

/** Returns the far side's public key. `undefined` if it showed no certificate. */
export function peerKey(raw: RawSocket): KeyObject | undefined {
  return untyped(raw).getPeerX509Certificate?.()?.publicKey
}

/** Returns the certificate of the far side. `undefined` if it showed none. */
export function peerCertificate(raw: RawSocket): X509Certificate | undefined {
  return untyped(raw).getPeerX509Certificate?.()
}

/**
 * Begins TLS as the server on a connection from which `first` was already read. Events go to `events`, with `secured` as data.
 */
export function beginTls(
  raw: RawSocket,
  first: Uint8Array,
  { context, clientCa }: Pick<ServerHandshake, 'context' | 'clientCa'>,
  secured: Connection,
  events: ConnectionEvents,
): void {
  untyped(raw).upgradeTLS({
    isServer: true,
    initialData: first,
    tls: {
      secureContext: context,
      ...(clientCa !== undefined && { requestCert: true, rejectUnauthorized: false }),
    },
    data: secured,
    socket: events,
  })
}

/** The time in milliseconds for one round trip on the loopback of a very busy machine. */
const CHECK_TIMEOUT_MS = 5_000

/**
 * Checks whether `beginTls` works in this version of Bun: does one TLS handshake on the loopback with this context,
 * in about 5 ms. Resolves with the error; `undefined` if there is none.
 */
export async function tlsFault(context: SecureContext): Promise<string | undefined> {
  const { promise, resolve } = deferred<string | undefined>()
  const timer = setTimeout(() => resolve(`no answer in ${CHECK_TIMEOUT_MS} ms`), CHECK_TIMEOUT_MS)
  const failed = (_raw: unknown, error: Error) => resolve(error.message)
  const fallen = () => resolve('the connection closed')
  const echo = { data: (raw: Bun.Socket, bytes: Uint8Array) => void raw.write(bytes), error: failed }
  let hasBegun = false
  const listener = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      error: failed,
      data(raw, first) {
        if (hasBegun) return
        hasBegun = true
        const tls = { secureContext: context }
        untyped(raw).upgradeTLS({ isServer: true, initialData: first, tls, data: undefined, socket: echo })
      },
    },
  })
  try {
    const near = await Bun.connect({
      hostname: '127.0.0.1',
      port: listener.port,
      tls: { rejectUnauthorized: false },
      socket: {
        handshake: raw => void raw.write('?'),
        data: (_raw, bytes) => resolve(bytes.toString() === '?' ? undefined : 'other bytes came back'),
        close: fallen,
        error: failed,
      },
    })
    const fault = await promise
    near.terminate()
    return fault
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  } finally {
    clearTimeout(timer)
    listener.stop(true)
  }
}

/**
 * Checks whether `showCertificate` works, on one connection on the loopback. Resolves as `tlsFault`; rejects for an
 * invalid certificate.
 */
export async function replacementFault(
  tls: Bun.TLSOptions,
  context: SecureContext,
): Promise<string | undefined> {
  const { promise, resolve } = deferred<string | undefined>()
  const timer = setTimeout(() => resolve(`no connection in ${CHECK_TIMEOUT_MS} ms`), CHECK_TIMEOUT_MS)
  const silent = { data() {}, error() {} }
  const listener = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    tls,
    socket: {
      ...silent,
      open(raw) {
        try {
          showCertificate(raw, context)
          resolve(undefined)
        } catch (error) {
          resolve(error instanceof Error ? error.message : String(error))
        }
      },
    },
  })
  try {
    const near = Bun.connect({
      hostname: '127.0.0.1',
      port: listener.port,
      tls: { rejectUnauthorized: false },
      socket: silent,
    })
    const fault = await promise
    near.then(
      raw => raw.terminate(),
      // Then `open` did not come, and the timer reported it.
      () => {},
    )
    return fault
  } finally {
    clearTimeout(timer)
    listener.stop(true)
  }
}

function untyped(raw: object): UntypedSocket {
  return raw as UntypedSocket // its types lack these, see above
}
