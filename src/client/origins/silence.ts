// Explains why an app closes the connection without a response, or with a TLS alert: it may expect TLS. OpenSSL sends
// nothing in response to plain HTTP.

import { errorOf, TunnelError } from '../../errors.ts'
import type { Address, Dial, Socket, SocketHandler } from '../../socket.ts'
import { speaksTls } from './tls-check.ts'

/** The longest wait for the handshake that proves TLS, in milliseconds. */
const PROBE_TIMEOUT_MS = 500
/** The time in milliseconds for which the result is kept, so that an app that crashes at each request is not probed each time. */
const MEMORY_MS = 10_000
/** The time in milliseconds for which an app that responded in plain HTTP is not suspected of TLS. */
const TRUST_MS = 60_000
/** The first byte of a TLS record with an alert (RFC 8446 section 5.1). No HTTP response begins with it. */
const ALERT = 0x15

/** Finds out why an app sent nothing. */
export class Silence {
  readonly #address: Address
  readonly #dial: Dial
  /** The error for an app that speaks TLS. */
  readonly error: TunnelError
  #verdict: Promise<boolean> | undefined
  #askedAt = 0
  #answeredAt = Number.NEGATIVE_INFINITY

  /** Makes a check. `address` is without TLS; `secureUrl` is the URL with it. */
  constructor(address: Address, dial: Dial, secureUrl: string) {
    this.#address = address
    this.#dial = dial
    this.error = new TunnelError(
      'ORIGIN_SCHEME',
      `The app on port ${address.port} speaks TLS: use ${secureUrl}`,
    )
  }

  /** Watches a new connection: `handler` gets its events, and `ORIGIN_SCHEME` at its end if that is the reason. */
  watch(handler: SocketHandler): SilentConnection {
    return new SilentConnection(handler, this)
  }

  /** Called when the app responded on one of the connections, and not with an alert. */
  answered(): void {
    this.#answeredAt = performance.now()
  }

  /** Returns why a connection ended without a response. `undefined` if that is unknown. */
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

/** A connection of which the app's first byte has not arrived. */
class SilentConnection {
  readonly handler: SocketHandler
  readonly #silence: Silence
  #socket: Socket | undefined
  #isSilent = true
  /** The events that wait for the reason why the app sent nothing. */
  #waiting: (() => void)[] | undefined
  #reason: Error | undefined
  #isClosed = false

  constructor(inner: SocketHandler, silence: Silence) {
    this.#silence = silence
    this.handler = {
      received: bytes => {
        if (this.#isSilent) {
          this.#isSilent = false
          if (bytes[0] === ALERT) return this.#explain(silence.error)
          silence.answered()
        }
        if (this.#reason === undefined) inner.received(bytes)
      },
      drained: () => inner.drained(),
      ...(inner.spliceable !== undefined && { spliceable: () => inner.spliceable?.() }),
      ended: () => this.#afterSilence(() => inner.ended()),
      closed: error => {
        this.#isClosed = true
        const tell = () => inner.closed(this.#reason ?? error)
        // This side cut the connection, so it expects no response.
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

  /** Calls the handler, whose errors no socket catches here. */
  #tell(waiting: readonly (() => void)[]): void {
    try {
      for (const one of waiting) one()
    } catch (error) {
      this.#explain(errorOf(error))
    }
  }
}
