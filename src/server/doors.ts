// The ports of a server, and the certificates shown there.

import { isIP } from 'node:net'
import { pairFault } from '../certificates/pair.ts'
import { TunnelError } from '../errors.ts'
import type { Socket, SocketHandler } from '../socket.ts'
import type { Listening, ServerTls } from '../sockets/bun.ts'
import type { Admission, Seat } from './admission.ts'
import type { VisitorHost } from './front.ts'
import type { TlsFront } from './fronts/tls.ts'
import type { TlsHop } from './hop.ts'
import type { ServerSettings } from './settings.ts'

/** Takes a connection of a public port, with what its visitors share and where it is counted. */
export type AcceptVisitor = (socket: Socket, host: VisitorHost, seat: Seat | undefined) => SocketHandler

/** Who takes what comes in. */
export interface DoorsOwner {
  /** For TLS tunnels. */
  readonly tlsFront: TlsFront
  /** Takes a connection as it comes, behind whatever proxy, for `accept`. */
  entrance(
    proto: 'http' | 'https',
    accept: AcceptVisitor,
  ): (socket: Socket, seat: Seat | undefined) => SocketHandler
  readonly admission: Admission
  /** Somebody who speaks HTTP, TLS taken away. */
  visitor: AcceptVisitor
  failed(error: Error): void
}

export class Doors {
  readonly #owner: DoorsOwner
  #main: Listening | undefined
  /** Where TLS tunnels have a port of their own. */
  #tls: Listening | undefined
  /** Where they have not. */
  #hop: TlsHop | undefined

  constructor(owner: DoorsOwner) {
    this.#owner = owner
  }

  /** `undefined` before they are open. */
  get port(): number | undefined {
    return this.#main?.port
  }

  /** Of TLS tunnels, if they have one of their own. */
  get tlsPort(): number | undefined {
    return this.#tls?.port
  }

  /** Rejects with `PORT_IN_USE`, `TLS_INVALID` or `OPTION_INVALID`: then none is open. */
  async open({ port, hostname, tls, tlsPort, sharesTlsPort }: ServerSettings): Promise<void> {
    const { listenBun } = await import('../sockets/bun.ts')
    const owner = this.#owner
    const failed = (error: Error) => owner.failed(error)
    const listen = (on: number, accept: AcceptVisitor, certificate?: ServerTls) => {
      try {
        return listenBun({
          hostname,
          port: on,
          failed,
          ...(certificate && { tls: certificate }),
          admit: socket => owner.admission.admit(socket, true),
          accept: owner.entrance(tls === undefined ? 'http' : 'https', accept),
        })
      } catch (cause) {
        throw listenError(cause, hostname, on, certificate)
      }
    }
    try {
      if (tls !== undefined && sharesTlsPort) {
        const { TlsHop } = await import('./hop.ts')
        this.#hop = await secured(tls, () => new TlsHop(tls, failed))
        this.#main = listen(port, (socket, host, seat) => this.#acceptTls(socket, host, seat))
        return
      }
      this.#main = listen(port, owner.visitor, tls)
      if (tlsPort === undefined) return
      this.#tls = listen(tlsPort, (socket, _host, seat) => owner.tlsFront.accept(socket, seat))
    } catch (error) {
      this.close(true)
      this.#main = undefined
      throw error
    }
  }

  /** Resolves with what shows the certificate in new handshakes. Rejects with `TLS_INVALID`. */
  prepareTls(certificate: ServerTls): Promise<(() => void) | undefined> {
    return secured(certificate, () => (this.#hop ?? this.#main)?.prepareTls(certificate))
  }

  /** Nobody comes in any more. `closeActive`: those who are in are cut. */
  close(closeActive: boolean): void {
    this.#main?.stop(closeActive)
    this.#tls?.stop(closeActive)
    if (!closeActive) return
    this.#owner.tlsFront.stop()
    this.#hop?.stop(true)
    this.#hop = undefined
  }

  /** TLS for a tunnel goes there as it is; the rest is the server's to end. */
  #acceptTls(socket: Socket, host: VisitorHost, seat: Seat | undefined): SocketHandler {
    const { tlsFront, visitor } = this.#owner
    return tlsFront.accept(socket, seat, (outer, first) =>
      this.#hop === undefined
        ? visitor(outer, host, seat)
        : this.#hop.enter(outer, first, plain => visitor(plain, host, seat)),
    )
  }
}

/** Runs `make`, which fails for the certificate alone. */
async function secured<Result>(
  { cert, key }: ServerTls,
  make: () => Result | Promise<Result>,
): Promise<Result> {
  try {
    return await make()
  } catch (cause) {
    if (isAboutCiphers(cause)) throw new TunnelError('OPTION_INVALID', CIPHERS_INVALID, { cause })
    throw new TunnelError('TLS_INVALID', pairFault(cert, key), { cause })
  }
}

const CIPHERS_INVALID = 'tlsCiphers has no cipher of TLS 1.2 that is known by this name.'

function isAboutCiphers(cause: unknown): boolean {
  return cause instanceof Error && /cipher/i.test(cause.message)
}

function listenError(
  cause: unknown,
  hostname: string,
  port: number,
  certificate: ServerTls | undefined,
): TunnelError {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : ''
  if (code === 'EADDRINUSE') {
    return new TunnelError('PORT_IN_USE', `Port ${port} on ${hostname} is in use.`, { cause })
  }
  if (code === 'EACCES') {
    const text = `Listening on port ${port} needs more rights: choose one from 1024 up, or give it CAP_NET_BIND_SERVICE (docs/operating.md).`
    return new TunnelError('OPTION_INVALID', text, { cause })
  }
  if (isAboutCiphers(cause)) return new TunnelError('OPTION_INVALID', CIPHERS_INVALID, { cause })
  if (/TLS|SSL|PEM|KEY|CERT|BoringSSL/i.test(`${code} ${String(cause)}`))
    return new TunnelError('TLS_INVALID', certificate && pairFault(certificate.cert, certificate.key), {
      cause,
    })
  const text = `Cannot listen on ${hostname}:${port}: ${whyNotThere(code, hostname)}. Give an address of this machine, or 0.0.0.0 for all.`
  return new TunnelError('OPTION_INVALID', text, { cause })
}

/** Bun 1.4.5 gives no code for a name that has no address. */
function whyNotThere(code: string, hostname: string): string {
  if (code === '' || code === 'ENOTFOUND')
    return isIP(hostname) === 0 ? 'no address is known for this name' : 'the system gives no reason'
  return code === 'EADDRNOTAVAIL' ? `this machine has no such address (${code})` : code
}
