// The builders of `@ngrok/ngrok`: a session, and its endpoints. Each listener has a connection of its own.

import { forward, type Listener, listen } from './ngrok.ts'
import { type ForwardOptions, wantedOf } from './ngrok-options.ts'

/** Builds a session: `await new NgrokSessionBuilder().authtokenFromEnv().connect()`. */
export class NgrokSessionBuilder {
  readonly #options: { authtoken?: string; authtoken_from_env?: boolean; server_addr?: string } = {}

  authtoken(token: string): this {
    this.#options.authtoken = token
    return this
  }

  /** Uses the token of `TUNNEL_TOKEN`, which is also the default. */
  authtokenFromEnv(): this {
    this.#options.authtoken_from_env = true
    return this
  }

  serverAddr(server: string): this {
    this.#options.server_addr = server
    return this
  }

  /** Ignores the text. */
  metadata(_text: string): this {
    return this
  }

  async connect(): Promise<NgrokSession> {
    return new NgrokSession(this.#options)
  }
}

/** The listeners of one builder. */
export class NgrokSession {
  readonly #options: ForwardOptions
  readonly #listeners: Listener[] = []

  constructor(options: ForwardOptions) {
    this.#options = options
  }

  httpEndpoint(): EndpointBuilder {
    return this.#endpoint('http')
  }

  tcpEndpoint(): EndpointBuilder {
    return this.#endpoint('tcp')
  }

  tlsEndpoint(): EndpointBuilder {
    return this.#endpoint('tls')
  }

  /** Ends its listeners. */
  async close(): Promise<void> {
    await Promise.all(this.#listeners.splice(0).map(one => one.close()))
  }

  #endpoint(proto: string): EndpointBuilder {
    return new EndpointBuilder({ ...this.#options, proto }, one => this.#listeners.push(one))
  }
}

type Changeable = { -readonly [Name in keyof ForwardOptions]: ForwardOptions[Name] }

/** An endpoint of one kind. Options that are missing here have no meaning for `forward` either. */
export class EndpointBuilder {
  readonly #options: Changeable
  readonly #made: (listener: Listener) => void
  readonly #allow: string[] = []
  readonly #deny: string[] = []

  constructor(options: ForwardOptions, made: (listener: Listener) => void) {
    this.#options = { ...options }
    this.#made = made
  }

  domain(host: string): this {
    this.#options.domain = host
    return this
  }

  remoteAddr(address: string): this {
    this.#options.remote_addr = address
    return this
  }

  basicAuth(name: string, password: string): this {
    this.#options.basic_auth = `${name}:${password}`
    return this
  }

  allowCidr(range: string): this {
    this.#allow.push(range)
    return this
  }

  denyCidr(range: string): this {
    this.#deny.push(range)
    return this
  }

  proxyProto(version: string): this {
    this.#options.proxy_proto = version
    return this
  }

  verifyUpstreamTls(isWanted: boolean): this {
    this.#options.verify_upstream_tls = isWanted
    return this
  }

  metadata(text: string): this {
    this.#options.metadata = text
    return this
  }

  forwardsTo(text: string): this {
    this.#options.forwards_to = text
    return this
  }

  /** Listens. With HTTP, visitors get 502 `ORIGIN_REFUSED` until `listener.forward(addr)` names the app. */
  async listen(): Promise<Listener> {
    const options = this.#all()
    return this.#keep(await listen(wantedOf(options, undefined), options, options.proto === 'http'))
  }

  async listenAndForward(addr: number | string): Promise<Listener> {
    return this.#keep(await forward({ ...this.#all(), addr }))
  }

  #all(): ForwardOptions {
    return {
      ...this.#options,
      ip_restriction_allow_cidrs: this.#allow,
      ip_restriction_deny_cidrs: this.#deny,
    }
  }

  #keep(listener: Listener): Listener {
    this.#made(listener)
    return listener
  }
}
