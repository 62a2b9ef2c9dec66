// SIGTERM of the server and of a client while visitors keep their connections busy: no accepted request is lost.

import type { Attack, Tally } from '../scene/attack.ts'
import { HONEST_ADDRESS, HONEST_TOKEN } from '../scene/attack.ts'
import type { ClientSpec } from '../scene/client-process.ts'
import { HttpConnection } from '../scene/http-connection.ts'
import { program, type Scene } from '../scene/scene.ts'
import { add } from '../scene/wire.ts'

const VISITORS = 40
/** The app takes this long for an answer, so that there is always something under way. */
const APP_MS = 20
const LOAD_MS = 250
const TIMEOUT_MS = 10_000
const FIFTY_ROUNDS_SECONDS = 30

/** Asks again and again on one connection, until an answer says that it is the last, or names the tunnel as gone. */
async function visit(
  port: number,
  host: string,
  index: number,
  tally: Tally,
  stop: AbortSignal,
): Promise<void> {
  const connection = await HttpConnection.open({ port, address: HONEST_ADDRESS }, TIMEOUT_MS)
  for (let id = index; !stop.aborted; id += VISITORS) {
    const outcome = await connection.ask(
      [`GET /slow?ms=${APP_MS}&id=${id} HTTP/1.1\r\nHost: ${host}\r\n\r\n`],
      { id, bytes: 200 },
      TIMEOUT_MS,
    )
    add(tally, 'requests')
    if (outcome === 'right') {
      if (connection.isLast) break
      continue
    }
    // Asked after the name was released: an honest answer to a late request.
    if (outcome === 'failed: 404' || outcome === 'failed: 503') add(tally, 'told that the tunnel is gone')
    else {
      add(tally, 'lost requests')
      add(tally, outcome)
    }
    break
  }
  connection.close()
}

/** One round: visitors at work, SIGTERM to `victim`, and what became of each request. */
async function round(
  port: number,
  host: string,
  victim: { readonly pid: number; readonly exited: Promise<number> },
  tally: Tally,
): Promise<void> {
  const stop = new AbortController()
  const visits = Array.from({ length: VISITORS }, (_, index) => visit(port, host, index, tally, stop.signal))
  const all = Promise.allSettled(visits)
  await Bun.sleep(LOAD_MS)
  const began = performance.now()
  process.kill(victim.pid, 'SIGTERM')
  await Promise.race([victim.exited, Bun.sleep(TIMEOUT_MS)])
  tally['longest end, ms'] = Math.max(tally['longest end, ms'] ?? 0, Math.round(performance.now() - began))
  // Visitors that still ask reach another server, or none: the round is over.
  stop.abort()
  await all
  add(tally, 'rounds')
}

function judge(tally: Tally): string[] {
  const lost = tally['lost requests'] ?? 0
  return lost > 0
    ? [`${lost} of ${tally.requests} requests got no answer, or 502, in ${tally.rounds} rounds`]
    : []
}

const clientSpec = (scene: Scene, port: number, subdomain: string): ClientSpec => ({
  source: scene.source,
  port,
  token: HONEST_TOKEN,
  subdomain,
  app: scene.appPorts[0],
})

const READY_CLIENT = /^ready \d+ \d+ (\S+)$/

export const attacks: readonly Attack[] = [
  {
    name: 'server-ends',
    minSeconds: FIFTY_ROUNDS_SECONDS,
    does: `SIGTERM of a server under ${VISITORS} kept connections, again and again`,
    async stage(scene, tally, until) {
      while (!until.aborted) {
        const options = {
          port: 0,
          host: '127.0.0.1',
          domains: ['localhost'],
          tokens: [HONEST_TOKEN],
          tcpPorts: '',
          udpPorts: '',
        }
        const server = await program(
          'server-process.ts',
          [
            JSON.stringify({
              source: scene.source,
              options: { ...options, limits: { drainTimeoutMs: 5_000 } },
            }),
          ],
          /^ready (\d+)/,
        )
        const port = Number(server.match?.[1])
        const client = await program(
          'client-process.ts',
          [JSON.stringify(clientSpec(scene, port, 'ending'))],
          READY_CLIENT,
        )
        await round(port, 'ending.localhost', server, tally)
        await Promise.all([client.stop(), server.stop()])
      }
    },
    judge: ({ tally }) => judge(tally),
  },
  {
    name: 'client-ends',
    minSeconds: FIFTY_ROUNDS_SECONDS,
    does: `SIGTERM of a client under ${VISITORS} kept connections, again and again`,
    async stage(scene, tally, until) {
      for (let count = 0; !until.aborted; count++) {
        const spec = clientSpec(scene, scene.target.port, `ending-${count}`)
        const client = await program('client-process.ts', [JSON.stringify(spec)], READY_CLIENT)
        await round(scene.target.port, `ending-${count}.localhost`, client, tally)
        await client.stop()
      }
    },
    judge: ({ tally }) => judge(tally),
  },
]
