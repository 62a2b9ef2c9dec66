// Contract: where a server keeps webhooks that came while the client of their tunnel was away.

/** What a tunnel's client has asked for, and whose it is. It stays when the client leaves. */
export interface Box {
  /** The tunnel's name. A name has one box: that of the token that had it last. */
  readonly name: string
  /** Names the token; nothing of the token itself. */
  readonly owner: string
  /** `/hooks/github`, or `/hooks/*` for all below. */
  readonly paths: readonly string[]
  /** What the sender of a webhook is answered with. */
  readonly status: number
}

/** A webhook to be kept. */
export interface NewWebhook {
  readonly name: string
  readonly owner: string
  /** Of one path, the next is delivered once the one before was. */
  readonly path: string
  /** What the provider calls it, where it says: the same one is kept once. */
  readonly key: string | undefined
  /** Method, target and header lines as HTTP/1.1 text, without framing and without the blank line. */
  readonly head: string
  readonly body: Uint8Array
  /** Of the sender. */
  readonly address: string
  /** The network of that address, which takes the share; `''` if no network does. */
  readonly sender: string
  readonly receivedMs: number
}

export interface KeptWebhook extends NewWebhook {
  readonly id: number
  /** Answers of the app that asked for another try. */
  readonly attempts: number
}

export interface BoxBounds {
  /** Of one name. One sender has no more of them than it leaves free: nothing that was kept gives way later. */
  readonly maxRequests: number
  readonly maxBytes: number
  /** Of all names. Likewise for one owner, and for one sender. */
  readonly maxAllBytes: number
}

/** `known`: the same one was kept before, and was perhaps delivered already. */
export type Keeping = 'kept' | 'known' | 'full'

/** A name for which webhooks wait, and whose they are. */
export interface Waiting {
  readonly name: string
  readonly owner: string
}

/**
 * What `keep` and `saveBox` have written when they return is there after a power cut. Several processes may have the same store open,
 * such as the workers of one server.
 */
export interface InboxStore {
  boxes(): readonly (Box & { readonly seenMs: number })[]
  box(name: string): Box | undefined
  /** Replaces the box of that name, also one of another owner. Returns names whose boxes were forgotten for it: an owner has so many. */
  saveBox(box: Box, nowMs: number): readonly string[]
  removeBox(name: string): void
  /** In one transaction; says of each what became of it. */
  keep(webhooks: readonly NewWebhook[], bounds: BoxBounds): readonly Keeping[]
  /** The oldest of that owner and name, but of these paths. */
  next(owner: string, name: string, exceptPaths: readonly string[]): KeptWebhook | undefined
  /** The app asked for another try. */
  tried(id: number): void
  /** Delivered, or given up. */
  remove(id: number): void
  /** At most `limit` of them, those first whose webhooks came first. */
  waiting(limit: number): readonly Waiting[]
  /** Whose webhooks wait for this name. */
  ownersOf(name: string): readonly string[]
  /** Whether another process has written since this was asked last. */
  hasChanged(): boolean
  /** Kept, by name. */
  counts(): ReadonlyMap<string, number>
  /** These boxes are in use. */
  touch(names: readonly string[], nowMs: number): void
  /** Forgets webhooks that came before, and boxes whose client was not there since. Returns how many webhooks. */
  prune(beforeMs: number): number
  close(): void
}
