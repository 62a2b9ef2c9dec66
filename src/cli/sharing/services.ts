// The services of a configuration file while they run: applies changes of the file, and leaves unchanged services alone.

import { isDeepStrictEqual } from 'node:util'
import type {
  ConnectOptions,
  HttpTunnelOptions,
  TcpTunnelOptions,
  TlsTunnelOptions,
  UdpTunnelOptions,
} from '../../client/options.ts'
import type { HttpServiceOptions, ServiceConfig } from '../../config/service.ts'
import { TunnelError } from '../../errors.ts'
import type { ClientEnd, TunnelEnd } from '../ends.ts'
import type { Output } from '../output.ts'
import { addressTarget, appTlsOf, serviceTarget, type Target } from '../settings/target.ts'
import { aborted } from '../stop.ts'
import { OriginWatch } from './origin-watch.ts'

/** A service that the server refused. */
export interface Refusal {
  readonly service: string
  readonly error: TunnelError
}

interface Running {
  readonly config: ServiceConfig
  readonly target: Target
  /** The tunnel. `undefined` until it is granted. */
  tunnel: TunnelEnd | undefined
  watch: OriginWatch | undefined
  url: string
  /** Whether it is not wanted any more, even if it was never granted. */
  isGone: boolean
  opened: Promise<Refusal | undefined>
}

export class Services {
  readonly #client: ClientEnd
  readonly #output: Output
  readonly #refused: (refusal: Refusal) => void
  readonly #running = new Map<string, Running>()
  /** The services by the tunnels that the last change released, because the ends of their last visitors are still reported. */
  readonly #givenBack = new Map<string, string>()

  /** Makes the services. `refused` gets those for which `apply` did not wait. */
  constructor(client: ClientEnd, output: Output, refused: (refusal: Refusal) => void) {
    this.#client = client
    this.#output = output
    this.#refused = refused
  }

