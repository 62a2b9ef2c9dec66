// One tunnel of a client, from its options to its last grant.

import { deferred } from '../../deferred.ts'
import { optionInvalid, TunnelError } from '../../errors.ts'
import { eventLoop } from '../../event-loop.ts'
import type { LinkOptions } from '../../guard.ts'
import { alternativeNames, isValidSubdomain } from '../../names.ts'
import { makeLink } from '../../own-guard.ts'
import type { Wishes } from '../../wire/control.ts'
import type { TunnelKind } from '../../wire/tunnel-kind.ts'
import type { Connection, Registration } from '../carriers/connection.ts'
import type { TunnelPart } from '../contracts/part.ts'
import type { Exchange, WaitOptions } from '../contracts/watching.ts'
import type { FollowedTunnel } from '../parts.ts'
import { GuardKeeping } from './guard-keeping.ts'
import { HealthCheck } from './health.ts'
import { type Holding, type ResumeFiles, stateUnwritable } from './resume-files.ts'
import type { Tunnel } from './tunnel.ts'
import type { TunnelSettings } from './tunnel-settings.ts'
import type { WantedTunnels } from './wanted-tunnels.ts'

/**
 * The codes that end reconnecting. SERVER_REFUSED is not among them: some proxies return 404 while the server behind
 * them restarts.
 */
const REFUSED_FOR_GOOD: ReadonlySet<string> = new Set([
  'TOKEN_REFUSED',
  'TOKEN_EXPIRED',
  'NAME_RESERVED',
  'NAME_INVALID',
  'OPTION_INVALID',
  'NOT_ALLOWED',
  'KIND_REFUSED',
  'GUARD_UNAVAILABLE',
  'FEATURE_UNSUPPORTED',
  // Repeating a wrong password locks accounts.
  'PROXY_AUTH_REFUSED',
])

export class OwnTunnel implements Tunnel {
  readonly settings: TunnelSettings
  readonly parts: readonly TunnelPart[]
  /** The settings, with parts before the origins. */
  readonly #wrapped: TunnelSettings
  /** Resolves with the first grant. Rejects if the tunnel is refused instead. */
  readonly #ready = deferred()
  readonly #owner: WantedTunnels
  readonly #health: HealthCheck | undefined
  /** The stored guard, whose sessions and links outlive the process. */
  readonly #keeping: GuardKeeping | undefined
  /** The connection that granted the tunnel last. */
  #connection: Connection | undefined
  /** The name and secret that a killed client left, until the server has responded. An attempt may end without a response. */
  #left: { readonly holding: Holding; readonly resume: string } | undefined
  /** The last grant, on any connection. */
  registration: Registration | undefined
  isRegistered = false
  isClosed = false
  readonly #over = new AbortController()
  readonly #watched = { tunnel: () => this.registration?.name, over: this.#over.signal }

