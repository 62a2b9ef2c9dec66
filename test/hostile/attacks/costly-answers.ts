// Apps behind a tunnel of the attacker whose answers cost more to look through than to send.

import { createServer, type Socket } from 'node:net'
import type { Attack, Tally, Target } from '../scene/attack.ts'
import { ownTunnel } from '../scene/own-tunnel.ts'
import { closed } from '../scene/wait.ts'
import { add, loops, open } from '../scene/wire.ts'

const VISITORS = 20
/** So much in one write. */
const BLOCK_BYTES = 131_072

/** Listens as an app that answers each connection with `head`, and then with `unit` without end. */
async function endlessApp(head: string, unit: string) {
  const block = Buffer.from(unit.repeat(Math.ceil(BLOCK_BYTES / unit.length)))
  const answer = (socket: Socket) => {
    const pump = () => {
      while (!socket.destroyed && socket.write(block));
    }
    socket.on('error', () => {})
    socket.on('drain', pump)
    socket.once('data', () => {
      socket.write(head)
      pump()
    })
  }
  const sockets = new Set<Socket>()
  const server = createServer(socket => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    answer(socket)
  })
  const port = await new Promise<number>(resolve =>
    server.listen(0, '127.0.0.1', () => resolve((server.address() as { port: number }).port)),
  )
  return {
    port,
    close() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}

async function attackWith(
  head: string,
  unit: string,
  version: string,
  target: Target,
  tally: Tally,
  until: AbortSignal,
): Promise<void> {
  const app = await endlessApp(head, unit)
  const client = await ownTunnel(target, 'costly', app.port)
  await loops(
    VISITORS,
    until,
    async () => {
      const socket = await open({ port: target.port })
      add(tally, 'requests')
      socket.write(`GET / ${version}\r\nHost: costly.localhost\r\n\r\n`)
      await closed(socket, until)
      socket.destroy()
    },
    20,
  )
  await client.disconnect()
  app.close()
}

const chunked = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n'

/**
 * The server reads some 200 MB/s of such answers, each read into an array of its own. What streams may keep is 20 MB of
 * it; the rest, up to 100 MB, is garbage that the engine has not collected yet, and 80 MB of it came and went within a
 * second when it was measured. The engine collects by what was allocated, so more visitors do not raise it.
 */
const GARBAGE_OF_READS = { serverMb: 220 }

export const attacks: readonly Attack[] = [
  {
    name: 'answers-of-1xx',
    does: `${VISITORS} visitors of an app that sends 103 without end`,
    attack: (...all) => attackWith('', 'HTTP/1.1 103 \r\n\r\n', 'HTTP/1.1', ...all),
  },
  {
    name: 'answers-in-tiny-chunks',
    does: `${VISITORS} visitors of an app that answers without end in chunks of a byte`,
    bounds: GARBAGE_OF_READS,
    attack: (...all) => attackWith(chunked, '1\r\nx\r\n', 'HTTP/1.1', ...all),
  },
  {
    name: 'answers-in-tiny-chunks-1.0',
    does: `the same to ${VISITORS} visitors of HTTP/1.0, who get what is in the chunks`,
    bounds: GARBAGE_OF_READS,
    attack: (...all) => attackWith(chunked, '1\r\nx\r\n', 'HTTP/1.0', ...all),
  },
]