  /**
   * Runs these services. Services with equal settings stay unchanged. First all others are released, because a new one
   * may want their names; then all new ones are registered at once. While the server is away this waits without
   * limit; `superseded` ends the wait, and the requests continue.
   */
  async apply(wanted: readonly ServiceConfig[], superseded?: AbortSignal): Promise<readonly Refusal[]> {
    const staying = wanted.filter(config => {
      const { config: now } = this.#running.get(config.name) ?? {}
      return now !== undefined && isDeepStrictEqual(now, config)
    })
    const pending: Promise<unknown>[] = []
    this.#givenBack.clear()
    for (const [name, running] of this.#running) {
      if (staying.some(config => config.name === name)) continue
      this.#running.delete(name)
      running.isGone = true
      running.watch?.stop()
      if (running.tunnel === undefined) pending.push(running.opened)
      else this.#givenBack.set(running.tunnel.name, name)
      await running.tunnel?.close()
      if (!wanted.some(config => config.name === name)) this.#output.event({ type: 'removed', service: name })
    }
    const starting = wanted.filter(config => !staying.includes(config))
    // Tunnels cannot be cancelled, so they must be granted before they can be released.
    const given = Promise.all(pending)
    const outcomes = starting.map(config => this.#start(config, given))
    const known: Refusal[] = []
    let isWaiting = true
    const all = outcomes.map(async outcome => {
      const refusal = await outcome
      if (refusal === undefined) return
      if (isWaiting) known.push(refusal)
      else this.#refused(refusal)
    })
    await Promise.race([Promise.all(all), ...(superseded === undefined ? [] : [aborted(superseded)])])
    isWaiting = false
    this.sync()
    return known
  }

  /** Reports every address that is new or has changed, as after a reconnect. */
  sync(): void {
    for (const [service, running] of this.#running) {
      const { tunnel, target, config } = running
      if (tunnel === undefined || tunnel.url === running.url) continue
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

  serviceOf(tunnel: string): string | undefined {
    for (const [service, running] of this.#running) if (running.tunnel?.name === tunnel) return service
    return this.#givenBack.get(tunnel)
  }

  /** Checks whether the app of a service is still there. */
  check(service: string | undefined): void {
    if (service !== undefined) void this.#running.get(service)?.watch?.check()
  }

  /** The URL of the first service that browsers can open; without one, of the first service. */
  get url(): string | undefined {
    const urls = [...this.#running.values()].flatMap(({ tunnel }) => tunnel?.url ?? [])
    return urls.find(url => url.startsWith('http')) ?? urls[0]
  }

  get size(): number {
    return [...this.#running.values()].filter(({ tunnel }) => tunnel !== undefined).length
  }

  stop(): void {
    for (const running of this.#running.values()) {
      running.isGone = true
      running.watch?.stop()
    }
  }

  /** Starts a service. `after` reports its end itself. */
  #start(config: ServiceConfig, after: Promise<unknown>): Promise<Refusal | undefined> {
    const { name: service } = config
    const target = serviceTarget(config)
    const running: Running = {
      config,
      target,
      tunnel: undefined,
      watch: undefined,
      url: '',
      isGone: false,
      opened: Promise.resolve(undefined),
    }
    this.#running.set(service, running)
    running.opened = after
      .then(() => this.#open(running))
      .catch((cause: unknown) => {
        if (this.#running.get(service) === running) this.#running.delete(service)
        const error = cause instanceof TunnelError ? cause : new TunnelError('INTERNAL', undefined, { cause })
        return running.isGone ? undefined : { service, error }
      })
    return running.opened
  }

  async #open(running: Running): Promise<undefined> {
    const { config, target } = running
    if (running.isGone) return
    const tunnel = await openTunnel(this.#client, config, target)
    // Released while it was being requested.
    if (running.isGone) return tunnel.close().then(() => undefined)
    running.tunnel = tunnel
    // On UDP, only a response or a refusal to the first datagram shows whether anything listens; and the connecting
    // end of a private service listens here.
    if (config.kind === 'udp' || config.kind === 'connect') return
    running.watch = this.#watch(config.name, target)
    // The first list of services also shows which apps are missing.
    await running.watch.check()
  }

  #watch(service: string, target: Target): OriginWatch {
    let isNews = false
    return new OriginWatch(target, isUp => {
      // A listening app at the start is expected, so only a missing one is reported.
      if (!isUp || isNews) this.#output.event({ type: 'origin', origin: target.shortLabel, isUp, service })
      isNews = true
    })
  }
}

/** The functions that make a tunnel of each kind. */
export interface TunnelMakers<Made> {
  http(options: HttpTunnelOptions): Made
  tcp(options: TcpTunnelOptions): Made
  udp(options: UdpTunnelOptions): Made
  tls(options: TlsTunnelOptions): Made
  connectTo(options: ConnectOptions): Made
}

export function openTunnel<Made>(
  client: TunnelMakers<Made>,
  { kind, options }: ServiceConfig,
  target: Target,
): Made {
  switch (kind) {
    case 'http': {
      // The apps with an HTTPS URL, by their targets.
      const { appInsecure: _, appCa: __, appServerName: ___, ...rest } = options
      return client.http({ ...rest, ...target.options, ...routesOf(options) })
    }
    case 'tcp':
      return client.tcp(options)
    case 'udp':
      return client.udp(options)
    case 'tls':
      return client.tls(options)
    case 'connect':
      return client.connectTo(options)
  }
}

function routesOf({ routes, ...options }: HttpServiceOptions): Pick<HttpTunnelOptions, 'routes'> {
  if (routes === undefined) return {}
  const all = Object.entries(routes).map(
    ([path, { protocol, stripPrefix = '', addPrefix = '', ...address }]) => [
      path,
      {
        ...addressTarget({ ...address, ...appTlsOf(options) }).options,
        ...(protocol && { protocol }),
        stripPrefix,
        addPrefix,
      },
    ],
  )
  return { routes: Object.fromEntries(all) }
}
