// The functions that Bun calls: one object for each kind of connection, whose state is in `data`.

import { Connection, type Owner, type RawSocket } from './bun-connection.ts'
import { peerKey, resumeSession, showCertificate } from './bun-tls.ts'
import { failure } from './gate.ts'
import { pinFault, protocolFault } from './pin.ts'

export interface ConnectionEvents {
  readonly binaryType: 'uint8array'
  open(raw: RawSocket): void
  data(raw: RawSocket, bytes: Uint8Array): void
  drain(raw: RawSocket): void
  end(raw: RawSocket): void
  error(raw: RawSocket, error: Error): void
  close(raw: RawSocket, error?: Error): void
  timeout(raw: RawSocket): void
  handshake?(raw: RawSocket, success: boolean, error: Error | null): void
  /** Called with a ticket of the server; missing in Bun's types. */
  session?(raw: RawSocket, session: Uint8Array): void
  /** Called with the protocols that a hello offers; missing in Bun's types. Returns `false` for no ALPN reply. */
  alpnCallback?(raw: RawSocket, name: string | undefined, offered: Uint8Array): string | false
}

/**
 * The longest TLS handshake of a visitor or client in seconds, as in nginx: programs that get no processor time need
 * long. Until its end no other timeout applies, and the connection gives way to others.
 */
const HANDSHAKE_TIMEOUT_S = 60

const SHARED_EVENTS = {
  binaryType: 'uint8array',
  data({ data: connection }: RawSocket, bytes: Uint8Array) {
    connection.received(bytes)
  },
  drain({ data: connection }: RawSocket) {
    connection.drained()
  },
  end({ data: connection }: RawSocket) {
    connection.farSideEnded()
  },
  /** Called when TLS failed, or a handler threw. */
  error({ data: connection }: RawSocket, error: Error) {
    connection.failed(error)
  },
  close({ data: connection }: RawSocket, error?: Error) {
    connection.closed(error)
  },
  /** Called when a TLS handshake takes too long. Bun also calls it for every accepted connection after 120 seconds. */
  timeout({ data: connection }: RawSocket) {
    if (connection.handler === undefined) connection.terminate()
  },
} as const

export const PLAIN_DIAL_EVENTS: ConnectionEvents = {
  ...SHARED_EVENTS,
  open(raw: RawSocket) {
    raw.data.raw = raw
    raw.data.isPlain = true
    if (!isRefusedAsOwn(raw)) dialled(raw.data)
  },
}

export const TLS_DIAL_EVENTS: ConnectionEvents = {
  ...SHARED_EVENTS,
  open(raw: RawSocket) {
    raw.data.raw = raw
    if (raw.data.isUnwanted) return raw.terminate()
    if (isRefusedAsOwn(raw)) return
    const session = raw.data.tlsSession?.session
    if (session !== undefined) resumeSession(raw, session)
  },
  session(raw: RawSocket, session: Uint8Array) {
    const slot = raw.data.tlsSession
    if (slot !== undefined) slot.session = session
  },
  handshake(raw: RawSocket, success: boolean, error: Error | null) {
    const connection = raw.data
    const isSound = connection.mustVerify ? success && raw.authorized : success || isEncrypted(raw)
    const fault =
      (isSound && connection.pin ? pinFault(connection.pin, peerKey(raw)) : undefined) ??
      (isSound ? protocolFault(connection.wantedProtocol, connection.protocol) : undefined)
    if (isSound && fault === undefined) return dialled(connection)
    connection.failure = fault ?? error ?? failure('ECONNRESET', 'the TLS handshake failed')
    connection.terminate()
  },
}

/**
 * The events of a socket on which TLS was begun, for which the TLS socket reports everything. Without this object, Bun also
 * copies the encrypted bytes for us, which is a quarter of the CPU time of a download. Bun requires at least one handler.
 */
export const ENCRYPTED_EVENTS = { drain(): void {} }

export const PLAIN_LISTEN_EVENTS: ConnectionEvents = {
  ...SHARED_EVENTS,
  open(raw: RawSocket) {
    const connection = adopt(raw)
    connection.isPlain = true
    if (isAdmitted(connection)) accepted(connection)
  },
}

export const TLS_LISTEN_EVENTS: ConnectionEvents = {
  ...SHARED_EVENTS,
  open(raw: RawSocket) {
    const connection = adopt(raw)
    if (!isAdmitted(connection)) return
    const { context } = connection.owner ?? {}
    // The hello was not read yet, so the listener and all its waiting connections can stay.
    if (context !== undefined) showCertificate(raw, context)
    raw.timeout(HANDSHAKE_TIMEOUT_S)
  },
  handshake(raw: RawSocket, success: boolean) {
    if (raw.data.isCut) return
    raw.timeout(0)
    if (success) accepted(raw.data)
    else raw.data.terminate()
  },
}

/** The events of a listener that chooses protocols. */
export const ALPN_LISTEN_EVENTS: ConnectionEvents = {
  ...TLS_LISTEN_EVENTS,
  alpnCallback: (raw, _name, offered) => raw.data.owner?.chooseProtocol?.(protocolsIn(offered)) ?? false,
}

/** The events of a connection whose first bytes were read before TLS. */
export const SECURED_EVENTS: ConnectionEvents = {
  ...ALPN_LISTEN_EVENTS,
  open(raw: RawSocket) {
    raw.data.raw = raw
    raw.timeout(HANDSHAKE_TIMEOUT_S)
  },
}

/** Returns the protocols of ALPN from names with their lengths before them, which the runtime has checked. */
function protocolsIn(offered: Uint8Array): readonly string[] {
  const names: string[] = []
  for (let at = 0; at < offered.length; at += 1 + offered[at]!)
    names.push(String.fromCharCode(...offered.subarray(at + 1, at + 1 + offered[at]!)))
  return names
}

function adopt(raw: RawSocket): Connection {
  const owner = raw.data as unknown as Owner // see `listenBun`: until now it is the owner
  const connection = new Connection(undefined, undefined, false, owner)
  connection.raw = raw
  raw.data = connection
  return connection
}

function isAdmitted(connection: Connection): boolean {
  const { owner } = connection
  if (owner?.admit === undefined) return true
  connection.pass = owner.admit(connection)
  // The connection may have been cut already.
  if (connection.pass === undefined) connection.terminate()
  return !connection.isCut
}

function accepted(connection: Connection): void {
  connection.handler = connection.owner?.accept(connection, connection.pass)
}

function dialled(connection: Connection): void {
  if (connection.isUnwanted) return connection.raw.terminate()
  connection.dialling?.resolve(connection)
  connection.dialling = undefined
}

/**
 * Whether a dial connected to itself. A dial to a local port of the ephemeral range where nothing listens may get the
 * same port to dial from; TCP then joins the connection to itself, and it looks like an app that echoes.
 */
function isRefusedAsOwn(raw: RawSocket): boolean {
  if (raw.localPort !== raw.remotePort || raw.localPort === undefined) return false
  if (raw.localAddress !== raw.remoteAddress) return false
  raw.data.failure = failure('ECONNREFUSED', 'nothing listens there')
  raw.data.terminate()
  return true
}

/** Whether TLS works. Bun reports a certificate for another name as a failed handshake even if verification is off. */
function isEncrypted(raw: RawSocket): boolean {
  // Before the handshake there is no cipher, or one whose name is null, whatever its type says.
  const cipher = raw.getCipher() as { readonly name: string | null } | null | undefined
  return typeof cipher?.name === 'string'
}
