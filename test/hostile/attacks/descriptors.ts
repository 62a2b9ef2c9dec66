// Too few descriptors while bulk, easy requests and raw conversations run: idle connections take what is left.

import type { Attack } from '../scene/attack.ts'
import { closed } from '../scene/wait.ts'
import { add, loops, open, send } from '../scene/wire.ts'

const shortOf = (openFiles: number): Attack => ({
  name: `descriptors-${openFiles}`,
  does: `bulk, easy requests and idle connections of one address, under \`ulimit -n ${openFiles}\``,
  openFiles,
  isCold: true,
  // With so few, some are refused. What counts is that the process lives, is calm, and works when the pressure is over.
  // It begins cold, so what any work takes counts: 154 to 160 MB were seen.
  bounds: {
    failures: Number.POSITIVE_INFINITY,
    p99Ms: Number.POSITIVE_INFINITY,
    keptFiles: 120,
    serverMb: 180,
  },
  async attack(target, tally, until) {
    await Promise.all([
      // Comes and goes, so that every number of free descriptors happens, none included.
      loops(
        openFiles,
        until,
        async () => {
          const socket = await open({ port: target.port })
          add(tally, 'idle')
          await Promise.race([closed(socket, until), Bun.sleep(200 + Math.random() * 800)])
          socket.destroy()
        },
        20,
      ),
      loops(
        4,
        until,
        async () => {
          const socket = await open({ port: target.port })
          add(tally, 'bulk')
          await send(
            socket,
            `GET /bytes/20000000?id=1 HTTP/1.1\r\nHost: ${target.honestHost}\r\nConnection: close\r\n\r\n`,
          )
          await closed(socket, until)
          socket.destroy()
        },
        20,
      ),
      loops(
        8,
        until,
        async () => {
          const socket = await open({ port: target.port, reads: false })
          for (let count = 0; count < 30 && !until.aborted; count++) {
            const answered = new Promise<void>(resolve => socket.once('data', () => resolve()))
            if (
              !(await send(
                socket,
                `GET /bytes/10?id=1 HTTP/1.1\r\nHost: ${target.honestHost}\r\n\r\n`,
                until,
              ))
            )
              break
            await Promise.race([answered, closed(socket, until)])
            add(tally, 'easy requests')
          }
          socket.destroy()
        },
        20,
      ),
      loops(
        8,
        until,
        async () => {
          const socket = await open({ port: target.honestTcpPort, reads: false })
          for (let count = 0; count < 100 && !until.aborted; count++) {
            const answered = new Promise<void>(resolve => socket.once('data', () => resolve()))
            if (!(await send(socket, 'hello', until))) break
            await Promise.race([answered, closed(socket, until)])
            add(tally, 'raw turns')
          }
          socket.destroy()
        },
        20,
      ),
    ])
  },
  judge: ({ serverCores }) => (serverCores > 0.95 ? [`the server used ${serverCores.toFixed(2)} cores`] : []),
})

export const attacks: readonly Attack[] = [64, 100, 160, 256, 400].map(shortOf)
