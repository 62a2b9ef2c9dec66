// The facts about one visitor's connection for origins: made once, and again when something of it changes.

import { randomBytes } from 'node:crypto'
import type { Hop } from '../../http/forward.ts'
import type { RequestHead } from '../../http/head.ts'
import type { Tracing } from '../../http/tracing.ts'
import type { PeerNote } from '../contracts/peer-note.ts'
import type { Rewrite } from '../contracts/upstream.ts'

/** The sign-in method which a connection came in. */
export interface Entrance {
  /** The protocol that its visitor speaks to this server. */
  readonly proto: 'http' | 'https'
  /** Whether forwarding headers from this address are believed. */
  isTrusted(address: string): boolean
  /** A header line for responses of the app that have none of its kind; see `Visit.hstsLine`. */
  hstsLine(): Uint8Array | undefined
  /** The same: another way to the server (RFC 7838). Default: none. */
  altSvcLine?(): Uint8Array | undefined
  /** The note of everything that comes in here. Default: only visitors do. */
  readonly from?: PeerNote
  /** Whether requests get ids. Default: not. */
  isTraced?(): boolean
  /** Returns the visitor of a request on the connection of another server. `undefined`: the request does not say. */
  visitorOf?(head: RequestHead): VisitorHop | undefined
}

export class VisitorHop {
  readonly #entrance: Entrance
  /** The address of the connection, without port. */
  readonly address: string
  /** The further facts about its requests. */
  readonly from: PeerNote | undefined
  #hop: Hop | undefined
  #rewrite: Rewrite | undefined
  #tracing: Tracing | undefined

  constructor(entrance: Entrance, address: string, from: PeerNote | undefined = entrance.from) {
    this.#entrance = entrance
    this.address = address
    this.from = from
  }

  /** The same object as long as nothing of it changes. */
  hop(rewrite: Rewrite | undefined): Hop {
    if (this.#hop !== undefined && this.#rewrite === rewrite) return this.#hop
    this.#rewrite = rewrite
    this.#hop = {
      address: this.address,
      proto: this.#entrance.proto,
      trusted: this.#entrance.isTrusted(this.address),
      hostHeader: rewrite?.host ?? '',
      origin: rewrite?.origin ?? '',
    }
    return this.#hop
  }

  /** Whether it is a trusted proxy. */
  get isTrusted(): boolean {
    return this.#hop?.trusted ?? this.#entrance.isTrusted(this.address)
  }

  /** The generator of request ids. `undefined` if requests get none. */
  get tracing(): Tracing | undefined {
    if (this.#entrance.isTraced?.() !== true) return undefined
    this.#tracing ??= {
      seed: randomBytes(10).toString('hex').slice(1),
      keepsIds: this.#entrance.isTrusted(this.address),
    }
    return this.#tracing
  }

  get hstsLine(): Uint8Array | undefined {
    return this.#entrance.hstsLine()
  }

  get altSvcLine(): Uint8Array | undefined {
    return this.#entrance.altSvcLine?.()
  }

  /** The server may trust others now. */
  forget(): void {
    this.#hop = undefined
    this.#tracing = undefined
  }
}
