// Sends one request to every client of a pool: it is read completely, and then each client gets a copy.

import type { ErrorCode } from '../../errors.ts'
import { bodyOf } from '../../http/body.ts'
import type { KeptBody } from '../../kept-bodies.ts'
import type { CopyEnd } from '../../server/contracts/layer.ts'
import { DEAD_EXCHANGE, type Exchange, type Upstream, type Visit } from '../../server/contracts/upstream.ts'
import type { PoolResponse } from '../../wire/control.ts'
import { Copies } from './copies.ts'

/** A recipient of a copy: a client, or another server for its clients. */
export interface Recipient {
  readonly upstream: Upstream | undefined
  /** The name that the client chose for itself. */
  readonly label?: string | undefined
  readonly isServer?: boolean
  /** Called when the copy is sent. Returns a function to call at its end. */
  began(): CopyEnd
  /** Called when the visitor gets this response. */
  won(): void
}

/** The operations of a routed request that copies need. */
export interface CopyHost {
  readonly maxBodyBytes: number
  readonly recipients: readonly Recipient[]
  readonly answer: PoolResponse
  /** Whether the visitor is another server, which must know whether the response is the named client's. */
  readonly isForServer: boolean
  /** Returns the store of the body until all recipients have it. */
  keep(failed: (code: 'REQUEST_TIMEOUT' | 'full') => void): KeptBody
}

const CONTINUE = Buffer.from('HTTP/1.1 100 Continue\r\n\r\n')

export class CopyingUpstream implements Upstream {
  readonly wire = 'streams'
  readonly inFlight = 0
  readonly #host: CopyHost

  constructor(host: CopyHost) {
    this.#host = host
  }

  begin(visit: Visit): Exchange {
    const { head } = visit
    const host = this.#host
    if (head.contentLength > host.maxBodyBytes) {
      visit.fail('BODY_TOO_LARGE')
      return DEAD_EXCHANGE
    }
    const framer = bodyOf(head)
    let copies: Copies | undefined
    let isOver = false
    const giveUp = (): void => {
      isOver = true
      kept.drop()
    }
    const fail = (code: ErrorCode | 'full'): void => {
      giveUp()
      visit.fail(code === 'full' ? 'TUNNEL_BUSY' : code)
    }
    // The pieces are stored unchanged, so that chunks and trailers reach every app.
    const kept = host.keep(fail)
    if (head.expectsContinue) visit.write(CONTINUE)
    return {
      body(piece) {
        if (isOver || copies !== undefined) return
        const code = kept.keep(piece)
        if (code !== undefined) fail(code)
        else if (framer.feed(piece, 0, piece.length) < 0) fail('BAD_REQUEST')
      },
      bodyEnded() {
        if (isOver || copies !== undefined) return
        kept.complete()
        copies = new Copies(visit, host, () => kept.drop())
        copies.start(kept.pieces)
      },
      drained() {
        copies?.drained()
      },
      abandoned() {
        if (copies !== undefined) copies.abandoned()
        else if (!isOver) giveUp()
      },
    }
  }
}
