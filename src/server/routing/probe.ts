// Answers a client's probe of its own public side: proof that visitors reach the server and the server the client.

import type { RequestHead } from '../../http/head.ts'
import { PROBE_HEADER } from '../../wire/control.ts'
import { DEAD_EXCHANGE, type Exchange, type Upstream, type Visit } from '../contracts/upstream.ts'
import type { Member } from '../tunnels/member.ts'
import type { Tunnel } from '../tunnels/tunnel.ts'

/**
 * Returns the member whose client sent this request to probe its own tunnel. Only who knows the resume secret can ask, so
 * nothing of the app is shadowed; only HEAD is looked at, so that other requests do not pay for the look.
 */
export function proberOf(head: RequestHead, tunnel: Tunnel): Member | undefined {
  return head.method === 'HEAD' ? tunnel.memberProbedBy(head.header(PROBE_HEADER)) : undefined
}

/** Answers 204 after a round trip to the client. */
export function probeUpstream(member: Member): Upstream {
  return {
    wire: 'streams',
    inFlight: 0,
    begin(visit: Visit): Exchange {
      let isOver = false
      const answer = async () => {
        const isAlive = (await member.client?.checkAlive()) ?? false
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
