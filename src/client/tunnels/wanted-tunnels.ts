// The tunnels that a client wants: requested on each connection, removed when the server refuses them for good.

import { TunnelError } from '../../errors.ts'
import type { Connection } from '../carriers/connection.ts'
import { spelled } from '../carriers/server-address.ts'
import type { TunnelClientEvents } from '../options.ts'
import type { Parts } from '../parts.ts'
import type { ClientSettings } from '../settings.ts'
import { GuardFiles } from './guard-files.ts'
import { OwnTunnel } from './own-tunnel.ts'
import { ResumeFiles } from './resume-files.ts'
import type { TunnelSettings } from './tunnel-settings.ts'

/** The time in milliseconds after which a tunnel requests again a name or port that it lost to another client. */
const ASK_AGAIN_MS = 5_000

export interface WantedOwner {
  emit<Name extends 'registered' | 'health' | 'error'>(event: Name, payload: TunnelClientEvents[Name]): void
  connection(): Connection | undefined
  /** Whether no tunnel is requested any more. */
  isClosing(): boolean
}

export class WantedTunnels {
  readonly #owner: WantedOwner
  readonly parts: Parts
  /** The secrets that outlive the process. `undefined` if none should. */
  readonly resumes: ResumeFiles | undefined
  readonly guards: GuardFiles | undefined
  readonly #all = new Set<OwnTunnel>()
  /** The tunnel that the client's options describe. */
  readonly #own: OwnTunnel | undefined
  #askAgain: ReturnType<typeof setTimeout> | undefined
  #hasStateFailed = false

  constructor(settings: ClientSettings, parts: Parts, owner: WantedOwner) {
    this.#owner = owner
    this.parts = parts
    const { stateFolder, server, tunnel } = settings
    if (stateFolder !== undefined) {
      this.resumes = new ResumeFiles(stateFolder, spelled(server))
      this.guards = new GuardFiles(stateFolder, spelled(server))
    }
    this.#own = tunnel && this.want(tunnel)
  }

