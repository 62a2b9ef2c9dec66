// The HTTP/2 connections to one app. For the pool they replace a session: each of its streams is a channel on one of them.

import type { ErrorCode } from '../../errors.ts'
import type { RequestHead } from '../../http/head.ts'
import type { AppsTerms, StreamsApps } from '../../server/contracts/streams-context.ts'
import type { ByteStream, StreamHandler } from '../../session/byte-stream.ts'
import { Http2App } from './app.ts'
import { type Begun, Http2Channel } from './app-channel.ts'

/**
 * The maximum number of connections to one app: with 100 exchanges each, more than a tunnel may have at once, and
 * enough for an app that allows few.
 */
export const MAX_CONNECTIONS = 64

/** The handler until the connection is made, in the same turn. */
const NO_HANDLER: StreamHandler = { received() {}, writable() {}, ended() {}, reset() {} }

export class Http2Apps implements StreamsApps {
  readonly #options: AppsTerms
  readonly #connections = new Set<Http2App>()
  #tunnel = 0
  /** Whether the app accepts WebSockets, from its last settings. `undefined` while there is no connection. */
  #takesUpgrades: boolean | undefined

  constructor(options: AppsTerms) {
    this.#options = options
  }

  get isClosed(): boolean {
    return this.#options.session.isClosed
  }

  /** Opens a stream, as `Session.open`. It costs nothing until it has a request. */
  open(tunnel: number, handler: StreamHandler): ByteStream | undefined {
    if (this.isClosed) return undefined
    this.#tunnel = tunnel
    return new Http2Channel(this, handler)
  }

  /** Begins a request on a connection with room. Returns a code if it cannot. */
  request(channel: Http2Channel, head: RequestHead, isLast: boolean): Begun | ErrorCode {
    for (const connection of this.#connections)
      if (connection.hasRoom) return connection.request(channel, head, isLast)
    const connection = this.#connections.size < MAX_CONNECTIONS ? this.#connect() : undefined
    if (connection === undefined) return this.isClosed ? 'CLIENT_GONE' : 'TUNNEL_BUSY'
    return connection.request(channel, head, isLast)
  }

  /** Whether WebSockets use HTTP/1.1 on streams of the session, because the app accepts none over HTTP/2. */
  get sendsUpgradesApart(): boolean {
    return this.#takesUpgrades === false && this.#options.scheme === 'http'
  }

  /**
   * Begins a WebSocket, as `request`. While it is unknown whether the app accepts one, returns the connection, and
   * `upgradeKnown` follows.
   */
  upgrade(channel: Http2Channel, head: RequestHead): Begun | ErrorCode | Http2App | 'apart' {
    for (const connection of this.#connections) {
      if (!connection.isKnown || !connection.hasRoom) continue
      if (connection.takesUpgrades) return connection.request(channel, head, false)
      // Over TLS, the client and the app have agreed on HTTP/2.
      return this.sendsUpgradesApart ? 'apart' : 'ORIGIN_NO_WEBSOCKET'
    }
    for (const connection of this.#connections)
      if (!connection.isKnown && connection.hasRoom) return connection.decideLater(channel)
    const connection = this.#connections.size < MAX_CONNECTIONS ? this.#connect() : undefined
    if (connection === undefined) return this.isClosed ? 'CLIENT_GONE' : 'TUNNEL_BUSY'
    return connection.decideLater(channel)
  }

  #connect(): Http2App | undefined {
    const { session, server, scheme } = this.#options
    const stream = session.open(this.#tunnel, NO_HANDLER)
    if (stream === undefined) return undefined
    const left = (one: Http2App) => {
      this.#connections.delete(one)
      // The next connection may reach another program.
      if (this.#connections.size === 0) this.#takesUpgrades = undefined
    }
    const known = (takesUpgrades: boolean) => {
      this.#takesUpgrades = takesUpgrades
    }
    const connection = new Http2App({ server, scheme, left, known }, stream)
    this.#connections.add(connection)
    return connection
  }
}
