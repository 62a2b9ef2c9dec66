// Ends TLS of visitors: each gets the certificate for the name in its hello.

import {
  type Certificate,
  type Certificates,
  type ChallengeResponses,
  TLS_CHALLENGE_PROTOCOL,
} from '../../certificates.ts'
import { TunnelError } from '../../errors.ts'
import type { ServerHandshake, Socket, SocketHandler } from '../../socket.ts'
import { FORWARD_SECRET_CIPHERS } from '../../sockets/bun.ts'
import { tlsFault } from '../../sockets/bun-tls.ts'
import { type ContextOptions, SecureContexts } from '../../x509/contexts.ts'
import { selfSigned } from '../../x509/self-signed.ts'
import type { Asking } from '../contracts/guarding.ts'
import type { Hello } from '../fronts/hello.ts'

/** The source of certificates: those of names, and those with which an authority checks a name. */
export interface CertificateSource {
  readonly certificates: Certificates
  readonly challenges: ChallengeResponses | undefined
}

export interface TerminationHost extends CertificateSource {
  readonly options: ContextOptions
  /**
   * Returns the authorities whose certificates the visitor or client is asked for; the same object while nothing
   * changes.
   * `undefined`: none is requested.
   */
  askingFor(name: string): Asking | undefined
  /** Returns the protocol to choose with ALPN. `undefined` for none. */
  chooseProtocol(offered: readonly string[]): string | undefined
  /** Called when a handshake uses this certificate for `name`. */
  found(name: string, certificate: Certificate): void
  failed(error: TunnelError): void
  /** Called when a visitor asked for a name without a certificate, with the reason. */
  troubled(name: string, error: TunnelError): void
}

const UNSUPPORTED = `Bun ${Bun.version} cannot begin TLS on a connection whose first bytes were read, which certificates by name, PROXY headers before TLS and a port shared with TLS tunnels need. Use Bun 1.4.5, or one certificate, a tlsPort of its own and no PROXY headers.`

type Accept = (socket: Socket) => SocketHandler

export class TlsTermination {
  readonly #host: TerminationHost
  readonly #contexts: SecureContexts
  /** The TLS contexts that ask for a certificate. They are freed with the request object. */
  readonly #asking = new WeakMap<Asking, SecureContexts>()

  constructor(host: TerminationHost) {
    this.#host = host
    this.#contexts = this.#contextsOf()
  }

  #contextsOf(clientCa?: string): SecureContexts {
    const { ciphers = FORWARD_SECRET_CIPHERS, minVersion } = this.#host.options
    return new SecureContexts({ ciphers, minVersion, clientCa })
  }

  /** Returns how the handshake after this hello continues. `accept` gets the decrypted connection. */
  read(hello: Hello, accept: Accept): ServerHandshake | Promise<ServerHandshake | undefined> | undefined {
    if (isChallenge(hello)) return this.#challenge(hello.name)
    try {
      const found = this.#host.certificates.find(hello.name)
      if (found instanceof Promise) return this.#later(found, hello, accept)
      return found && this.#handshake(found, hello, accept)
    } catch (error) {
      // `find` is the caller's code and may throw, or the certificate is unusable.
      this.#failed(error)
      return Promise.reject(error)
    }
  }

  /**
   * Checks the runtime before the server depends on it. Rejects with `RUNTIME_UNSUPPORTED` if the runtime cannot
   * begin TLS on a connection whose first bytes were read.
   */
  static async check(): Promise<void> {
    const certificate = selfSigned('localhost', Date.now())
    const fault = await tlsFault(new SecureContexts().of(certificate).context)
    if (fault !== undefined)
      throw new TunnelError('RUNTIME_UNSUPPORTED', `${UNSUPPORTED} What happened: ${fault}.`)
  }

  /** Makes the TLS context of a certificate now. Throws `TLS_INVALID`. */
  check(certificate: Certificate): void {
    this.#contexts.of(certificate)
    this.#contextsFor(this.#host.askingFor('')).of(certificate)
  }

  async #later(
    found: Promise<Certificate | undefined>,
    hello: Hello,
    accept: Accept,
  ): Promise<ServerHandshake | undefined> {
    let certificate: Certificate | undefined
    try {
      certificate = await found
    } catch (error) {
      // An error with a code was already reported by its source.
      if (error instanceof TunnelError) this.#host.troubled(hello.name, error)
      else this.#failed(error)
      throw error
    }
    try {
      return certificate && this.#handshake(certificate, hello, accept)
    } catch (error) {
      this.#failed(error)
      throw error
    }
  }

  /** Begins the handshake. Throws `TLS_INVALID`. */
  #handshake(certificate: Certificate, { name, protocols }: Hello, accept: Accept): ServerHandshake {
    const asking = this.#host.askingFor(name)
    const { context } = this.#contextsFor(asking).of(certificate)
    this.#host.found(name, certificate)
    const protocol = this.#host.chooseProtocol(protocols)
    return {
      context,
      accept,
      ...(asking !== undefined && { clientCa: asking.clientCa }),
      ...(protocol !== undefined && { protocol }),
    }
  }

  #contextsFor(asking: Asking | undefined): SecureContexts {
    if (asking === undefined) return this.#contexts
    const known = this.#asking.get(asking)
    if (known !== undefined) return known
    const contexts = this.#contextsOf(asking.clientCa)
    this.#asking.set(asking, contexts)
    return contexts
  }

  #challenge(name: string): ServerHandshake | undefined {
    const certificate = this.#host.challenges?.tlsCertificate(name)
    if (certificate === undefined) return undefined
    const { context } = this.#contexts.of(certificate)
    return { context, protocol: TLS_CHALLENGE_PROTOCOL, accept: closeAtOnce }
  }

  #failed(cause: unknown): void {
    this.#host.failed(
      cause instanceof TunnelError ? cause : new TunnelError('INTERNAL', undefined, { cause }),
    )
  }
}

/** Whether an authority checks a name: then it offers nothing else (RFC 8737 section 3). */
function isChallenge({ protocols }: Hello): boolean {
  return protocols.length === 1 && protocols[0] === TLS_CHALLENGE_PROTOCOL
}

/** Closes a connection whose purpose was the handshake. */
function closeAtOnce(socket: Socket): SocketHandler {
  socket.end()
  return { received() {}, drained() {}, ended() {}, closed() {} }
}