  constructor({ settings, parts, wrapped }: FollowedTunnel, owner: WantedTunnels) {
    this.settings = settings
    this.parts = parts
    this.#wrapped = wrapped
    this.#owner = owner
    if (settings.health?.isHttp2 === true && owner.parts.loadHttp2Probing === undefined)
      throw optionInvalid('This client has no health checks of apps that speak HTTP/2.')
    this.#health =
      settings.health &&
      new HealthCheck(
        settings.origin,
        settings.health,
        eventLoop,
        (isHealthy, error) => {
          this.#tellHealth()
          owner.healthChanged(this, isHealthy, error)
        },
        owner.parts.loadHttp2Probing,
      )
    const { guard, kind, name, isNamed } = settings
    if (
      guard !== undefined &&
      owner.guards !== undefined &&
      kind === 'http' &&
      isNamed &&
      isValidSubdomain(name ?? '')
    )
      this.#keeping = new GuardKeeping(guard, owner.guards, kind, name ?? '', {
        revoked: () => void this.#sendGuard(),
        failed: error => owner.stateFailed(error),
      })
    settings.useDial?.(count => {
      if (this.isRegistered) this.#connection?.dial?.(this.granted, count)
    })
    // Waiting callers get the rejection. Without any, it would be an unhandled rejection.
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

  /** The last grant. Throws `STATE_INVALID` before the first. */
  get granted(): Registration {
    if (this.registration !== undefined) return this.registration
    throw new TunnelError('STATE_INVALID', 'The client is not registered yet.')
  }

  link(options?: LinkOptions): { readonly url: string; readonly id: string } {
    const { guard } = this.settings
    if (guard?.hasLinks) return makeLink(this.url, guard.key, options)
    throw new TunnelError('STATE_INVALID', 'The guard of this tunnel has no links.')
  }

  get exchanges(): AsyncIterable<Exchange> {
    return this.#owner.parts.watch(this.#watched).exchanges
  }

  async waitFor(filter: string, options?: WaitOptions): Promise<Exchange> {
    return await this.#owner.parts.watch(this.#watched).waitFor(filter, options)
  }

  async revokeLink(id: string): Promise<void> {
    const { guard } = this.settings
    if (!guard?.hasLinks) throw new TunnelError('STATE_INVALID', 'The guard of this tunnel has no links.')
    guard.revoke(id)
    await this.#keeping?.revoked()
    await this.#sendGuard()
  }

  async #sendGuard(): Promise<void> {
    // No message is needed while the server is away, because the next registration has the state.
    if (this.isRegistered && this.registration !== undefined)
      await this.#connection?.guard?.(this.registration, this.settings)
  }

  /** The name of the tunnel for messages, also before the grant. */
  get label(): string {
    const { kind, name, port, origin } = this.settings
    return `${kind} ${this.registration?.name ?? name ?? port ?? ''} → ${origin.label}`
  }

  /** Requests the name that it had, otherwise the wished one, otherwise a similar one. Rejects with the refusal. */
  async register(connection: Connection): Promise<void> {
    const { settings } = this
    const { name = settings.name, port = settings.port, resume } = this.registration ?? {}
    await this.#keeping?.begin()
    let registration: Registration
    try {
      registration = await this.#ask(connection, name, port, resume)
    } catch (error) {
      registration = await this.#registerElse(connection, error)
    }
    if (settings.isExact === true && registration.name !== settings.name) {
      connection.release(registration)
      throw new TunnelError('NAME_TAKEN', `The server has ${registration.name} instead of ${settings.name}.`)
    }
    const isOldSecret = registration.resume === this.registration?.resume
    this.registration = registration
    this.isRegistered = true
    this.#connection = connection
    if (this.#owner.resumes !== undefined && !isOldSecret) await this.#keepResume(registration)
    // Closed during the request, so the caller does not know about the grant.
    if (this.isClosed) {
      void this.dropResume()
      return connection.release(registration)
    }
    await this.#keeping?.granted(registration.name, registration.url)
    this.#ready.resolve()
    // The tunnel was revoked or lost while the secret was written.
    if (!this.isRegistered || this.#connection !== connection) return
    // The server keeps only the last report, and may be another server now.
    this.#tellHealth()
    this.#health?.start()
  }

  /** Stops the health checks until the tunnel is granted again. */
  rest(): void {
    this.#health?.stop()
    this.#keeping?.rest()
    this.#connection = undefined
  }

  #tellHealth(): void {
    if (this.#health !== undefined && this.isRegistered)
      this.#connection?.health(this.granted, this.#health.isHealthy)
  }

  /** Whether requesting again cannot help. */
  isRefusedForGood({ code }: TunnelError): boolean {
    return REFUSED_FOR_GOOD.has(code) || (this.settings.isExact === true && code === 'NAME_TAKEN')
  }

  /** Removes the stored secret of a released tunnel. */
  async dropResume(): Promise<void> {
    const holding = this.registration && this.#holdingOf(this.registration)
    if (holding !== undefined) await this.#owner.resumes?.drop(holding)
  }

  /** Rejects waiting callers, because the tunnel will not be granted. */
  refuse(error: unknown): void {
    this.#ready.reject(error)
  }

  async close(): Promise<void> {
    if (this.isClosed) return
    this.isClosed = true
    this.#over.abort()
    this.rest()
    this.#ready.reject(new TunnelError('CANCELLED', 'The tunnel was closed before it was granted.'))
    this.#owner.closed(this)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  /** Registers with the secret of an earlier grant: of this run, or of a killed one. */
  async #ask(
    connection: Connection,
    name: string | undefined,
    port: number | undefined,
    resume: string | undefined,
  ): Promise<Registration> {
    const { resumes } = this.#owner
    if (resume !== undefined || resumes === undefined)
      return connection.register(this.#wrapped, { name, port, resume, ...this.#wishes })
    const holding = this.#holdingOf({ name, port })
    const left = holding && (await this.#leftFor(holding, resumes))
    try {
      return await connection.register(this.#wrapped, { name, port, resume: left, ...this.#wishes })
    } catch (error) {
      if (holding !== undefined && (isCode(error, 'NAME_TAKEN') || isCode(error, 'PORT_TAKEN'))) {
        this.#left = undefined
        await resumes.drop(holding)
      }
      throw error
    }
  }

  get #wishes(): { readonly wishes?: Wishes } {
    const wishes: Wishes = Object.assign({}, this.settings.wishes, ...this.parts.map(part => part.wishes?.()))
    return Object.keys(wishes).length > 0 ? { wishes } : {}
  }

  async #leftFor(holding: Holding, resumes: ResumeFiles): Promise<string | undefined> {
    if (this.#left?.holding.name === holding.name) return this.#left.resume
    const resume = await resumes.take(holding)
    if (resume !== undefined) this.#left = { holding, resume }
    return resume
  }

  async #keepResume({ name, port, resume }: Registration): Promise<void> {
    const holding = this.#holdingOf({ name, port })
    if (holding === undefined || resume === undefined) return
    try {
      await this.#owner.resumes?.keep(holding, resume)
    } catch (cause) {
      this.#owner.stateFailed(stateUnwritable(cause))
    }
  }

  /**
   * Returns the name that the next start also requests. `undefined` for a made-up name, a port that the server chose, and a pool.
   */
  #holdingOf(what: {
    readonly name?: string | undefined
    readonly port?: number | undefined
  }): Holding | undefined {
    const { kind, isNamed = false, port, pool, registersAs, name: own = '' } = this.settings
    if (pool !== undefined || registersAs === 'connect') return undefined
    if (registersAs === 'private') return { kind: registersAs, name: own.replace(':', '-') }
    if (kind === 'tcp' || kind === 'udp')
      return port === undefined || what.port !== port ? undefined : { kind, name: `${port}` }
    // The name becomes part of a path, and the server granted it.
    const { name = '' } = what
    return isNamed && isValidSubdomain(name) ? { kind, name } : undefined
  }

  async #registerElse(connection: Connection, error: unknown): Promise<Registration> {
    const { settings } = this
    const { name = settings.name } = this.registration ?? {}
    // All clients of a pool must get the same name.
    const isPooled = settings.pool !== undefined
    const mayBeAnother = settings.kind === 'http' && !isPooled && settings.isExact !== true
    if (isCode(error, 'NAME_TAKEN') && name !== undefined && mayBeAnother) {
      for (const alternative of alternativeNames(name)) {
        try {
          return await this.#ask(connection, alternative, undefined, undefined)
        } catch (another) {
          // A token for a single name does not allow others. The error to report is that the name is in use.
          if (isCode(another, 'NOT_ALLOWED')) throw error
          if (!isCode(another, 'NAME_TAKEN')) throw another
        }
      }
    }
    // The earlier port is in use, but any other port will do.
    if (
      isCode(error, 'PORT_TAKEN') &&
      settings.port === undefined &&
      !isPooled &&
      this.registration !== undefined
    )
      return connection.register(this.#wrapped, { name: undefined, port: undefined, resume: undefined })
    // A range of ports consists of several tunnels, so the message names this one's port.
    if (isCode(error, 'PORT_TAKEN') && settings.port !== undefined)
      throw new TunnelError('PORT_TAKEN', `The public port ${settings.port} is in use on the server.`, {
        cause: error,
      })
    throw error
  }
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof TunnelError && error.code === code
}
