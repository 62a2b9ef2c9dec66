// Proves that a tunnel works with one small request from this server through the client to the app and back.

import type { ErrorCode } from '../../errors.ts'
import type { Hop } from '../../http/forward.ts'
import { RequestHead, readWhole } from '../../http/head.ts'
import type { Exchange, Rewrite, Upstream, Visit } from '../../server/contracts/upstream.ts'
import { PROBE_HEADER } from '../../wire/control.ts'

/** The user agent of probes in apps' logs. */
const AGENT = 'localtunnels-probe'

export interface Probe {
  readonly atMs: number
  readonly durationMs: number
  /** The status of the app's response; 0 for none. */
  readonly status: number
  readonly code?: ErrorCode
}

/**
 * Sends `HEAD /`. A response with any status proves both directions. `proof`: how the client recognises its server,
 * so that the inspector does not take the probe for a visitor. Never rejects.
 */
export function probe(upstream: Upstream, host: string, proof: string | undefined): Promise<Probe> {
  return new Promise(resolve => {
    const visit = new ProbeVisit(host, proof, resolve)
    visit.start(upstream)
  })
}

class ProbeVisit implements Visit {
  readonly head: RequestHead = new RequestHead()
  readonly answerLines = undefined
  readonly hstsLine = undefined
  readonly keepsAlive = true
  readonly isProbe = true
  readonly #startedAt = performance.now()
  readonly #atMs = Date.now()
  readonly #ended: (probe: Probe) => void
  #status = 0

  constructor(host: string, proof: string | undefined, ended: (probe: Probe) => void) {
    this.#ended = ended
    const mark = proof === undefined ? '' : `${PROBE_HEADER}: ${proof}\r\n`
    const bytes = Buffer.from(
      `HEAD / HTTP/1.1\r\nHost: ${host}\r\nUser-Agent: ${AGENT}\r\nAccept: */*\r\n${mark}\r\n`,
      'latin1',
    )
    readWhole(this.head, bytes)
  }

  start(upstream: Upstream): void {
    const exchange: Exchange = upstream.begin(this)
    exchange.bodyEnded()
  }

  hop(rewrite: Rewrite | undefined): Hop {
    return { address: '127.0.0.1', proto: 'http', trusted: false, hostHeader: rewrite?.host ?? '' }
  }

  write(): boolean {
    return true
  }

  answered(status: number): void {
    this.#status = status
  }

  switched(): void {}
  endAnswer(): void {}
  pause(): void {}
  resume(): void {}

  done(): void {
    this.#end()
  }

  fail(code: ErrorCode): void {
    this.#end(code)
  }

  #end(code?: ErrorCode): void {
    this.#ended({
      atMs: this.#atMs,
      durationMs: Math.round((performance.now() - this.#startedAt) * 100) / 100,
      status: code === undefined ? this.#status : 0,
      ...(code !== undefined && { code }),
    })
  }
}
