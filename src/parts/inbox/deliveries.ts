// Delivers webhooks to a client that is back: those of one path one after the other, in the order of their arrival.

import { eventLoop } from '../../event-loop.ts'
import type { KeptWebhook } from '../../inbox.ts'
import type { RequestRouter } from '../../server/contracts/front.ts'
import { type Delivered, DeliveryVisit } from './delivery-visit.ts'
import type { InboxSettings } from './options.ts'

/** The number of deliveries at once for one name, so that an app that was away is not flooded. */
const MAX_UNDER_WAY = 4
/**
 * The maximum number of paths of one name that wait before another attempt. With more, an app that fails everywhere
 * gets nothing else for a moment.
 */
const MAX_PAUSED = 100
const FIRST_PAUSE_MS = 1_000
const LONGEST_PAUSE_MS = 300_000
/**
 * The first pause in milliseconds before a server is asked again, and the maximum number of attempts. A server is known to have a
 * name a moment before it has the client. The pause doubles each time; after the last attempt the client is not there.
 */
const FIRST_AWAY_MS = 50
const MAX_AWAY = 5
/** The statuses after which another attempt always helps: 0 means that the app did not get the webhook. */
const AGAIN: ReadonlySet<number> = new Set([0, 408, 425, 429])

export interface DeliveriesHost {
  isThere(name: string, owner: string): boolean
  count(outcome: 'delivered' | 'dropped'): void
  failed(error: Error): void
}

interface Round {
  readonly name: string
  readonly owner: string
  /** Whether another server has the client, as far as this one knows. */
  isElsewhere: boolean
  /** The number of attempts in a row for which the client was away. */
  away: number
  /** The paths with a webhook in progress, or waiting before another attempt. */
  readonly busy: Map<string, DeliveryVisit | (() => void)>
  underWay: number
  readonly failures: Map<string, number>
}

export class Deliveries {
  readonly #settings: InboxSettings
  readonly #host: DeliveriesHost
  readonly #isSecure: boolean
  readonly #router: RequestRouter
  readonly #rounds = new Map<string, Round>()
  #isOver = false

  constructor(settings: InboxSettings, host: DeliveriesHost, isSecure: boolean, router: RequestRouter) {
    this.#settings = settings
    this.#host = host
    this.#isSecure = isSecure
    this.#router = router
  }

  /** Delivers the stored webhooks, because the client of this name is connected. `isElsewhere`: to another server. */
  begin(name: string, owner: string, isElsewhere = false): void {
    if (this.#isOver) return
    const key = `${owner} ${name}`
    const round: Round = this.#rounds.get(key) ?? {
      name,
      owner,
      isElsewhere,
      away: 0,
      busy: new Map(),
      underWay: 0,
      failures: new Map(),
    }
    this.#rounds.set(key, round)
    round.isElsewhere = isElsewhere
    round.away = 0
    this.#endPauses(round)
    this.#pump(round)
  }

  /** Stops. Open deliveries are repeated by the next program, or when the client is back. */
  stop(): void {
    this.#isOver = true
    for (const round of this.#rounds.values())
      for (const one of round.busy.values())
        if (one instanceof DeliveryVisit) one.abandon()
        else one()
    this.#rounds.clear()
  }

  #endPauses({ busy }: Round): void {
    for (const [path, one] of busy)
      if (!(one instanceof DeliveryVisit)) {
        one()
        busy.delete(path)
      }
  }

  #pump(round: Round): void {
    const { name, owner } = round
    if (this.#isOver) return
    if (!round.isElsewhere && !this.#host.isThere(name, owner)) {
      // Delivery begins again when the client is back.
      this.#endPauses(round)
      if (round.busy.size === 0) this.#forget(round)
      return
    }
    while (round.underWay < MAX_UNDER_WAY && round.busy.size - round.underWay < MAX_PAUSED) {
      const webhook = this.#next(round)
      if (webhook === undefined) break
      const visit = new DeliveryVisit(webhook, this.#isSecure)
      round.busy.set(webhook.path, visit)
      round.underWay++
      void visit.deliver(this.#router).then(delivered => {
        round.underWay--
        round.busy.delete(webhook.path)
        this.#ended(round, webhook, delivered)
      })
    }
    if (round.busy.size === 0) this.#forget(round)
  }

  #forget({ name, owner }: Round): void {
    this.#rounds.delete(`${owner} ${name}`)
  }

  #next({ name, owner, busy }: Round): KeptWebhook | undefined {
    try {
      return this.#settings.store.next(owner, name, [...busy.keys()])
    } catch (error) {
      this.#host.failed(error as Error)
      return undefined
    }
  }

  #ended(round: Round, webhook: KeptWebhook, { status, isAway }: Delivered): void {
    if (this.#isOver) return
    if (isAway === true && round.isElsewhere) {
      if (round.away < MAX_AWAY) return this.#wait(round, webhook.path, FIRST_AWAY_MS * 2 ** round.away++)
      // Delivery begins again when a server has the client.
      round.isElsewhere = false
      return this.#pump(round)
    }
    round.away = 0
    try {
      const isAgain = AGAIN.has(status) || status >= 500
      if (isAgain && (status === 0 || webhook.attempts + 1 < this.#settings.maxAttempts)) {
        // A webhook that did not reach the app does not count as an attempt.
        if (status !== 0) this.#settings.store.tried(webhook.id)
        return this.#pause(round, webhook.path)
      }
      this.#settings.store.remove(webhook.id)
      round.failures.delete(webhook.path)
      this.#host.count(status < 400 ? 'delivered' : 'dropped')
    } catch (error) {
      this.#host.failed(error as Error)
      return this.#pause(round, webhook.path)
    }
    this.#pump(round)
  }

  #pause(round: Round, path: string): void {
    const failures = round.failures.get(path) ?? 0
    round.failures.set(path, failures + 1)
    this.#wait(round, path, Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(failures, 20)))
  }

  #wait(round: Round, path: string, ms: number): void {
    round.busy.set(
      path,
      eventLoop.after(ms, () => {
        round.busy.delete(path)
        this.#pump(round)
      }),
    )
    // Other paths continue.
    this.#pump(round)
  }
}
