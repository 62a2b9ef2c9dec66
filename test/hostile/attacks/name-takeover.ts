// Names of a client that does not answer for a moment, asked for with the token of another tenant, from its address.

import type { Attack } from '../scene/attack.ts'
import { HONEST_TOKEN } from '../scene/attack.ts'
import { add, Control, controlFrame, loops, send, textFrame } from '../scene/wire.ts'

/** Everyone behind one proxy has this. */
const SHARED_ADDRESS = '127.0.0.50'

const takeover = (wire: 'json' | 'streams'): Attack => ({
  name: `name-takeover-${wire}`,
  does: `the name of a client that answers no ping, wanted with another token, ${wire} wire`,
  async attack(target, tally, until) {
    const register = (name: string): Buffer =>
      wire === 'json'
        ? textFrame(JSON.stringify({ type: 'ready', subdomain: name }))
        : controlFrame({ type: 'register', ref: 1, kind: 'http', name, resume: crypto.randomUUID() })
    const answers = ['registered', 'subdomain_taken', 'error', 'granted', 'refused']
    const holder = await Control.open(target, { wire, token: HONEST_TOKEN, address: SHARED_ADDRESS })
    holder.socket.write(register('victim'))
    await holder.next(answers)
    // Reads nothing from here on, pings included.
    holder.socket.pause()
    await loops(
      1,
      until,
      async () => {
        const taker = await Control.open(target, { wire, token: target.token, address: SHARED_ADDRESS })
        await send(taker.socket, register('victim'))
        const { type } = await taker.next(answers)
        add(tally, type === 'registered' || type === 'granted' ? 'taken over' : 'refused')
        taker.socket.destroy()
      },
      200,
    )
  },
  judge: ({ tally }) =>
    (tally['taken over'] ?? 0) > 0 ? ['the name was taken over with the token of another tenant'] : [],
})

export const attacks: readonly Attack[] = [takeover('json'), takeover('streams')]
