// The inspector as a part of a client: taps on its origins, which cost nothing until the inspector is loaded.

import type {
  Install,
  Part,
  PartClient,
  ReportsFollower,
  TunnelPart,
  Watched,
} from '../../client/contracts/part.ts'
import type { Exchange, Watchable } from '../../client/contracts/watching.ts'
import type { Origin } from '../../client/origins/origin.ts'
import { sha256 } from '../../client/reach/probe.ts'
import type { TunnelSettings } from '../../client/tunnels/tunnel-settings.ts'
import { webhooksOf } from '../../signatures/verify-settings.ts'
import { serverProbeProof } from '../../wire/control.ts'
import type { Inspected, Inspector } from './inspector.ts'
import { type InspectSettings, inspectSettings } from './settings.ts'

export const installInspector: Install = client => {
  const settings = inspectSettings(client.options.inspect)
  return settings && new Inspection(settings, client)
}

class Inspection implements Part {
  readonly #settings: InspectSettings
  readonly #client: PartClient
  readonly #tunnels = new Set<Inspected>()
  #inspector: Inspector | undefined
  #starting: Promise<Inspector> | undefined

  constructor(settings: InspectSettings, client: PartClient) {
    this.#settings = settings
    this.#client = client
  }

  /** The number of reports per second, as many as the captured requests. */
  get reportRate(): number {
    return this.#settings.rate
  }

  get reports(): ReportsFollower | undefined {
    return this.#inspector?.reports
  }

  get url(): string | undefined {
    return this.#inspector?.url
  }

  /** Puts a tap on the origins of this tunnel. */
  follow({ kind, name, origin, options }: TunnelSettings): TunnelPart {
    const origins = new Map<string, Origin>()
    const inspected: Inspected = {
      kind,
      tunnel: name ?? '',
      url: '',
      serverProbe: undefined,
      service: origin.label,
      webhooks: webhooksOf(options),
      origins,
    }
    this.#tunnels.add(inspected)
    return {
      wrap: (one, protocol) => {
        origins.set(one.label, one)
        const place = {
          get tunnel() {
            return inspected.tunnel
          },
          get serverProbe() {
            return inspected.serverProbe
          },
          service: one.label,
          ...(protocol !== undefined && { isHttp2: true }),
        }
        return {
          label: one.label,
          url: one.url,
          connect: handler =>
            this.#inspector?.capture.connect(one, handler, kind, place) ?? one.connect(handler),
        }
      },
      granted(tunnel, url, secret) {
        inspected.tunnel = tunnel
        inspected.url = url
        inspected.serverProbe = secret === undefined ? undefined : serverProbeProof(secret, sha256)
      },
      dropped: () => this.#tunnels.delete(inspected),
    }
  }

  async start(): Promise<void> {
    await (await this.#load()).open()
  }

  stop(): void {
    this.#inspector?.close()
  }

  #load(): Promise<Inspector> {
    this.#starting ??= import('./inspector.ts').then(({ Inspector }) => {
      const inspector = new Inspector(this.#settings, this.#tunnels)
      inspector.on('failed', error => this.#client.failed(error))
      this.#inspector = inspector
      return inspector
    })
    return this.#starting
  }

  watch(watched: Watched): Watchable {
    return {
      exchanges: this.#exchanges(watched),
      waitFor: async (filter, options) => {
        const [inspector, program] = await Promise.all([this.#load(), import('./program.ts')])
        return await program.waitFor(inspector, watched, filter, options)
      },
    }
  }

  async *#exchanges(watched: Watched): AsyncGenerator<Exchange, void, undefined> {
    const [inspector, { exchangesOf }] = await Promise.all([this.#load(), import('./program.ts')])
    yield* exchangesOf(inspector, watched)
  }
}
