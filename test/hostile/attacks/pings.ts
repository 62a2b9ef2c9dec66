// WebSocket pings on control connections, which a server must answer.

import type { Attack } from '../scene/attack.ts'
import { add, Control, controlFrame, loops, pingFrame, send } from '../scene/wire.ts'

const PINGS_AT_ONCE = 20_000

const pings = (clients: number): Attack => ({
  name: `pings-${clients}`,
  does: `${clients} client${clients === 1 ? '' : 's'} sending WebSocket pings without end`,
  async attack(target, tally, until) {
    const many = Buffer.concat(Array.from({ length: PINGS_AT_ONCE }, () => pingFrame))
    await loops(clients, until, async index => {
      const control = await Control.open(target, { wire: 'streams', token: target.token })
      add(tally, 'connections')
      control.socket.write(controlFrame({ type: 'register', ref: 1, kind: 'http', name: `pinger-${index}` }))
      while (!until.aborted && control.isOpen && (await send(control.socket, many, until))) {
        add(tally, 'pings', PINGS_AT_ONCE)
      }
      control.socket.destroy()
    })
  },
})

export const attacks: readonly Attack[] = [pings(1), pings(8)]
