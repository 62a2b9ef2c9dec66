// An upstream around another one, for an app with other names than its visitors know. It lends nothing, so such a
// tunnel has no lanes.

import type { ErrorCode } from '../../errors.ts'
import { type RewriteTerms, Rewriting } from '../../paths/rewriting.ts'
import {
  DEAD_EXCHANGE,
  type Exchange,
  type TunnelUpstream,
  type Visit,
} from '../../server/contracts/upstream.ts'
import type { ByteStream, StreamHandler } from '../../session/byte-stream.ts'
import type { Endpoints } from '../../socket.ts'
import { rewrittenHead } from './heads.ts'
import { RewrittenVisit } from './visit.ts'

export class RewritingUpstream implements TunnelUpstream {
  readonly wire: TunnelUpstream['wire']
  readonly #inner: TunnelUpstream
  readonly #rewriting: Rewriting

  constructor(inner: TunnelUpstream, terms: RewriteTerms) {
    this.wire = inner.wire
    this.#inner = inner
    this.#rewriting = new Rewriting(terms)
  }

  get inFlight(): number {
    return this.#inner.inFlight
  }

  begin(visit: Visit): Exchange {
    const head = rewrittenHead(visit.head, this.#rewriting)
    if (typeof head !== 'string') return this.#inner.begin(new RewrittenVisit(visit, head, this.#rewriting))
    visit.fail(head)
    return DEAD_EXCHANGE
  }

  open(handler: StreamHandler, address: string, endpoints: Endpoints | undefined): ByteStream | ErrorCode {
    return this.#inner.open(handler, address, endpoints)
  }

  stop(): void {
    this.#inner.stop?.()
  }
}
