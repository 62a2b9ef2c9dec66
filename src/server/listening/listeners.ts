// The ports of a server, and the certificates that they use.

import { isIP } from 'node:net'
import { optionInvalid, TunnelError } from '../../errors.ts'
import type { Socket, SocketHandler } from '../../socket.ts'
import type { Listening, ServerTls } from '../../sockets/bun.ts'
import type { InheritedSocket } from '../../sockets/inherited.ts'
import { lowPortAdvice } from '../../sockets/low-ports.ts'
import { pairFault } from '../../x509/pair.ts'
import type { ServerContext } from '../context/server-context.ts'
import type { Asking } from '../contracts/guarding.ts'
import type { Entrance, PartListener } from '../contracts/protocol.ts'
import { UNHEARD } from '../contracts/raw-visit.ts'
import type { Hello } from '../fronts/hello.ts'
import type { HttpFront } from '../fronts/http.ts'
import type { TlsFront } from '../fronts/tls.ts'
import type { Admission, Admitted, AdmittedConnection } from '../limits/admission.ts'
import type { PeerTls } from '../settings/part-options.ts'
import type { ServerSettings } from '../settings/settings.ts'
import type { Tunnel } from '../tunnels/tunnel.ts'
import { type AcceptVisitor, acceptThrough, entranceOf } from './entrances.ts'
import type { TlsTermination } from './termination.ts'

/** The maximum number of further ports to try if a part cannot open the number that the system chose. */
const PORT_TRIES = 10

export class Listeners {
  readonly #context: ServerContext
  readonly #admission: Admission
  readonly #httpFront: HttpFront
  readonly #redirects: HttpFront
  readonly #tlsFront: TlsFront
  #main: Listening | undefined
  /** The port of TLS tunnels, if it is not the server's own. */
  #tls: Listening | undefined
  /** The port of redirects and challenges. */
  #http: Listening | undefined
  /** The unix socket for other servers on this machine. */
  #peers: Listening | undefined
  readonly #doors: PartListener[] = []
  /** Reads the hello of TLS connections before the handshake. */
  #termination: TlsTermination | undefined

  constructor(
    context: ServerContext,
    admission: Admission,
    httpFront: HttpFront,
    redirects: HttpFront,
    tlsFront: TlsFront,
  ) {
    this.#context = context
    this.#admission = admission
    this.#httpFront = httpFront
    this.#redirects = redirects
    this.#tlsFront = tlsFront
  }

  /** The port that the server listens on; before that, the requested one. */
  get port(): number {
    return this.#main?.port ?? this.#context.settings.port
  }

  get tlsPort(): number | undefined {
    const { tlsPort, sharesTlsPort } = this.#context.settings
    return this.#tls?.port ?? (sharesTlsPort ? this.port : tlsPort)
  }

  get httpPort(): number | undefined {
    return this.#http?.port ?? this.#context.settings.httpPort
  }

