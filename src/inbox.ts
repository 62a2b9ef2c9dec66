// Contract: the store of webhooks that arrived while the client of their tunnel was away.

/** The request of a tunnel's client for an inbox, with its owner. It stays when the client leaves. */
export interface Box {
  /** The tunnel's name. A name has one inbox: that of the token that had it last. */
  readonly name: string
  /** The id of the token, which reveals nothing about the token itself. */
  readonly owner: string
  /** The paths: `/hooks/github`, or `/hooks/*` for everything below. */
  readonly paths: readonly string[]
  /** The status that the sender of a webhook gets. */
  readonly status: number
}

/** A webhook to store. */
export interface NewWebhook {
  readonly name: string
  readonly owner: string
  /** The path. Deliveries of one path follow one another. */
  readonly path: string
  /** The provider's id of the webhook, if it has one. The inbox stores the same id once. */
  readonly key: string | undefined
  /** The method, target and header lines as HTTP/1.1 text, without framing and without the blank line. */
  readonly head: string
  readonly body: Uint8Array
  /** The address of the sender. */
  readonly address: string
  /** The network of that address, whose share it uses; `''` if it counts for no network. */
  readonly sender: string
  readonly receivedMs: number
}

export interface KeptWebhook extends NewWebhook {
  readonly id: number
  /** The number of responses of the app that asked for another attempt. */
  readonly attempts: number
}

export interface BoxBounds {
  /**
   * The maximum number for one name. One sender gets no more than it leaves free, because stored webhooks are never
   * dropped for others.
   */
  readonly maxRequests: number
  readonly maxBytes: number
  /** The maximum number of bytes for all names. One owner, and one sender, gets no more than it leaves free. */
  readonly maxAllBytes: number
}

/** The result of a write. `known`: the same webhook was stored before, and may have been delivered already. */
export type Keeping = 'kept' | 'known' | 'full'

/** A name with stored webhooks, and their owner. */
export interface Waiting {
  readonly name: string
  readonly owner: string
}

/**
 * A store of webhooks. Data that `keep` and `saveBox` have written when they return survives a power cut. Several processes may
 * have the same store open, such as the workers of one server.
 */
export interface InboxStore {
  boxes(): readonly (Box & { readonly seenMs: number })[]
  box(name: string): Box | undefined
  /**
   * Replaces the inbox of a name, also that of another owner. If the owner then has too many, the oldest are deleted:
   * returns their names.
   */
  saveBox(box: Box, nowMs: number): readonly string[]
  removeBox(name: string): void
  /** Stores webhooks in one transaction, and returns the result of each. */
  keep(webhooks: readonly NewWebhook[], bounds: BoxBounds): readonly Keeping[]
  /** Returns the oldest webhook of that owner and name, except those on these paths. */
  next(owner: string, name: string, exceptPaths: readonly string[]): KeptWebhook | undefined
  /** Called when the app asked for another attempt. */
  tried(id: number): void
  /** Removes a webhook that was delivered or given up. */
  remove(id: number): void
  /** Returns at most `limit` names, those with the oldest webhooks first. */
  waiting(limit: number): readonly Waiting[]
  /** Lists the owners of the webhooks that wait for this name. */
  ownersOf(name: string): readonly string[]
  /** Whether another process has written since the last call. */
  hasChanged(): boolean
  /** Counts the stored webhooks by name. */
  counts(): ReadonlyMap<string, number>
  /** Marks these inboxes as in use. */
  touch(names: readonly string[], nowMs: number): void
  /**
   * Forgets webhooks that came before `beforeMs`, and inboxes whose client was not connected since. Returns the
   * number of webhooks.
   */
  prune(beforeMs: number): number
  close(): void
}
