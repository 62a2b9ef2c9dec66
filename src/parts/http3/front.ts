// The HTTP/3 front of a server: a UDP port with the number of its own port, and the certificates used there.
// Experimental, because the runtime's QUIC is.

import type { Certificate } from '../../certificates.ts'
import { TunnelError } from '../../errors.ts'
import type { ListenerTerms, PartListener } from '../../server/contracts/protocol.ts'
import { selfSigned } from '../../x509/self-signed.ts'
import { Http3Connection } from './connection.ts'
import { listenQuic, type QuicListening, type QuicSession, quicFault } from './quic.ts'

/** The number of names with known certificates. The oldest are forgotten, and their visitors use HTTP/2. */
const MAX_NAMES = 4_096
/** The time in seconds for which browsers remember that there is HTTP/3: a day. */
const ALT_SVC_SECONDS = 86_400
const RETRY_MS = 250

export class Http3Front implements PartListener {
  readonly #terms: ListenerTerms
  readonly #shown = new Map<string, Certificate>()
  #listening: QuicListening | undefined
  #retry: ReturnType<typeof setTimeout> | undefined

  constructor(terms: ListenerTerms) {
    this.#terms = terms
  }

  /** Opens the port. Rejects with `RUNTIME_UNSUPPORTED`, or with the system's error. */
  async open(): Promise<void> {
    const fault = await quicFault(selfSigned('localhost', Date.now()))
    if (fault !== undefined)
      throw new TunnelError(
        'RUNTIME_UNSUPPORTED',
        `Bun ${Bun.version} does not have the HTTP/3 that this server needs: ${fault}. Remove http3: visitors then use HTTP/2 and HTTP/1.1.`,
        { action: '' },
      )
    const { settings, port, share } = this.#terms
    const { hostname, tls, certificates, domains, inherited, publicUrl } = settings
    const { maxHttp2Streams, maxHeadBytes, maxHeaderCount, maxVisitors, headTimeoutMs } = share.limits
    const certificate = tls ?? (await certificates?.find(domains[0] ?? 'localhost'))
    try {
      this.#listening = await listenQuic(
        {
          hostname,
          port,
          certificate,
          maxStreams: maxHttp2Streams,
          maxHeadBytes,
          maxHeaderCount,
          maxConnections: maxVisitors,
          maxAddressConnections: 0,
          handshakeMs: headTimeoutMs,
        },
        session => this.#accept(session),
      )
    } catch (cause) {
      // The replaced program has the port until it begins to stop.
      if (inherited.length === 0) throw cause
      this.#retry = setTimeout(() => void this.open(), RETRY_MS)
      return
    }
    const seen = publicUrl === undefined ? port : Number(publicUrl.port || 443)
    this.#terms.announce(Buffer.from(`Alt-Svc: h3=":${seen}"; ma=${ALT_SVC_SECONDS}\r\n`))
  }

  show(name: string, certificate: Certificate): void {
    if (this.#listening === undefined || name === '' || this.#shown.get(name) === certificate) return
    this.#shown.delete(name)
    this.#shown.set(name, certificate)
    const [oldest] = this.#shown.keys()
    if (this.#shown.size > MAX_NAMES && oldest !== undefined) this.#shown.delete(oldest)
    this.#listening.show(name, certificate)
  }

  showDefault(certificate: Certificate): void {
    this.#listening?.show('*', certificate)
  }

  close(closeActive: boolean): void {
    clearTimeout(this.#retry)
    if (closeActive) this.#listening?.cut()
    else this.#listening?.stop()
  }

  #accept(session: QuicSession): void {
    // Its error comes with `closed`.
    session.onerror = () => {}
    session.closed.catch(() => {})
    session.onhandshake = ({ remote }) => {
      const { address } = remote
      const { share, entrance } = this.#terms
      const admitted = this.#terms.admit({ remoteAddress: address, terminate: () => session.destroy() })
      if (admitted === undefined) return session.destroy()
      share.entered(new Http3Connection(session, share, entrance, address, admitted))
    }
  }
}
