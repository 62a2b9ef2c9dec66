// The HTTP/3 front of a server: a UDP port beside its own, and the certificates shown there. Experimental, as the runtime's QUIC is.

import type { Certificate } from '../../certificates.ts'
import { TunnelError } from '../../errors.ts'
import { listenQuic, type QuicListening, type QuicSession, quicFault } from '../../sockets/bun-quic.ts'
import { selfSigned } from '../../x509/self-signed.ts'
import type { Admission } from '../admission.ts'
import type { HttpFront } from './http.ts'
import { Http3Connection } from './http3-connection.ts'
import type { Entrance } from './visitor-hop.ts'

/** Names whose certificates are known here; those of the oldest are forgotten, and their visitors come by HTTP/2. */
const MAX_NAMES = 4_096

export interface Http3Options {
  readonly hostname: string
  readonly port: number
  /** For names that have no other. */
  readonly certificate: Certificate | undefined
}

export class Http3Front {
  readonly #front: HttpFront
  readonly #entrance: Entrance
  readonly #admission: Admission
  readonly #shown = new Map<string, Certificate>()
  #listening: QuicListening | undefined

  constructor(front: HttpFront, entrance: Entrance, admission: Admission) {
    this.#front = front
    this.#entrance = entrance
    this.#admission = admission
  }

  /** Rejects with `HTTP3_UNSUPPORTED`, or with what the system says of the port. */
  async open({ hostname, port, certificate }: Http3Options): Promise<void> {
    const fault = await quicFault(selfSigned('localhost', Date.now()))
    if (fault !== undefined)
      throw new TunnelError(
        'HTTP3_UNSUPPORTED',
        `Bun ${Bun.version} does not carry HTTP/3 as this server needs it: ${fault}. Leave http3 out.`,
      )
    const { maxHttp2Streams, maxHeadBytes, maxHeaderCount, maxVisitors, headTimeoutMs } = this.#front.limits
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
  }

  /** New handshakes for `name` show this certificate: a visitor came by TCP, and may come here next. */
  show(name: string, certificate: Certificate): void {
    if (name === '' || this.#shown.get(name) === certificate) return
    this.#shown.delete(name)
    this.#shown.set(name, certificate)
    const [oldest] = this.#shown.keys()
    if (this.#shown.size > MAX_NAMES && oldest !== undefined) this.#shown.delete(oldest)
    this.#listening?.show(name, certificate)
  }

  /** For names that have no other. */
  showDefault(certificate: Certificate): void {
    this.#listening?.show('*', certificate)
  }

  close(closeActive: boolean): void {
    if (closeActive) this.#listening?.cut()
    else this.#listening?.stop()
  }

  #accept(session: QuicSession): void {
    // What is wrong with it comes with `closed`.
    session.onerror = () => {}
    session.closed.catch(() => {})
    session.onhandshake = ({ remote }) => {
      const { address } = remote
      const visitor = { remoteAddress: address, terminate: () => session.destroy() }
      const seat = this.#admission.admit(visitor, true)
      if (seat === undefined) return session.destroy()
      const connection = new Http3Connection(session, this.#front, this.#entrance, address, seat)
      this.#front.entered(connection)
    }
  }
}
