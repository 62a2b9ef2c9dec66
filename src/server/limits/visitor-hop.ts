// The visitor of a connection, even if proxies are in front, and the forwarding headers for origins. They are made
// once, and again after a change.

import { randomBytes } from 'node:crypto'
import { isIP } from 'node:net'
import type { Hop } from '../../http/forward.ts'
import type { RequestHead } from '../../http/head.ts'
import type { Tracing } from '../../http/tracing.ts'
import { networkOf } from '../../wire/ip-address.ts'
import type { PeerNote } from '../contracts/peer-note.ts'
import type { Entrance } from '../contracts/protocol.ts'
import type { Rewrite, Visit } from '../contracts/upstream.ts'

export class VisitorHop {
  readonly #entrance: Entrance
  /** The address of the connection, without port. */
  readonly address: string
  /** The facts that another server of the cluster reported about its requests. */
  readonly from: PeerNote | undefined
  #hop: Hop | undefined
  #rewrite: Rewrite | undefined
  #tracing: Tracing | undefined

  constructor(entrance: Entrance, address: string, from: PeerNote | undefined = entrance.from) {
    this.#entrance = entrance
    this.address = address
    this.from = from
  }

  /** Returns the address and scheme for forwarding headers. The same object while nothing in it changes. */
  hop(rewrite: Rewrite | undefined): Hop {
    if (this.#hop !== undefined && this.#rewrite === rewrite) return this.#hop
    this.#rewrite = rewrite
    this.#hop = {
      address: this.address,
      proto: this.#entrance.proto,
      trusted: this.#entrance.isTrusted(this.address),
      hostHeader: rewrite?.host ?? '',
    }
    return this.#hop
  }

  /** Whether the connection comes from a trusted proxy. */
  get isTrusted(): boolean {
    return this.#hop?.trusted ?? this.#entrance.isTrusted(this.address)
  }

  /** The source of request ids. `undefined` if requests get none. */
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

  /** Called when the trusted proxies may have changed. */
  forget(): void {
    this.#hop = undefined
    this.#tracing = undefined
  }
}

/**
 * Returns the last address in X-Forwarded-For that is not a trusted proxy's; without any, that of the connection. Each proxy
 * appends the address that it sees, so whatever comes before the last untrusted address is only that sender's claim.
 */
export function clientAddress(
  connected: string,
  head: RequestHead,
  isTrusted: (address: string) => boolean,
): string {
  return isTrusted(connected) ? addressBefore(connected, hopsIn(head), isTrusted) : connected
}

/** Returns the last address that is not a trusted proxy's. `hops`: the values of X-Forwarded-For that `proxy` sent. */
export function addressBefore(
  proxy: string,
  hops: readonly string[],
  isTrusted: (address: string) => boolean,
): string {
  let address = proxy
  for (const hop of hops.toReversed()) {
    const next = addressIn(hop)
    if (next === undefined) break
    address = next
    if (!isTrusted(address)) break
  }
  return address
}

/** Returns the visitor's network, as the last trusted proxy saw it. `rewrite` only avoids making a second hop. */
export function visitorOf(visit: Pick<Visit, 'head' | 'hop'>, rewrite: Rewrite | undefined): string {
  const hop = visit.hop(rewrite)
  const { address, trusted } = hop
  if (trusted) return networkOf(clientAddress(address, visit.head, one => one === address))
  hop.network ??= networkOf(address)
  return hop.network
}

/** All X-Forwarded-For lines as one list. */
function hopsIn({ fields }: RequestHead): string[] {
  const hops: string[] = []
  for (let line = 0; line < fields.count; line++)
    if (fields.isNamed(line, 'x-forwarded-for')) hops.push(...fields.value(line).split(','))
  return hops
}

/** Returns the address in `192.0.2.1`, `192.0.2.1:443`, `2001:db8::1`, `[2001:db8::1]:443`. */
function addressIn(hop: string): string | undefined {
  const text = hop.trim()
  const [, bracketed] = /^\[([^\]]+)\](?::\d+)?$/.exec(text) ?? []
  const [, beforePort] = /^([\d.]+):\d+$/.exec(text) ?? []
  const address = bracketed ?? beforePort ?? text
  return isIP(address) === 0 ? undefined : address
}
