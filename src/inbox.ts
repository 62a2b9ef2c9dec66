// Contract: where a server keeps webhooks that came while the client of their tunnel was away.

/** The wish of a tunnel's client for an inbox, with its owner. It stays when the client leaves. */
export interface Box {
  /** The tunnel's name. A name has one box: that of the token that had it last. */
  readonly name: string
  /** Names the token; nothing of the token itself. */
  readonly owner: string
  /** The paths: `/hooks/github`, or `/hooks/*` for all below. */
  readonly paths: readonly string[]
  /** The status that the sender of a webhook gets. */
  readonly status: number
}

/** A webhook to be kept. */
export interface NewWebhook {
  readonly name: string
  readonly owner: string
  /** The path. Deliveries of one path follow one another. */
  readonly path: string
  /** The provider's id of the webhook, if it has one: the inbox stores the same id once. */
  readonly key: string | undefined
  /** The method, target and header lines as HTTP/1.1 text, without framing and without the blank line. */
  readonly head: string
  readonly body: Uint8Array
  /** The address of the sender. */
  readonly address: string
  /** The network of that address, which takes the share; `''` if no network does. */
  readonly sender: string
  readonly receivedMs: number
}

export interface KeptWebhook extends NewWebhook {
  readonly id: number
  /** Responses of the app that asked for another try. */
  readonly attempts: number
}

export interface BoxBounds {
  /**
   * The maximum number for one name. One sender has no more of them than it leaves free: nothing that was kept gives way later.
   */
  readonly maxRequests: number
  readonly maxBytes: number
  /** The maximum number of bytes for all names. Also for one owner, and for one sender. */
  readonly maxAllBytes: number
}

/** The result of a write. `known`: the same webhook was stored before, and may have been delivered already. */
export type Keeping = 'kept' | 'known' | 'full'

/** A name for which webhooks wait, and whose they are. */
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
  /** Replaces the box of that name, also one of another owner. Returns names whose boxes were forgotten for it: an owner has this many. */
  saveBox(box: Box, nowMs: number): readonly string[]
  removeBox(name: string): void
  /** Stores webhooks in one transaction, and returns the result of each. */
  keep(webhooks: readonly NewWebhook[], bounds: BoxBounds): readonly Keeping[]
  /** The oldest of that owner and name, but of these paths. */
  next(owner: string, name: string, exceptPaths: readonly string[]): KeptWebhook | undefined
  /** The app asked for another try. */
  tried(id: number): void
  /** Removes a webhook that was delivered or given up. */
  remove(id: number): void
  /** Returns at most `limit` names, those with the oldest webhooks first. */
  waiting(limit: number): readonly Waiting[]
  /** Lists the owners of the webhooks that wait for this name. */
  ownersOf(name: string): readonly string[]
  /** Whether another process has written since this was asked last. */
  hasChanged(): boolean
  /** Counts the stored webhooks by name. */
  counts(): ReadonlyMap<string, number>
  /** Marks these boxes as in use. */
  touch(names: readonly string[], nowMs: number): void
  /** Forgets webhooks that came before, and boxes whose client was not there since. Returns how many webhooks. */
  prune(beforeMs: number): number
  close(): void
}
