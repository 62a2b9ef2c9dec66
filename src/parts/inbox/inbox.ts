// Webhooks for a name whose client is away are stored, and delivered once the client is back.
//
//   sender ──▶ Boxing ──▶ Writer ──▶ store ──▶ Deliveries ──▶ the tunnel, as any other request
//
// Servers of a cluster have a store each, and deliver what is in it through the server that has the client. Workers
// of one server have the same store: the one that has the client delivers.

import { eventLoop } from '../../event-loop.ts'
import type { RequestHead } from '../../http/head.ts'
import type { Box, NewWebhook } from '../../inbox.ts'
import { KeptBodies } from '../../kept-bodies.ts'
import { pathMatcher } from '../../paths/path-rules.ts'
import type { RequestRouter } from '../../server/contracts/front.ts'
import type { PartServer } from '../../server/contracts/part.ts'
import type { Table } from '../../server/contracts/tables.ts'
import type { Upstream } from '../../server/contracts/upstream.ts'
import { Boxes } from './boxes.ts'
import { Boxing } from './boxing.ts'
import { Deliveries } from './deliveries.ts'
import type { InboxSettings } from './options.ts'
import { Writer } from './writer.ts'

/** The time in milliseconds between removals of old webhooks. */
const PRUNE_MS = 600_000
/** The time in milliseconds between checks for another process's writes to the store. */
const LOOK_MS = 500
/**
 * The time in milliseconds between searches at other servers for names with stored webhooks. Each claim there also
 * starts a search.
 */
const SEARCH_MS = 10_000
/** The maximum number of names in a search. Claims at other servers find the rest. */
const MAX_SEARCHED = 1_000
/** The methods of webhooks. A GET needs a response that only the app can give. */
const METHODS: ReadonlySet<string> = new Set(['POST', 'PUT', 'PATCH'])

export class Inbox {
  readonly #settings: InboxSettings
  readonly #server: PartServer
  readonly #boxes: Boxes
  readonly #writer: Writer
  readonly #deliveries: Deliveries
  /** The bodies that are being read or written. */
  readonly bodies: KeptBodies
  #isOver = false
  readonly #stops = new Map<string, () => void>()