  /** The descriptors of the sockets that listen, the server's own first. */
  get descriptors(): readonly number[] {
    const peers = this.#context.settings.cluster?.peerTls && this.#peers
    const all = [this.#main, this.#tls, this.#http, peers].map(one => one?.descriptor)
    return all.filter(one => one !== undefined)
  }

  /** The public URL of a tunnel; `undefined`: of the control host. */
  urlOf(tunnel: Tunnel | undefined): string {
    const { publicUrl, basePath, domains, sharesTlsPort } = this.#context.settings
    if (tunnel === undefined) return this.#context.urlOf(this.port) + basePath
    const hostname = domains[0] ?? 'localhost'
    if (tunnel.port !== 0) return `${tunnel.kind}://${hostname}:${tunnel.port}`
    if (tunnel.kind === 'private') return `private:${tunnel.name.replace(/^tcp:/, '')}`
    if (tunnel.kind !== 'tls') return this.#context.urlOf(this.port, tunnel.name)
    const tlsPort = sharesTlsPort && publicUrl ? Number(publicUrl.port || 443) : this.tlsPort
    return `tls://${tunnel.name}.${hostname}${tlsPort === 443 ? '' : `:${tlsPort}`}`
  }

  /** Opens all ports. Rejects with `PORT_IN_USE`, `TLS_INVALID`, `OPTION_INVALID` or `RUNTIME_UNSUPPORTED`; then none is open. */
  async open(): Promise<void> {
    const { settings } = this.#context
    const { port, hostname, tls, isTls, tlsPort, sharesTlsPort, httpPort } = settings
    const { listenBun } = await import('../../sockets/bun.ts')
    const failed = (error: Error) => this.#context.failed(error)
    const own: Entrance['proto'] = isTls ? 'https' : 'http'
    const listen = (
      on: number,
      inherited: InheritedSocket | undefined,
      accept: AcceptVisitor,
      certificate?: ServerTls,
      proto = own,
    ) => {
      try {
        return listenBun({
          hostname,
          port: on,
          inherited,
          failed,
          ...(certificate && {
            tls: certificate,
            chooseProtocol: (offered: readonly string[]) => this.#chooseProtocol(offered),
          }),
          admit: socket => this.#admission.admit(socket, true),
          accept: acceptThrough(this.#context, proto, accept),
        })
      } catch (cause) {
        throw listenError(cause, hostname, on, certificate)
      }
    }
    await this.#inherit(settings)
    const { inheritance } = this.#context
    const first = inheritance?.takeMain()
    try {
      const front =
        (httpFront: HttpFront): AcceptVisitor =>
        (socket, entrance, admitted) =>
          httpFront.accept(socket, entrance, admitted)
      this.#peers = await this.#listenForPeers(settings, front(this.#httpFront))
      let openMain = () => listen(port, first, front(this.#httpFront), tls)
      if (readsHellos(settings)) {
        this.#termination = await this.#terminationOf(settings)
        await (await import('./termination.ts')).TlsTermination.check()
        this.#context.tunnels.guards.asksCertificates = true
        openMain = () =>
          listen(port, first, (socket, entrance, admitted) =>
            this.#acceptTls(socket, entrance, admitted, sharesTlsPort),
          )
      }
      this.#main = openMain()
      if (httpPort !== undefined)
        this.#http = listen(httpPort, inheritance?.take(httpPort), front(this.#redirects), undefined, 'http')
      if (tlsPort !== undefined && !sharesTlsPort)
        this.#tls = listen(tlsPort, inheritance?.take(tlsPort), (socket, _entrance, admitted) =>
          this.#tlsFront.accept(socket, admitted),
        )
      await this.#openDoors(settings, openMain, PORT_TRIES)
      inheritance?.opened()
    } catch (error) {
      this.close(true)
      this.#main = undefined
      throw error
    }
  }

  /**
   * Prepares the certificates of new settings. Resolves with a function that applies them to new handshakes;
   * `undefined` if they stay. Rejects with `TLS_INVALID`.
   */
  async prepare(next: ServerSettings): Promise<(() => void) | undefined> {
    const now = this.#context.settings
    const { tls, certificates, challenges } = next
    const isSame =
      certificates === now.certificates &&
      challenges === now.challenges &&
      next.clientCa === now.clientCa &&
      tls?.cert === now.tls?.cert &&
      tls?.key === now.tls?.key &&
      next.tlsTerms.ciphers === now.tlsTerms.ciphers
    if (isSame) return undefined
    if (this.#termination === undefined) {
      const show = tls && (await secured(tls, () => this.#main?.prepareTls(tls)))
      return () => {
        show?.()
        if (tls !== undefined) for (const door of this.#doors) door.showDefault(tls)
      }
    }
    const termination = await this.#terminationOf(next)
    return () => {
      this.#termination = termination
    }
  }

  /** Accepts no more connections. `closeActive`: cuts the open ones. */
  close(closeActive: boolean): void {
    this.#main?.stop(closeActive)
    this.#tls?.stop(closeActive)
    this.#http?.stop(closeActive)
    for (const door of this.#doors) door.close(closeActive)
    this.#context.inheritance?.close()
    if (!closeActive) return
    // This socket stays open until the end: servers that stop together serve each other's visitors.
    this.#peers?.stop(true)
    this.#tlsFront.stop()
  }

  async #listenForCertified({ hostname, tlsTerms }: ServerSettings, url: string, peerTls: PeerTls) {
    const { TlsTermination } = await import('./termination.ts')
    const { listenBun } = await import('../../sockets/bun.ts')
    await TlsTermination.check()
    const { cert, key, ca } = peerTls
    const certificate = { cert, key }
    const asking = { clientCa: ca }
    const failed = (error: Error) => this.#context.failed(error)
    const termination = new TlsTermination({
      certificates: { find: () => certificate },
      challenges: undefined,
      options: tlsTerms,
      askingFor: () => asking,
      chooseProtocol: () => undefined,
      found() {},
      failed,
      troubled() {},
    })
    await secured(peerTls, () => termination.check(certificate))
    const entrance: Entrance = { ...entranceOf(this.#context, 'https'), from: { isPeers: true } }
    const enter = (socket: Socket): SocketHandler => {
      if (socket.isCertified === true) return this.#httpFront.accept(socket, entrance, undefined)
      socket.terminate()
      return UNHEARD
    }
    const port = Number(new URL(url).port || 443)
    const terminator = { sharesPort: false, read: (hello: Hello) => termination.read(hello, enter) }
    try {
      const accept = (socket: Socket) => this.#tlsFront.accept(socket, undefined, terminator)
      return listenBun({ hostname, port, inherited: this.#context.inheritance?.take(port), accept, failed })
    } catch (cause) {
      throw listenError(cause, hostname, port, peerTls)
    }
  }

  /** Listens on a unix socket for the cluster's servers on this machine, or on a port for servers with certificates. */
  async #listenForPeers(settings: ServerSettings, accept: AcceptVisitor): Promise<Listening | undefined> {
    const { cluster } = settings
    const { peerTls, peerUrl = '' } = cluster ?? {}
    if (peerTls !== undefined) return this.#listenForCertified(settings, peerUrl, peerTls)
    const path = /^unix:(.+)$/.exec(cluster?.peerUrl ?? '')?.[1]
    if (path === undefined) return undefined
    const [{ bindPrivately }, { listenBun }] = await Promise.all([
      import('../../private-socket.ts'),
      import('../../sockets/bun.ts'),
    ])
    return bindPrivately(path, () =>
      listenBun({
        unix: path,
        failed: error => this.#context.failed(error),
        accept: socket => accept(socket, entranceOf(this.#context, 'http'), undefined),
      }),
    )
  }

  async #inherit({ inherited }: ServerSettings): Promise<void> {
    if (inherited.length === 0) return
    const { Inheritance } = await import('../context/inheritance.ts')
    this.#context.inheritance = new Inheritance(this.#context)
  }

  /**
   * Opens the listeners. `openMain` opens the server's port again, with another number: another program may have the
   * UDP port with the number that the system chose.
   */
  async #openDoors(settings: ServerSettings, openMain: () => Listening, triesLeft: number): Promise<void> {
    const context = this.#context
    const { port } = this
    const terms = {
      settings,
      port,
      share: this.#httpFront,
      entrance: entranceOf(context, 'https'),
      admit: (visitor: Admitted) => this.#admission.admit(visitor, true),
      announce: (line: Uint8Array) => {
        context.altSvcLine = line
      },
    }
    try {
      await context.parts.open(terms, door => this.#doors.push(door))
    } catch (cause) {
      const error =
        cause instanceof TunnelError ? cause : listenError(cause, settings.hostname, port, settings.tls)
      if (settings.port !== 0 || error.code !== 'PORT_IN_USE' || triesLeft === 0) throw error
      for (const door of this.#doors.splice(0)) door.close(true)
      const refused = this.#main
      this.#main = openMain()
      refused?.stop(true)
      await this.#openDoors(settings, openMain, triesLeft - 1)
    }
  }

  /** Returns the protocol to choose with ALPN. `undefined`: none, which means HTTP/1.1. */
  #chooseProtocol(offered: readonly string[]): string | undefined {
    const { parts } = this.#context
    if (parts.protocol(() => true) === undefined) return undefined
    const chosen = parts.protocol(({ name }) => offered.includes(name))
    return chosen?.name ?? (offered.includes(HTTP1) ? HTTP1 : undefined)
  }

  /** Passes TLS for a TLS tunnel on unchanged, and ends all other TLS here. */
  #acceptTls(
    socket: Socket,
    entrance: Entrance,
    admitted: AdmittedConnection | undefined,
    sharesPort: boolean,
  ): SocketHandler {
    const accept = (secured: Socket) => this.#httpFront.accept(secured, entrance, admitted)
    return this.#tlsFront.accept(socket, admitted, {
      sharesPort,
      read: hello => this.#termination?.read(hello, accept),
      foreign: first => (REQUEST.test(Buffer.from(first).toString('latin1')) ? USE_HTTPS : undefined),
    })
  }

  /** Tells the clients of the host's tunnel that its DNS points to another server: the owner of the host can change that. */
  #tellClients(host: string, error: TunnelError): void {
    if (error.code !== 'HOST_NOT_POINTED_HERE') return
    for (const { tunnel, client, hostNames } of this.#context.tunnels.hostNames.ownerOf(host)?.members ?? [])
      if (hostNames.includes(host)) client?.hostTroubled?.(tunnel, host, error)
  }

  /**
   * Returns the request for a certificate: clients are asked on the control host, visitors if a guard of their tunnel wants it.
   */
  #askingFor(name: string, control: Asking | undefined): Asking | undefined {
    const destination = name === '' ? undefined : this.#context.destinationOf(name)
    if (destination === undefined || destination.kind === 'control') return control
    if (destination.kind === 'unknown') return undefined
    const { tunnels } = this.#context
    const tunnel = tunnels.find(destination.name)
    return tunnel && tunnels.guards.askingFor(tunnel.guard, tunnel.name)
  }

  async #terminationOf({
    tls,
    certificates,
    challenges,
    tlsTerms,
    clientCa,
  }: ServerSettings): Promise<TlsTermination> {
    const { TlsTermination } = await import('./termination.ts')
    const certificate = tls && { cert: tls.cert, key: tls.key }
    const control = clientCa === undefined ? undefined : { clientCa }
    const termination = new TlsTermination({
      certificates: certificates ?? { find: () => certificate },
      challenges,
      options: tlsTerms,
      askingFor: name => this.#askingFor(name, control),
      chooseProtocol: offered => this.#chooseProtocol(offered),
      found: (name, found) => {
        for (const door of this.#doors) door.show(name, found)
      },
      failed: error => this.#context.failed(error),
      troubled: (name, error) => this.#tellClients(name, error),
    })
    if (tls !== undefined && certificate !== undefined)
      await secured(tls, () => termination.check(certificate))
    return termination
  }
}

/** The ALPN name of HTTP/1.1 connections. */
const HTTP1 = 'http/1.1'

/** The beginning of a plain HTTP request. */
const REQUEST = /^[A-Z]{3,20} \/\S* HTTP\/1\./
const USE_HTTPS_TEXT = 'This is an HTTPS port, and a plain HTTP request came: use https://.\n'
const USE_HTTPS = Buffer.from(
  `HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: ${USE_HTTPS_TEXT.length}\r\nConnection: close\r\n\r\n${USE_HTTPS_TEXT}`,
)

/**
 * Whether the server must read the first bytes of a TLS connection to decide how it continues. Bun's own TLS does not show them.
 */
export function readsHellos({ isTls, certificates, ...settings }: ServerSettings): boolean {
  const { sharesTlsPort, acceptsProxyProtocol, clientCa, guarding, guards } = settings
  if (!isTls) return false
  const asksCertificates =
    clientCa !== undefined || guarding !== undefined || guards.some(one => one.clientCa)
  return certificates !== undefined || sharesTlsPort || acceptsProxyProtocol || asksCertificates
}

/** Runs `make`, whose only possible error is the certificate. */
async function secured<Result>(
  { cert, key }: ServerTls,
  make: () => Result | Promise<Result>,
): Promise<Result> {
  try {
    return await make()
  } catch (cause) {
    if (cause instanceof TunnelError) throw cause
    if (isAboutCiphers(cause)) throw optionInvalid(CIPHERS_INVALID, { cause })
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
    const text = `This user may not listen on port ${port}. ${lowPortAdvice(process.execPath)}`
    return optionInvalid(text, { cause })
  }
  if (isAboutCiphers(cause)) return optionInvalid(CIPHERS_INVALID, { cause })
  if (/TLS|SSL|PEM|KEY|CERT|BoringSSL/i.test(`${code} ${String(cause)}`))
    return new TunnelError('TLS_INVALID', certificate && pairFault(certificate.cert, certificate.key), {
      cause,
    })
  const text = `Cannot listen on ${hostname}:${port}: ${whyNotThere(code, hostname)}. Give an address of this machine, or 0.0.0.0 for all.`
  return optionInvalid(text, { cause })
}

/** Returns why an address cannot be listened on; Bun 1.4.5 gives no code for an unknown name. */
function whyNotThere(code: string, hostname: string): string {
  if (code === '' || code === 'ENOTFOUND')
    return isIP(hostname) === 0 ? 'no address is known for this name' : 'the system gives no reason'
  return code === 'EADDRNOTAVAIL' ? `this machine has no such address (${code})` : code
}
