// One tunnel of a client, from what it asks for to what it was granted last.

import { deferred } from '../deferred.ts'
import { TunnelError } from '../errors.ts'
import { eventLoop } from '../event-loop.ts'
import { alternativeNames } from '../names.ts'
import type { TunnelKind } from '../wire/control.ts'
import type { Connection, Registration } from './connection.ts'
import { HealthCheck } from './health.ts'
import type { TunnelSettings } from './settings.ts'
import type { Tunnel } from './tunnel.ts'

/** What a tunnel needs of its client. */
export interface TunnelOwner {
  /** It is not wanted any more. */
  closed(tunnel: OwnTunnel): void
  /** Its health checks came to another verdict. */
  healthChanged(tunnel: OwnTunnel, isHealthy: boolean, error?: TunnelError): void
}

export class OwnTunnel implements Tunnel {
  readonly settings: TunnelSettings
  /** Resolves with the first grant; rejects with the refusal that came instead. */
  readonly #ready = deferred()
  readonly #owner: TunnelOwner
  readonly #health: HealthCheck | undefined
  /** What granted it last. */
  #connection: Connection | undefined
  /** The last grant, by whatever connection. */
  registration: Registration | undefined
  /** Whether the connection there is now has granted it. */
  isRegistered = false
  isClosed = false

  constructor(settings: TunnelSettings, owner: TunnelOwner) {
    this.settings = settings
    this.#owner = owner
    this.#health =
      settings.health &&
      new HealthCheck(settings.origin, settings.health, eventLoop, (isHealthy, error) => {
        this.#tellHealth()
        owner.healthChanged(this, isHealthy, error)
      })
    // Whoever waits hears of it; nobody need wait.
    this.#ready.promise.catch(() => {})
  }

  get ready(): Promise<void> {
    return this.#ready.promise
  }

  get kind(): TunnelKind {
    return this.settings.kind
  }

  get name(): string {
    return this.granted.name
  }

  get url(): string {
    return this.granted.url
  }

  get port(): number | undefined {
    return this.granted.port
  }

  get droppedDatagrams(): number {
    return this.settings.origin.droppedDatagrams ?? 0
  }

  /** Throws `STATE_INVALID` before there is one. */
  get granted(): Registration {
    if (this.registration !== undefined) return this.registration
    throw new TunnelError('STATE_INVALID', 'The client is not registered yet.')
  }

  /** For messages: before there is a grant too. */
  get label(): string {
    const { kind, name, port, origin } = this.settings
    return `${kind} ${this.registration?.name ?? name ?? port ?? ''} → ${origin.label}`
  }

  /** Asks for what it had, else for what it wishes, else for something like it. Rejects with the refusal. */
  async register(connection: Connection): Promise<void> {
    const { settings } = this
    const { name = settings.name, port = settings.port, resume } = this.registration ?? {}
    let registration: Registration
    try {
      registration = await connection.register(settings, { name, port, resume })
    } catch (error) {
      registration = await this.#registerElse(connection, error)
    }
    this.registration = registration
    this.isRegistered = true
    this.#connection = connection
    // Closed meanwhile: nobody knows of what was granted.
    if (this.isClosed) return connection.release(registration)
    this.#ready.resolve()
    // The server keeps what it was told last, and may be another one now.
    this.#tellHealth()
    this.#health?.start()
  }

  /** Its origin is asked no more, until it is granted again. */
  rest(): void {
    this.#health?.stop()
    this.#connection = undefined
  }

  #tellHealth(): void {
    if (this.#health !== undefined && this.isRegistered)
      this.#connection?.health(this.granted, this.#health.isHealthy)
  }

  /** It will not be granted: whoever waits for it learns why. */
  refuse(error: unknown): void {
    this.#ready.reject(error)
  }

  async close(): Promise<void> {
    if (this.isClosed) return
    this.isClosed = true
    this.rest()
    this.#ready.reject(new TunnelError('CANCELLED', 'The tunnel was closed before it was granted.'))
    this.#owner.closed(this)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  async #registerElse(connection: Connection, error: unknown): Promise<Registration> {
    const { settings } = this
    const { name = settings.name } = this.registration ?? {}
    // A pool is about one name: clients that ask for it must not end up under several.
    const isPooled = settings.pool !== undefined
    if (isCode(error, 'NAME_TAKEN') && name !== undefined && settings.kind === 'http' && !isPooled) {
      for (const alternative of alternativeNames(name)) {
        try {
          return await connection.register(settings, {
            name: alternative,
            port: undefined,
            resume: undefined,
          })
        } catch (another) {
          // A token for one name alone does not open the others: that the one is taken is what to say.
          if (isCode(another, 'NOT_ALLOWED')) throw error
          if (!isCode(another, 'NAME_TAKEN')) throw another
        }
      }
    }
    // The port that it had is gone, but any will do.
    if (
      isCode(error, 'PORT_TAKEN') &&
      settings.port === undefined &&
      !isPooled &&
      this.registration !== undefined
    )
      return connection.register(settings, { name: undefined, port: undefined, resume: undefined })
    throw error
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof TunnelError && error.code === code
}