  /** Makes the inbox. Throws the errors of the store. */
  constructor(settings: InboxSettings, server: PartServer, router: RequestRouter) {
    this.#settings = settings
    this.#server = server
    const { store, maxAgeMs, maxBodyBytes, maxUnwrittenBytes: maxBytes } = settings
    this.bodies = new KeptBodies(server.deadlines, () => {
      return { maxBodyBytes, maxBytes, pauseMs: server.limits.headTimeoutMs }
    })
    this.#boxes = new Boxes(store, maxAgeMs)
    this.#writer = new Writer(store, settings)
    this.#deliveries = new Deliveries(settings, this, server.isSecure, router)
    this.#regularly('prune', PRUNE_MS, () => this.#prune())
    this.#regularly('look', LOOK_MS, () => {
      if (store.hasChanged()) this.#beginPresent()
    })
    this.#prune()
  }

  /** Shares the boxes with the servers of the cluster. Each delivers its stored webhooks to the server with the client. */
  share(table: Table): void {
    this.#boxes.share(table)
    this.#regularly('search', SEARCH_MS, () => this.#search())
    // Later, when the server has joined the cluster.
    eventLoop.soon(() => this.#safely(() => this.#search()))
  }

  /** Called when a client has the name, possibly with others. `wish`: the paths that it wants stored; `undefined` for none. */
  registered(
    name: string,
    owner: string,
    wish: Pick<Box, 'paths' | 'status'> | undefined,
    isShared: boolean,
  ): void {
    this.#safely(() => {
      if (wish !== undefined) return this.#boxes.save({ name, owner, ...wish })
      const before = this.#boxes.find(name)
      // Another client has the name, or the same one does not want an inbox any more.
      if (before !== undefined && !(isShared && before.owner === owner)) this.#boxes.remove(name)
    })
    if (owner !== '') this.#begin(name, owner)
  }

  /** Called when another server has the name now. */
  claimedElsewhere(name: string): void {
    // Processes with the same store deliver its webhooks themselves.
    if (!this.#stops.has('search')) return
    this.#safely(() => {
      for (const owner of this.#settings.store.ownersOf(name))
        if (!this.isThere(name, owner)) this.#deliveries.begin(name, owner, true)
    })
  }

  /**
   * Returns the upstream for a request whose client is away. `undefined` if it is not a webhook of an inbox. `owner`:
   * the current owner of the name, if there is a tunnel.
   */
  upstreamFor(
    name: string,
    owner: string | undefined,
    head: RequestHead,
    address: string,
  ): Upstream | undefined {
    if (!METHODS.has(head.method) || head.upgrade !== '') return undefined
    const box = this.#safely(() => this.#boxes.find(name))
    if (box === undefined || (owner !== undefined && owner !== box.owner)) return undefined
    const { policy } = this.#server.settings
    if (this.#server.isBlocked(name) || !policy.mayHave(box.owner, name)) return undefined
    return pathMatcher(box.paths)(head.path) === true ? new Boxing(this, box, address) : undefined
  }

  // ── For Boxing ─────────────────────────────────────────────────────────────────────────────────────────────

  async keep(webhook: NewWebhook): Promise<'kept' | 'known' | 'full' | Error> {
    const outcome = await this.#writer.keep(webhook)
    if (outcome instanceof Error) this.failed(outcome)
    else if (outcome !== 'known') this.count(outcome)
    if (outcome !== 'kept') return outcome
    // The client may have come during the write.
    const { name, owner } = webhook
    if (this.isThere(name, owner)) this.#begin(name, owner)
    else this.#seek(name, owner)
    return outcome
  }

  // ── For Deliveries ─────────────────────────────────────────────────────────────────────────────────────────

  isThere(name: string, owner: string): boolean {
    const tunnel = this.#server.tunnels.find(name)
    return tunnel?.upstream !== undefined && tunnel.holder?.rule.id === owner
  }

  count(outcome: 'kept' | 'delivered' | 'dropped' | 'full'): void {
    this.#server.parts.noted({ kind: 'webhook', outcome })
  }

  failed(error: Error): void {
    this.#server.failed(error)
  }

  // ── Its end ────────────────────────────────────────────────────────────────────────────────────────────────

  /** Stops deliveries; new webhooks are still stored. */
  stop(): void {
    this.#isOver = true
    for (const stop of this.#stops.values()) stop()
    this.#deliveries.stop()
  }

  // ── Deliveries ─────────────────────────────────────────────────────────────────────────────────────────────

  #begin(name: string, owner: string): void {
    const delivers = this.#delivers(name)
    const go = (does: boolean): void => {
      if (does) this.#deliveries.begin(name, owner)
    }
    if (delivers instanceof Promise) delivers.then(go, (error: Error) => this.failed(error))
    else go(delivers)
  }

  /** Delivers if another server has the name. */
  #seek(name: string, owner: string): void {
    if (this.#isOver || !this.#stops.has('search')) return
    const go = (is: boolean): void => {
      if (!is || this.#isOver || this.isThere(name, owner)) return
      const box = this.#safely(() => this.#boxes.find(name))
      // The other server knows the client's owner; usually this one does too.
      if (box === undefined || box.owner === owner) this.#deliveries.begin(name, owner, true)
    }
    const isElsewhere = this.#isElsewhere(name)
    // The inbox tries again without a response soon.
    if (isElsewhere instanceof Promise) isElsewhere.then(go, () => {})
    else go(isElsewhere)
  }

  #search(): void {
    for (const { name, owner } of this.#settings.store.waiting(MAX_SEARCHED)) this.#seek(name, owner)
  }

  #beginPresent(): void {
    for (const { name, owner } of this.#settings.store.waiting(MAX_SEARCHED))
      if (this.isThere(name, owner)) this.#begin(name, owner)
  }

  #prune(): void {
    const { store, maxAgeMs } = this.#settings
    this.#safely(() => {
      this.#boxes.touch(this.#boxes.own().filter(({ name, owner }) => this.isThere(name, owner)))
      for (let gone = store.prune(Date.now() - maxAgeMs); gone > 0; gone--) this.count('dropped')
      this.#beginPresent()
    })
  }

  /** Whether this process delivers, of those with the same store that have the name's clients. */
  #delivers(name: string): boolean | Promise<boolean> {
    const { servers, tunnels } = this.#server
    const isAlone = servers === undefined || servers.shared !== undefined
    return isAlone || tunnels.find(name)?.pool === undefined || servers.isFirst(name)
  }

  /** Whether another server, with a store of its own, has the name. Rejects if that cannot be asked. */
  #isElsewhere(name: string): boolean | Promise<boolean> {
    const found = this.#server.servers?.find(name)
    return found instanceof Promise ? found.then(nodes => nodes.length > 0) : (found?.length ?? 0) > 0
  }

  #safely<Outcome>(act: () => Outcome): Outcome | undefined {
    try {
      return act()
    } catch (error) {
      this.failed(error as Error)
      return undefined
    }
  }

  #regularly(what: string, ms: number, act: () => void): void {
    this.#stops.set(
      what,
      eventLoop.after(ms, () => {
        this.#safely(act)
        this.#regularly(what, ms, act)
      }),
    )
  }
}
