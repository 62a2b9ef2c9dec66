// An app that closes the connection without a byte of an answer, or with a TLS alert, may expect TLS: OpenSSL says nothing
// to a request in plain HTTP.

import { TunnelError } from '../../errors.ts'
import type { Address, Dial, Socket, SocketHandler } from '../../socket.ts'
import { speaksTls } from './tls-check.ts'

/** Longest wait for the handshake that shows it. */
const PROBE_TIMEOUT_MS = 500
/** An app that crashes at each request is not asked at each. */
const MEMORY_MS = 10_000
/** For so long an app that answered in plain HTTP is not suspected of TLS. */
const TRUST_MS = 60_000
/** The first byte of a TLS record that holds an alert (RFC 8446 section 5.1). No answer in HTTP begins with it. */
const ALERT = 0x15

/** Finds out for one app why it said nothing. */
export class Silence {
  readonly #address: Address
  readonly #dial: Dial
  /** It does. */
  readonly error: TunnelError
  #verdict: Promise<boolean> | undefined
  #askedAt = 0
  #answeredAt = Number.NEGATIVE_INFINITY

  /** `address` is without TLS; `secureUrl` is what to use if it has to be with it. */
  constructor(address: Address, dial: Dial, secureUrl: string) {
    this.#address = address
    this.#dial = dial
    this.error = new TunnelError(
      'ORIGIN_SCHEME',
      `The app on port ${address.port} speaks TLS: use ${secureUrl}`,
    )
  }

  /** For a new connection: `handler` gets its events, and `ORIGIN_SCHEME` as its end where that explains it. */
  watch(handler: SocketHandler): SilentConnection {
    return new SilentConnection(handler, this)
  }

  /** The app answers on one of the connections, and not with an alert. */
  answered(): void {
    this.#answeredAt = performance.now()
  }

  /** Why a connection ended without an answer; `undefined`: not known. */
  async reason(): Promise<TunnelError | undefined> {
    const now = performance.now()
    if (now - this.#answeredAt < TRUST_MS) return undefined
    if (this.#verdict === undefined || now - this.#askedAt > MEMORY_MS) {
      this.#askedAt = now
      this.#verdict = speaksTls(this.#address, this.#dial, PROBE_TIMEOUT_MS)
    }
    return (await this.#verdict) ? this.error : undefined
  }
}

/** One connection, until the first byte of the app. */
class SilentConnection {
  readonly handler: SocketHandler
  readonly #silence: Silence
  #socket: Socket | undefined
  #isSilent = true
  /** What the handler gets when it is known why the app said nothing. */
  #waiting: (() => void)[] | undefined
  #reason: Error | undefined
  #isClosed = false

  constructor(inner: SocketHandler, silence: Silence) {
    this.#silence = silence
    this.handler = {
      received: (bytes, isScratch) => {
        if (this.#isSilent) {
          this.#isSilent = false
          if (bytes[0] === ALERT) return this.#explain(silence.error)
          silence.answered()
        }
        if (this.#reason === undefined) inner.received(bytes, isScratch)
      },
      takesScratch: () => inner.takesScratch?.() === true,
      drained: () => inner.drained(),
      ...(inner.spliceable !== undefined && { spliceable: () => inner.spliceable?.() }),
      ended: () => this.#afterSilence(() => inner.ended()),
      closed: error => {
        this.#isClosed = true
        const tell = () => inner.closed(this.#reason ?? error)
        // Cut by this side, which waits for no answer.
        const isOwn = error !== undefined && 'code' in error && error.code === 'ECONNABORTED'
        if (isOwn && this.#waiting === undefined) tell()
        else this.#afterSilence(tell)
      },
    }
  }

  opened(socket: Socket): Socket {
    this.#socket = socket
    if (this.#reason !== undefined) socket.terminate()
    return socket
  }

  /** Its end is reported with the reason. */
  #explain(reason: Error): void {
    this.#reason = reason
    this.#socket?.terminate()
  }

  #afterSilence(tell: () => void): void {
    // A FIN that is reported before the reason would look like a clean end.
    if (this.#reason !== undefined && !this.#isClosed) return
    if (!this.#isSilent) return tell()
    if (this.#waiting !== undefined) {
      this.#waiting.push(tell)
      return
    }
    this.#waiting = [tell]
    void this.#silence.reason().then(reason => {
      this.#isSilent = false
      const waiting = this.#waiting ?? []
      this.#waiting = undefined
      if (reason === undefined) return this.#tell(waiting)
      this.#explain(reason)
      if (this.#isClosed) this.#tell(waiting.slice(-1))
    })
  }

  /** No socket catches what the handler throws here. */
  #tell(waiting: readonly (() => void)[]): void {
    try {
      for (const one of waiting) one()
    } catch (error) {
      this.#explain(error instanceof Error ? error : new Error(String(error)))
    }
  }
}
