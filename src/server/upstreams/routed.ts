// An upstream that divides requests by path: each route has an upstream of its own, and the rest go to the tunnel's.

import type { ErrorCode } from '../../errors.ts'
import { ascii, QUESTION, SLASH } from '../../http/characters.ts'
import type { RequestHead } from '../../http/head.ts'
import type { ByteStream, StreamHandler } from '../../session/byte-stream.ts'
import type { Endpoints } from '../../socket.ts'
import type { Exchange, TunnelUpstream, Visit } from '../contracts/upstream.ts'

/** A path, and the upstream for requests below it. */
export interface UpstreamRoute {
  /** `/api` matches `/api`, `/api?…` and everything below `/api/`. */
  readonly path: string
  readonly upstream: TunnelUpstream
}

/**
 * Routes by the longest matching path. Paths are compared byte for byte, without decoding or removing dot segments,
 * because the app may read them in another way than we would. So a route is not an access control.
 */
export class RoutedUpstream implements TunnelUpstream {
  readonly wire = 'streams'
  readonly #own: TunnelUpstream
  readonly #routes: readonly { readonly prefix: Uint8Array; readonly upstream: TunnelUpstream }[]

  /** Makes the upstream. `own` gets raw visitors, and requests below no route. */
  constructor(own: TunnelUpstream, routes: readonly UpstreamRoute[]) {
    this.#own = own
    this.#routes = routes
      .map(({ path, upstream }) => ({ prefix: ascii(path), upstream }))
      .sort((one, other) => other.prefix.length - one.prefix.length)
  }

  get inFlight(): number {
    return this.#routes.reduce((sum, { upstream }) => sum + upstream.inFlight, this.#own.inFlight)
  }

  begin(visit: Visit): Exchange {
    return this.#pick(visit.head).begin(visit)
  }

  open(handler: StreamHandler, address: string, endpoints: Endpoints | undefined): ByteStream | ErrorCode {
    return this.#own.open(handler, address, endpoints)
  }

  stop(): void {
    this.#own.stop?.()
    for (const { upstream } of this.#routes) upstream.stop?.()
  }

  #pick({ bytes, pathStart, targetEnd }: RequestHead): TunnelUpstream {
    for (const { prefix, upstream } of this.#routes)
      if (isBelow(bytes, pathStart, targetEnd, prefix)) return upstream
    return this.#own
  }
}

function isBelow(bytes: Uint8Array, start: number, end: number, prefix: Uint8Array): boolean {
  const { length } = prefix
  if (end - start < length) return false
  for (let at = 0; at < length; at++) if (bytes[start + at] !== prefix[at]) return false
  const behind = start + length
  return behind === end || bytes[behind] === SLASH || bytes[behind] === QUESTION
}
