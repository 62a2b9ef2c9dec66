// A server that is killed and starts again on the same port: clients must be back soon, and no visitor may get 404 meanwhile.

import type { Attack, Tally } from '../scene/attack.ts'
import { HONEST_ADDRESS } from '../scene/attack.ts'
import { program } from '../scene/scene.ts'
import { open } from '../scene/wire.ts'

const CLIENTS = 50
/** After the new server listens. */
const MOST_RETURN_MS = 2_000
const GIVE_UP_MS = 15_000

/** Status of one request to a tunnel; 0 when there was none. */
async function ask(port: number, host: string): Promise<number> {
  const socket = await open({ port, address: HONEST_ADDRESS, reads: false })
  const { promise, resolve } = Promise.withResolvers<number>()
  socket.once('data', bytes => resolve(Number(bytes.toString('latin1').slice(9, 12))))
  socket.once('close', () => resolve(0))
  socket.write(`GET /bytes/20 HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`)
  const status = await promise
  socket.destroy()
  return status
}

async function returned(port: number, tally: Tally): Promise<void> {
  const began = performance.now()
  const one = async (_: unknown, index: number): Promise<void> => {
    for (;;) {
      const status = await ask(port, `n${index}.localhost`).catch(() => 0)
      if (status === 404) tally['told 404'] = (tally['told 404'] ?? 0) + 1
      if (status === 200 || performance.now() - began > GIVE_UP_MS) return
      await Bun.sleep(50)
    }
  }
  await Promise.all(Array.from({ length: CLIENTS }, one))
  tally['all back after, ms'] = Math.max(
    tally['all back after, ms'] ?? 0,
    Math.round(performance.now() - began),
  )
}

export const attacks: readonly Attack[] = [
  {
    name: 'server-restart',
    does: `kill -9 of a server with ${CLIENTS} clients, and a new start on the same port`,
    minSeconds: 10,
    async stage(scene, tally, until) {
      const start = (port: number): ReturnType<typeof program> => {
        const options = { port, host: '127.0.0.1', domains: ['localhost'], tcpPorts: '', udpPorts: '' }
        return program(
          'server-process.ts',
          [JSON.stringify({ source: scene.source, options })],
          /^ready (\d+)/,
        )
      }
      let server = await start(0)
      const port = Number(server.match?.[1])
      const crowd = await program(
        'crowd-process.ts',
        [JSON.stringify({ source: scene.source, port, app: scene.appPorts[0], clients: CLIENTS })],
        /^ready$/,
      )
      do {
        process.kill(server.pid, 'SIGKILL')
        await server.exited
        // Long enough that clients have tried in vain.
        await Bun.sleep(500)
        server = await start(port)
        await returned(port, tally)
        tally.restarts = (tally.restarts ?? 0) + 1
      } while (!until.aborted)
      await Promise.all([crowd.stop(), server.stop()])
    },
    judge: ({ tally }) => [
      ...((tally['all back after, ms'] ?? 0) > MOST_RETURN_MS
        ? [`the last client was back after ${tally['all back after, ms']} ms`]
        : []),
      ...((tally['told 404'] ?? 0) > 0 ? [`${tally['told 404']} requests were told 404 meanwhile`] : []),
    ],
  },
]
