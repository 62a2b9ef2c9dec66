// What a client knows of its inspector: taps on its origins, which cost nothing until the inspector is loaded.

import { TunnelError } from '../../errors.ts'
import { serverProbeProof } from '../../wire/control.ts'
import type { Origin } from '../origin.ts'
import { sha256 } from '../probe.ts'
import type { TunnelSettings } from '../tunnel-settings.ts'
import type { Inspected, Inspector } from './inspector.ts'
import type { InspectSettings } from './options.ts'
import type { Watched } from './program.ts'
import type { Exchange, WaitOptions } from './seen.ts'
import { tapped } from './tap.ts'

export class Inspection {
  readonly settings: InspectSettings
  inspector: Inspector | undefined
  readonly #tunnels = new Set<Inspected>()
  readonly #loading: () => Promise<Inspector>
  #starting: Promise<Inspector> | undefined

  /** `failed`: something went wrong that the capture goes on after. */
  constructor(settings: InspectSettings, failed: (error: TunnelError) => void) {
    this.settings = settings
    this.#loading = async () => {
      const { Inspector: Loaded } = await import('./inspector.ts')
      const inspector = new Loaded(settings, this.#tunnels)
      inspector.on('failed', failed)
      return inspector
    }
  }

  /** The same tunnel, whose connections to its origins the inspector sees. */
  tap(settings: TunnelSettings): TunnelSettings {
    const { origin, routes, kind } = settings
    const origins = [origin, ...routes.map(route => route.origin)]
    const inspected: Inspected = {
      kind,
      tunnel: settings.name ?? '',
      url: '',
      serverProbe: undefined,
      service: origin.label,
      settings,
      origins: new Map(origins.map(one => [one.label, one])),
    }
    this.#tunnels.add(inspected)
    const http2 = new Set<Origin>(
      routes.filter(route => route.protocol !== undefined).map(route => route.origin),
    )
    if (settings.protocol !== undefined) http2.add(origin)
    const tap = (one: Origin) => {
      const place = {
        get tunnel() {
          return inspected.tunnel
        },
        get serverProbe() {
          return inspected.serverProbe
        },
        service: one.label,
        ...(http2.has(one) && { isHttp2: true }),
      }
      return tapped(one, () => this.inspector?.capture.flows(kind, place))
    }
    return {
      ...settings,
      origin: tap(origin),
      routes: routes.map(route => ({ ...route, origin: tap(route.origin) })),
    }
  }

  /** The server granted the tunnel with this origin. `secret`: what it proves its own probes with. */
  granted(origin: Origin, name: string, url: string, secret: string | undefined): void {
    for (const one of this.#tunnels) {
      if (one.settings.origin !== origin.untapped) continue
      one.serverProbe = secret === undefined ? undefined : serverProbeProof(secret, sha256)
      one.tunnel = name
      one.url = url
    }
  }

  /** The client does not want the tunnel any more. */
  forget(origin: Origin): void {
    for (const one of this.#tunnels) if (one.settings.origin === origin.untapped) this.#tunnels.delete(one)
  }

  /** Loads the inspector. */
  async start(): Promise<void> {
    await (await this.#load()).open()
  }

  #load(): Promise<Inspector> {
    this.#starting ??= this.#loading().then(inspector => {
      this.inspector = inspector
      return inspector
    })
    return this.#starting
  }

  // ── For programs ───────────────────────────────────────────────────────────────────────────────────────────

  async *exchanges(watched: Watched): AsyncGenerator<Exchange, void, undefined> {
    const [inspector, { exchangesOf }] = await Promise.all([this.#load(), import('./program.ts')])
    yield* exchangesOf(inspector, watched)
  }

  async waitFor(watched: Watched, filter: string, options?: WaitOptions): Promise<Exchange> {
    const [inspector, program] = await Promise.all([this.#load(), import('./program.ts')])
    return await program.waitFor(inspector, watched, filter, options)
  }

  stop(): void {
    this.inspector?.close()
  }
}

/** Throws `STATE_INVALID` without an inspector. */
export function inspectionOf(inspection: Inspection | undefined): Inspection {
  if (inspection !== undefined) return inspection
  throw new TunnelError('STATE_INVALID', 'The client captures nothing: it was made without inspect: true.')
}
