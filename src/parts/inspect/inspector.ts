// The inspector of one client: its store, and access to it. Loaded when a client with `inspect` connects.

import type { Origin } from '../../client/origins/origin.ts'
import { TunnelError } from '../../errors.ts'
import { Events } from '../../events.ts'
import type { Edit, Session } from '../../exchange.ts'
import type { Filter } from '../../exchange-filter.ts'
import { signed, verdictOf } from '../../signatures/signatures.ts'
import { receivedAt, type VerifySettings } from '../../signatures/verify-settings.ts'
import { VERSION } from '../../version.ts'
import type { TunnelKind } from '../../wire/tunnel-kind.ts'
import { Capture } from './capture.ts'
import type { Entry } from './entry.ts'
import { eventNameOf } from './event-name.ts'
import { replayBytes, type Signer, sendAgain, signedOf } from './replay.ts'
import { Reports } from './reports.ts'
import type { Showing } from './secrets.ts'
import type { InspectSettings } from './settings.ts'
import { ExchangeStore } from './store.ts'
import type { StoreFile } from './store-file.ts'
import { partOf, rowOf } from './view.ts'
import { Slices } from './wait.ts'

export interface Inspected {
  readonly kind: TunnelKind
  /** The name that was last granted; before that, the requested one. */
  tunnel: string
  url: string
  /** The value of the header with which the server marks its probes. */
  serverProbe: string | undefined
  readonly service: string
  readonly webhooks: readonly VerifySettings[]
  /** The origins by label, without a tap, for replays. */
  readonly origins: ReadonlyMap<string, Origin>
}

/** An open page and API. */
export interface InspectorServer {
  /** The URL, such as `http://127.0.0.1:4040`. */
  readonly url: string
  readonly token: string
  close(): void
}

export class Inspector extends Events<{ closed: undefined; failed: TunnelError }> {
  readonly settings: InspectSettings
  /** Shows everything except secrets. */
  readonly masked: Showing
  readonly store: ExchangeStore
  readonly capture: Capture
  readonly reports: Reports
  readonly tunnels: ReadonlySet<Inspected>
  readonly startedAt: Date = new Date()
  /** Whether nothing is captured until the client connects again. */
  isClosed = false
  /** The page and API, while they are open. */
  #server: InspectorServer | undefined
  #file: StoreFile | undefined

  constructor(settings: InspectSettings, tunnels: ReadonlySet<Inspected>) {
    super()
    this.settings = settings
    this.masked = { secrets: settings.secrets, reveals: false }
    this.tunnels = tunnels
    this.store = new ExchangeStore(settings)
    this.capture = new Capture(this.store, {
      began: entry => this.reports.began(entry),
      requestEnded: entry => {
        entry.event = eventNameOf(entry)
        this.#check(entry)
      },
    })
    this.reports = new Reports(this.store, this.capture)
  }

