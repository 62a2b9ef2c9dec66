// Requests sent one behind the other without waiting for answers, by a visitor who needs no token.

import type { Attack } from '../scene/attack.ts'
import { ownTunnel } from '../scene/own-tunnel.ts'
import { add, loops, open, send } from '../scene/wire.ts'

/** One write: about 512 KB of heads, what one read of the server can bring. */
const REQUESTS_AT_ONCE = 8_000

/**
 * What waits for its turn is bounded by `maxAllInputBytes`, 256 MiB: here one read of 512 KB for each connection, and as
 * much again that the collector has not taken yet.
 */
const WAITING = { serverMb: 512 }

const toOwnTunnel = (connections: number): Attack => ({
  name: `pipelining-${connections}`,
  does: `${connections} connection${connections === 1 ? '' : 's'} pipelining without end, to a tunnel of the attacker`,
  bounds: WAITING,
  async attack(target, tally, until) {
    const client = await ownTunnel(target, 'pipelined', () => new Response('x'))
    await pipelined(target.port, connections, 'pipelined.localhost', tally, until)
    await client.disconnect()
  },
})

const toNoTunnel = (connections: number): Attack => ({
  name: `pipelining-nowhere-${connections}`,
  does: `${connections} connections pipelining without end, to a host without a tunnel`,
  bounds: WAITING,
  attack: (target, tally, until) => pipelined(target.port, connections, 'nowhere.localhost', tally, until),
})

async function pipelined(
  port: number,
  connections: number,
  host: string,
  tally: Record<string, number>,
  until: AbortSignal,
): Promise<void> {
  const many = Buffer.from(`GET /x HTTP/1.1\r\nHost: ${host}\r\n\r\n`.repeat(REQUESTS_AT_ONCE))
  await loops(connections, until, async () => {
    const socket = await open({ port })
    add(tally, 'connections')
    while (!until.aborted && (await send(socket, many, until))) add(tally, 'requests', REQUESTS_AT_ONCE)
    socket.destroy()
  })
}

export const attacks: readonly Attack[] = [...[1, 10, 200].map(toOwnTunnel), ...[10, 200].map(toNoTunnel)]
