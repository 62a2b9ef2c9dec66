// Answers a client's probe of its own public side: proof that visitors reach the server and the server the client.

import type { RequestHead } from '../http/head.ts'
import { PROBE_HEADER } from '../wire/control.ts'
import type { Tunnel } from './tunnels.ts'
import type { Exchange, Upstream, Visit } from './upstream.ts'
import { DEAD_EXCHANGE } from './upstreams/streams.ts'

/**
 * Whether the request is the tunnel holder's own probe. Only who knows the resume secret can ask, so nothing of the
 * app is shadowed; only HEAD is looked at, so that other requests do not pay for the look.
 */
export function isProbe(head: RequestHead, tunnel: Tunnel): boolean {
  return head.method === 'HEAD' && tunnel.isProbedBy(head.header(PROBE_HEADER))
}

/** Answers 204 after a round trip to the client. */
export function probeUpstream(tunnel: Tunnel): Upstream {
  return {
    wire: 'streams',
    inFlight: 0,
    begin(visit: Visit): Exchange {
      let isOver = false
      const answer = async () => {
        const isAlive = (await tunnel.client?.checkAlive()) ?? false
        if (isOver) return
        if (!isAlive) return visit.fail('CLIENT_GONE')
        visit.answered(204)
        visit.write(
          Buffer.from(`HTTP/1.1 204 No Content\r\n${PROBE_HEADER}: ok\r\nConnection: close\r\n\r\n`),
        )
        visit.done(false)
      }
      return {
        ...DEAD_EXCHANGE,
        bodyEnded: () => void answer(),
        abandoned: () => {
          isOver = true
        },
      }
    },
  }
}