  /** All tunnels, the client's own first. */
  get all(): readonly OwnTunnel[] {
    return [...this.#all]
  }

  get size(): number {
    return this.#all.size
  }

  has(tunnel: OwnTunnel): boolean {
    return this.#all.has(tunnel)
  }

  /** The first tunnel that was granted. Throws `STATE_INVALID` before there is one. */
  get first(): OwnTunnel {
    for (const tunnel of this.#all) if (tunnel.registration !== undefined) return tunnel
    throw new TunnelError('STATE_INVALID', 'The client is not registered yet.')
  }

  want(settings: TunnelSettings): OwnTunnel {
    const tunnel = new OwnTunnel(this.parts.follow(settings), this)
    this.#all.add(tunnel)
    return tunnel
  }

  drop(tunnel: OwnTunnel): void {
    this.#all.delete(tunnel)
    for (const part of tunnel.parts) part.dropped?.()
  }

  /** Registers all tunnels. Rejects if the client's own is refused the first time, or none is granted. */
  async registerAll(connection: Connection): Promise<void> {
    this.disconnected()
    const asked = this.all
    const refusals = await Promise.all(asked.map(tunnel => this.register(tunnel, connection)))
    const [first] = refusals.filter(refusal => refusal !== undefined)
    if (first === undefined) return
    const ownRefusal = this.#own && refusals[asked.indexOf(this.#own)]
    for (const [index, tunnel] of asked.entries())
      if (refusals[index] !== undefined && tunnel.registration === undefined) tunnel.refuse(refusals[index])
    if (ownRefusal !== undefined && this.#own?.registration === undefined) throw ownRefusal
    if (!asked.some(({ isRegistered }) => isRegistered)) throw first
    for (const [index, refusal] of refusals.entries()) {
      const tunnel = asked[index]
      if (tunnel === undefined || refusal === undefined) continue
      if (tunnel.registration !== undefined) this.#owner.emit('error', refusal)
      this.#refused(tunnel, refusal)
    }
  }

  /** Requests a tunnel. Resolves with the refusal, or the reason why the connection ended; never rejects. */
  async register(tunnel: OwnTunnel, connection: Connection): Promise<TunnelError | undefined> {
    if (tunnel.isRegistered || tunnel.isClosed || this.#owner.isClosing()) return undefined
    try {
      await tunnel.register(connection)
    } catch (cause) {
      const error = cause instanceof TunnelError ? cause : new TunnelError('INTERNAL', undefined, { cause })
      if (this.#owner.connection() === connection) this.#refused(tunnel, error)
      return error
    }
    if (tunnel.isRegistered && !tunnel.isClosed) this.#reportRegistered(tunnel)
    return undefined
  }

  registered(number: number): OwnTunnel | undefined {
    for (const tunnel of this.#all)
      if (tunnel.isRegistered && tunnel.registration?.tunnel === number) return tunnel
    return undefined
  }

  /** Called when a tunnel has another URL. */
  moved(number: number, url: string): void {
    const tunnel = this.registered(number)
    if (tunnel?.registration === undefined) return
    tunnel.registration = { ...tunnel.registration, url }
    this.#reportRegistered(tunnel)
  }

  /**
   * Called when the server revoked a tunnel. It would refuse the tunnel again, so it is removed. Returns the error to
   * report; `undefined` if there is no such tunnel.
   */
  revoked(number: number, { code, message }: TunnelError): TunnelError | undefined {
    const tunnel = this.registered(number)
    if (tunnel === undefined) return undefined
    tunnel.isRegistered = false
    tunnel.rest()
    this.#all.delete(tunnel)
    return new TunnelError(code, `${tunnel.label}: ${message}`)
  }

  /** Called when the connection that granted them is over. */
  disconnected(): void {
    for (const tunnel of this.#all) tunnel.isRegistered = false
  }

  areRefusedForGood(error: TunnelError): boolean {
    return this.all.every(tunnel => tunnel.isRefusedForGood(error))
  }

  /** Removes the secrets of released names. */
  dropResumes(): Promise<void>[] {
    return this.all.filter(tunnel => tunnel.isRegistered).map(tunnel => tunnel.dropResume())
  }

  /** Called when the client ends. Tunnels that were granted, and the client's own, are requested when it connects again. */
  end(error: TunnelError): void {
    this.resumes?.leave()
    clearTimeout(this.#askAgain)
    this.#askAgain = undefined
    for (const tunnel of this.#all) {
      tunnel.isRegistered = false
      tunnel.rest()
      if (tunnel === this.#own || tunnel.registration !== undefined) continue
      tunnel.refuse(error)
      this.#all.delete(tunnel)
    }
  }

  /** Handles a refusal, or a connection that ended during the request: then the next connection requests it again. */
  #refused(tunnel: OwnTunnel, error: TunnelError): void {
    if (tunnel.registration === undefined) {
      tunnel.refuse(error)
      this.#all.delete(tunnel)
    } else if (tunnel.isRefusedForGood(error)) {
      tunnel.rest()
      void tunnel.dropResume()
      this.#all.delete(tunnel)
    } else {
      this.#planToAskAgain()
    }
  }

  #planToAskAgain(): void {
    this.#askAgain ??= setTimeout(() => {
      this.#askAgain = undefined
      const connection = this.#owner.connection()
      if (connection !== undefined) for (const tunnel of this.#all) void this.register(tunnel, connection)
    }, ASK_AGAIN_MS)
  }

  #reportRegistered({ kind, name, url, parts, granted }: OwnTunnel): void {
    for (const part of parts) part.granted?.(name, url, granted.probeSecret ?? granted.resume)
    this.#owner.emit('registered', { kind, name, url })
  }

  /** Called when the health checks of a tunnel have another result. */
  healthChanged({ name }: OwnTunnel, isHealthy: boolean, error?: TunnelError): void {
    this.#owner.emit('health', { tunnel: name, isHealthy, ...(error !== undefined && { error }) })
  }

  closed(tunnel: OwnTunnel): void {
    this.drop(tunnel)
    if (!tunnel.isRegistered) return
    void tunnel.dropResume()
    this.#owner.connection()?.release(tunnel.granted)
  }

  /** Reports a failed write once, because it will fail in the same way for each name. */
  stateFailed(error: TunnelError): void {
    if (!this.#hasStateFailed) this.#owner.emit('error', error)
    this.#hasStateFailed = true
  }
}
