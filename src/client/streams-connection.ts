// One carrier to the server and the session on it: registers the tunnel, joins streams, reports exchanges.

import { deferred } from '../deferred.ts'
import { type ErrorCode, TunnelError } from '../errors.ts'
import { eventLoop } from '../event-loop.ts'
import type { Carrier, CarrierHandler } from '../session/carrier.ts'
import { Session, type SessionHandler } from '../session/session.ts'
import { encodeControl, parseServerMessage, type ServerMessage } from '../wire/control.ts'
import type { Connection, ConnectionEvents, Registration } from './connection.ts'
import { join } from './join.ts'
import { Links } from './links.ts'
import { bounded } from './origins/bounded.ts'
import type { ClientSettings } from './settings.ts'

const LEAVE_TIMEOUT_MS = 2_000

export class StreamsConnection implements Connection {
  readonly wire = 'streams'
  readonly #settings: ClientSettings
  readonly #events: ConnectionEvents
  readonly #carrier: Carrier
  readonly #session: Session
  readonly #links: Links
  #registering: { resolve(granted: Registration): void; reject(error: TunnelError): void } | undefined
  #tunnel = -1
  /** Why the server said that it leaves. */
  #leavingCode: ErrorCode | undefined
  #closedWith: TunnelError | undefined
  readonly #carrierClosed = deferred()

  constructor(settings: ClientSettings, events: ConnectionEvents, carrier: Carrier) {
    this.#settings = settings
    this.#carrier = carrier
    this.#events = events
    const { maxStreams, maxLinks } = settings.limits
    const origin = bounded(settings.origin, maxStreams)
    const handler: SessionHandler = {
      opened: stream =>
        stream.tunnel === this.#tunnel
          ? join(stream, origin, error => events.error(error))
          : 'STREAM_UNKNOWN',
      control: json => this.#control(json),
      leaving: code => {
        this.#leavingCode = code
        events.leaving(code)
      },
      linkWanted: () => this.#links.want(),
      closed: (code, error) => this.#closed(code, error),
    }
    this.#session = new Session(carrier, handler, {
      role: 'client',
      scheduler: eventLoop,
      ...settings.limits,
      pingIntervalMs: settings.pingIntervalMs,
      deadAfterMs: settings.deadAfterMs,
    })
    this.#links = new Links(this.#session, settings.server, settings.agent === undefined ? maxLinks : 0)
  }

  /** What the carrier's events go to. */
  get carrierHandler(): CarrierHandler {
    const session = this.#session.carrierHandler
    return {
      received: bytes => session.received(bytes),
      drained: () => session.drained(),
      closed: error => {
        session.closed(error)
        this.#carrierClosed.resolve()
      },
    }
  }

  register(name: string, resume: string | undefined): Promise<Registration> {
    if (this.#closedWith !== undefined) return Promise.reject(this.#closedWith)
    const { promise, resolve, reject } = deferred<Registration>()
    this.#registering = { resolve, reject }
    const { rewrite } = this.#settings
    this.#session.sendControl(
      encodeControl({
        type: 'register',
        ref: 1,
        kind: 'http',
        name,
        ...(resume !== undefined && { resume }),
        ...(rewrite !== undefined && { hostHeader: rewrite.host, origin: rewrite.origin }),
      }),
    )
    return promise
  }

  watch(on: boolean): void {
    this.#session.sendControl(encodeControl({ type: 'watch', on }))
  }

  checkAlive(withinMs: number): void {
    const cancel = eventLoop.after(withinMs, () => this.#session.terminate('CARRIER_DEAD'))
    this.#session.ping(cancel)
  }

  async leave(): Promise<void> {
    if (this.#tunnel !== -1)
      this.#session.sendControl(encodeControl({ type: 'release', tunnel: this.#tunnel }))
    this.#session.close('CANCELLED')
    // The carrier closes when the server has read this. A server that is gone is not waited for.
    const cancel = eventLoop.after(LEAVE_TIMEOUT_MS, this.#carrierClosed.resolve)
    await this.#carrierClosed.promise
    cancel()
  }

  terminate(): void {
    this.#session.terminate('CARRIER_LOST')
    // A session that closed before left its carrier to the other side's manners.
    this.#carrier.terminate()
  }

  #control(json: Uint8Array): void {
    const message = parseServerMessage(json)
    if (message === undefined) this.#session.close('PROTOCOL_ERROR')
    else if (message !== 'unknown') this.#handle(message)
  }

  #handle(message: ServerMessage): void {
    switch (message.type) {
      case 'link-wanted':
        return this.#links.want()
      case 'granted':
        this.#tunnel = message.tunnel
        this.#links.allow(message.linkSecret)
        return this.#registering?.resolve(message)
      case 'refused':
        return this.#registering?.reject(new TunnelError(message.code, message.message))
      case 'request':
        return this.#events.request(message)
      case 'response':
        return this.#events.response(message)
    }
  }

  #closed(code: ErrorCode, cause: Error | undefined): void {
    // That the server was leaving says more than that the carrier closed then.
    const reason = code === 'CARRIER_LOST' ? (this.#leavingCode ?? code) : code
    const error = new TunnelError(reason, undefined, { cause })
    this.#closedWith = error
    this.#links.close()
    this.#registering?.reject(error)
    this.#events.closed(error)
  }
}
