// Connections as fast as they can be made, closed or reset at once.

import type { Attack } from '../scene/attack.ts'
import { add, loops, open } from '../scene/wire.ts'

const AT_ONCE = 30

export const attacks: readonly Attack[] = [
  {
    name: 'new-connections',
    does: 'new connections as fast as one machine can open them, ended or reset at once',
    attackers: 2,
    attack: (target, tally, until) =>
      loops(AT_ONCE, until, async index => {
        const socket = await open({ port: target.port, reads: false })
        add(tally, 'connections')
        if (index % 2 === 0) socket.resetAndDestroy()
        else socket.destroy()
      }),
  },
]
