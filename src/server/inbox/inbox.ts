// Webhooks that wait: what comes for a name whose client is away is kept, and delivered once the client is back.
//
//   sender ──▶ Boxing ──▶ Writer ──▶ store ──▶ Deliveries ──▶ the tunnel, as any other request

import { eventLoop } from '../../event-loop.ts'
import type { RequestHead } from '../../http/head.ts'
import type { Box, NewWebhook } from '../../inbox.ts'
import type { BookingDesk } from '../booking.ts'
import type { Upstream } from '../upstream.ts'
import { Boxing } from './boxing.ts'
import { Deliveries } from './deliveries.ts'
import type { InboxSettings } from './options.ts'
import { Writer } from './writer.ts'

/** How often what is too old is dropped. */
const PRUNE_MS = 600_000
/** Requests that carry webhooks. A GET is a question, which only the app can answer. */
const METHODS: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH'])

export interface InboxHost {
  readonly isSecure: boolean
  /** Whether a client of this owner has the name and is there. */
  isThere(name: string, owner: string): boolean
  count(outcome: 'kept' | 'delivered' | 'dropped' | 'full'): void
  failed(error: Error): void
}

export class Inbox {
  readonly #settings: InboxSettings
  readonly #host: InboxHost
  readonly #boxes = new Map<string, Box>()
  readonly #writer: Writer
  readonly #deliveries: Deliveries
  #bytes = 0
  #stopPruning: (() => void) | undefined

  /** Throws what the store throws. */
  constructor(settings: InboxSettings, host: InboxHost, desk: BookingDesk) {
    this.#settings = settings
    this.#host = host
    const { store, maxAttempts } = settings
    this.#writer = new Writer(store, settings)
    this.#deliveries = new Deliveries(
      {
        store,
        maxAttempts,
        isSecure: host.isSecure,
        isThere: (name, owner) => host.isThere(name, owner),
        over: outcome => host.count(outcome),
        failed: error => host.failed(error),
      },
      desk,
    )
    this.#prune()
    for (const box of store.boxes()) this.#boxes.set(box.name, box)
  }

  /** How many webhooks wait, by name. */
  counts(): ReadonlyMap<string, number> {
    return this.#settings.store.counts()
  }

  /** A client has the name now, perhaps with others. `wish`: which paths it wants kept; `undefined`: none. */
  registered(
    name: string,
    owner: string,
    wish: Pick<Box, 'paths' | 'answer'> | undefined,
    isShared: boolean,
  ): void {
    const { store } = this.#settings
    const before = this.#boxes.get(name)
    try {
      if (wish !== undefined) {
        const box: Box = { name, owner, ...wish }
        store.saveBox(box, Date.now())
        this.#boxes.set(name, box)
      } else if (before !== undefined && !(isShared && before.owner === owner)) {
        // Another client has the name, or the same one wants none any more.
        store.removeBox(name)
        this.#boxes.delete(name)
      }
    } catch (error) {
      this.#host.failed(error as Error)
    }
    if (owner !== '') this.#deliveries.begin(name, owner)
  }

  /**
   * Where a request goes whose client is away; `undefined`: it is no webhook of an inbox. `owner`: whose the name is now, if
   * there is a tunnel.
   */
  upstreamFor(
    name: string,
    owner: string | undefined,
    head: RequestHead,
    address: string,
  ): Upstream | undefined {
    const box = this.#boxes.get(name)
    if (box === undefined || (owner !== undefined && owner !== box.owner)) return undefined
    if (!METHODS.has(head.method) || head.upgrade !== '') return undefined
    const path = head.path.split('?', 1)[0] ?? '/'
    const isOurs = box.paths.some(one =>
      one.endsWith('*') ? `${path}/`.startsWith(one.slice(0, -1)) : path === one,
    )
    return isOurs ? new Boxing(this, box, address) : undefined
  }

  // ── For Boxing ─────────────────────────────────────────────────────────────────────────────────────────────

  get maxBodyBytes(): number {
    return this.#settings.maxBodyBytes
  }

  take(bytes: number): boolean {
    if (this.#bytes + bytes > this.#settings.maxUnwrittenBytes) return false
    this.#bytes += bytes
    return true
  }

  give(bytes: number): void {
    this.#bytes -= bytes
  }

  async keep(webhook: NewWebhook): Promise<'kept' | 'known' | 'full' | Error> {
    const outcome = await this.#writer.keep(webhook)
    if (outcome instanceof Error) this.#host.failed(outcome)
    else if (outcome !== 'known') this.#host.count(outcome)
    // The client may have come while it was written.
    if (outcome === 'kept' && this.#host.isThere(webhook.name, webhook.owner))
      this.#deliveries.begin(webhook.name, webhook.owner)
    return outcome
  }

  // ── Its end ────────────────────────────────────────────────────────────────────────────────────────────────

  /** Nothing is delivered any more; what comes still is kept. */
  stop(): void {
    this.#stopPruning?.()
    this.#deliveries.stop()
  }

  #prune(): void {
    const { store, maxAgeMs } = this.#settings
    try {
      const present = [...this.#boxes.values()].filter(({ name, owner }) => this.#host.isThere(name, owner))
      store.touch(
        present.map(({ name }) => name),
        Date.now(),
      )
      for (let gone = store.prune(Date.now() - maxAgeMs); gone > 0; gone--) this.#host.count('dropped')
      // Another program that has the same file may have kept one after its client came here.
      for (const { name, owner } of present) this.#deliveries.begin(name, owner)
      const left = new Set(store.boxes().map(({ name }) => name))
      for (const name of this.#boxes.keys()) if (!left.has(name)) this.#boxes.delete(name)
    } catch (error) {
      this.#host.failed(error as Error)
    }
    this.#stopPruning = eventLoop.after(PRUNE_MS, () => this.#prune())
  }
}
