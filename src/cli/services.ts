// The services of a configuration file while they run: what the file says becomes tunnels, and nothing else is touched.

import type { ServiceConfig } from '../config/client-config.ts'
import { notYet } from '../config/not-yet.ts'
import { TunnelError } from '../errors.ts'
import type { ClientEnd, TunnelEnd } from './ends.ts'
import { OriginWatch } from './origin-watch.ts'
import type { Output } from './output.ts'
import { serviceTarget, type Target } from './target.ts'

/** A service that could not be had. */
export interface Refusal {
  readonly service: string
  readonly error: TunnelError
}

interface Running {
  readonly config: ServiceConfig
  readonly target: Target
  readonly watch: OriginWatch
  readonly tunnel: TunnelEnd
  /** As it was shown last. */
  url: string
}

export class Services {
  readonly #client: ClientEnd
  readonly #output: Output
  readonly #running = new Map<string, Running>()

  constructor(client: ClientEnd, output: Output) {
    this.#client = client
    this.#output = output
  }

  /**
   * Makes these the services that run. Those whose settings are equal stay as they are; first all others are given back,
   * because one may want the name that another had, then the new ones are asked for, all at once.
   */
  async apply(wanted: readonly ServiceConfig[]): Promise<readonly Refusal[]> {
    const staying = wanted.filter(config => {
      const { config: now } = this.#running.get(config.name) ?? {}
      return now !== undefined && Bun.deepEquals(now, config, true)
    })
    const isNamed = (name: string) => wanted.some(config => config.name === name)
    for (const [name, { tunnel, watch }] of this.#running) {
      if (staying.some(config => config.name === name)) continue
      this.#running.delete(name)
      watch.stop()
      await tunnel.close()
      if (!isNamed(name)) this.#output.event({ type: 'removed', service: name })
    }
    const starting = wanted.filter(config => !staying.includes(config))
    const outcomes = await Promise.all(starting.map(config => this.#start(config)))
    this.sync()
    return outcomes.filter(outcome => outcome !== undefined)
  }

  /** Tells of every address that is new or has changed, as it may with another connection. */
  sync(): void {
    for (const [service, running] of this.#running) {
      const { tunnel, target, config } = running
      if (tunnel.url === running.url) continue
      running.url = tunnel.url
      this.#output.event({
        type: 'service',
        service,
        kind: config.kind,
        url: tunnel.url,
        origin: target.label,
      })
      const { subdomain } = config.kind === 'http' ? config.options : {}
      if (subdomain === undefined || subdomain === tunnel.name) continue
      const message = `The name ${subdomain} is taken; ${service} got ${tunnel.name}.`
      this.#output.event({ type: 'notice', code: 'NAME_CHANGED', message })
    }
  }

  /** The service that has a tunnel of this name. */
  serviceOf(tunnel: string): string | undefined {
    for (const [service, running] of this.#running) if (running.tunnel.name === tunnel) return service
    return undefined
  }

  /** Looks whether the app of a service is still there. */
  check(service: string | undefined): void {
    if (service !== undefined) void this.#running.get(service)?.watch.check()
  }

  get size(): number {
    return this.#running.size
  }

  stop(): void {
    for (const { watch } of this.#running.values()) watch.stop()
  }

  async #start(config: ServiceConfig): Promise<Refusal | undefined> {
    const { name: service } = config
    try {
      const [missing] = notYet(config)
      if (missing !== undefined) throw new TunnelError('OPTION_INVALID', missing)
      const target = serviceTarget(config)
      const tunnel = await openTunnel(this.#client, config, target)
      let isNews = false
      const watch = new OriginWatch(target, isUp => {
        // That an app is there from the beginning is what everybody expects.
        if (!isUp || isNews) this.#output.event({ type: 'origin', origin: target.shortLabel, isUp, service })
        isNews = true
      })
      this.#running.set(service, { config, target, watch, tunnel, url: '' })
      void watch.check()
      return undefined
    } catch (cause) {
      const error = cause instanceof TunnelError ? cause : new TunnelError('INTERNAL', undefined, { cause })
      return { service, error }
    }
  }
}

function openTunnel(client: ClientEnd, { kind, options }: ServiceConfig, target: Target): Promise<TunnelEnd> {
  switch (kind) {
    case 'http':
      return client.http({ ...options, ...target.options })
    case 'tcp':
      return client.tcp(options)
    default:
      throw new TunnelError('INTERNAL', `There is no way to open a ${kind} tunnel.`)
  }
}