  /** Opens the page and API, unless the options turn them off. Rejects with `PORT_IN_USE` and `STORE_FAILED`. */
  async open(): Promise<void> {
    this.isClosed = false
    await this.#openFile()
    if (this.settings.port === undefined || this.#server !== undefined) return
    const { openInspector } = await import('./inspector-server.ts')
    this.#server = await openInspector(this, this.settings.port)
  }

  async #openFile(): Promise<void> {
    const { store: path } = this.settings
    if (path === undefined || this.#file !== undefined) return
    const { StoreFile: Loaded } = await import('./store-file.ts')
    this.#file = await Loaded.open(path, this.store, error => this.emit('failed', error))
  }

  /** The URL with the token after `#`. `undefined` without a page. */
  get url(): string | undefined {
    return this.#server && `${this.#server.url}/#${this.#server.token}`
  }

  matches(filter: Filter, entry: Entry): boolean {
    return filter.matches(rowOf(entry, this.masked), part => partOf(entry, part, this.masked))
  }

  /** Yields the entries that match the filter. Searching bodies takes time, so traffic is handled in between. */
  async *matching(filter: Filter, entries: Iterable<Entry>, signal: AbortSignal): AsyncGenerator<Entry> {
    const slices = new Slices()
    for (const entry of entries) {
      if (signal.aborted) return
      if (!entry.isDropped && this.matches(filter, entry)) yield entry
      if (slices.isOver) await slices.rest()
    }
  }

  /**
   * Sends a request again to the origin that it went to; `resign` is as in `ReplayRequest`. Rejects with
   * `REPLAY_IMPOSSIBLE`, `BODY_TRUNCATED`, or the error of a dial to the origin.
   */
  async replay(entry: Entry, edit?: Edit, resign?: boolean): Promise<Entry> {
    const bytes = replayBytes(entry, edit, this.#signerOf(entry, edit, resign))
    const origin = this.#inspectedOf(entry)?.origins.get(entry.place.service)
    if (origin === undefined) {
      const { tunnel, service } = entry.place
      const detail = `The tunnel ${tunnel} to ${service || 'its app'} is not open any more.`
      throw new TunnelError('REPLAY_IMPOSSIBLE', detail)
    }
    return await sendAgain(this.capture, entry, origin, bytes)
  }

  /** Returns the URL at which the client reaches the service, for exports. */
  urlOf(entry: Entry): string {
    const origin = this.#inspectedOf(entry)?.origins.get(entry.place.service)
    return origin?.url ?? `http://${entry.place.service || 'localhost'}`
  }

  /** Checks the signature of a webhook. */
  #check(entry: Entry): void {
    const verify = this.#webhookAt(entry, entry.path)
    if (verify === undefined) return
    const { provider, secrets, toleranceS } = verify
    const signed = signedOf(entry)
    const now = Math.min(
      Math.floor(entry.startedAt / 1_000),
      receivedAt(name => signed.header(name), verify),
    )
    entry.verified = entry.requestBody.isCut
      ? { provider, isValid: false, reason: 'the body was cut' }
      : verdictOf(provider, secrets, signed, { now, toleranceS })
  }

  /** Returns the signer of a replay. `undefined` for none. */
  #signerOf(entry: Entry, edit: Edit | undefined, resign: boolean | undefined): Signer | undefined {
    const verify = this.#webhookAt(entry, edit?.path ?? entry.path)
    const secret = verify?.secrets[0]
    if (resign === true && secret === undefined)
      throw new TunnelError('REPLAY_IMPOSSIBLE', 'It is no webhook whose secret this client has (verify).')
    // A webhook whose signature was invalid stays invalid, unless the user asks for a new signature.
    const isWanted = resign ?? entry.verified?.isValid === true
    if (!isWanted || verify === undefined || secret === undefined) return undefined
    return request => signed(verify.provider, request, { secret, now: Math.floor(Date.now() / 1_000) })
  }

  #webhookAt(entry: Entry, path: string): VerifySettings | undefined {
    return this.#inspectedOf(entry)?.webhooks.find(one => one.matches(path))
  }

  #inspectedOf({ place }: Entry): Inspected | undefined {
    return [...this.tunnels].find(one => one.tunnel === place.tunnel && one.origins.has(place.service))
  }

  get session(): Session {
    const { memoryBytes, maxBodyBytes, maxExchanges, maxFrames, rate } = this.settings
    return {
      version: VERSION,
      startedAt: this.startedAt.toISOString(),
      tunnels: [...this.tunnels].map(({ tunnel, kind, url, service }) => ({
        name: tunnel,
        kind,
        url,
        service,
      })),
      bounds: { memoryBytes, maxBodyBytes, maxExchanges, maxFrames, rate },
      used: {
        memoryBytes: this.store.memoryBytes,
        exchanges: this.store.size,
        frames: this.store.frames,
        pinned: this.store.pinned,
      },
      dropped: {
        exchanges: this.store.dropped,
        bytes: this.capture.droppedBytes,
        unsampled: this.capture.sampler.skipped,
      },
      isSampling: this.capture.isSampling,
      ...(this.settings.store !== undefined && { store: this.settings.store }),
    }
  }

  /** Closes the page and API. Stored entries stay for the next connection of the client. */
  close(): void {
    this.capture.close()
    this.isClosed = true
    this.emit('closed', undefined)
    this.#file?.close()
    this.#file = undefined
    this.#server?.close()
    this.#server = undefined
  }
}
