// Upgrades that begin and go nowhere: refused ones that stay, accepted ones that never register.

import type { Attack } from '../hostile/attack.ts'
import { add, loops, open, upgradeHead } from '../hostile/wire.ts'

const CONNECTIONS = 200
/** A refused upgrade has no further use for its connection. */
const CLOSED_WITHIN_MS = 1_000

export const attacks: readonly Attack[] = [
  {
    name: 'half-upgrades',
    does: `${CONNECTIONS} control connections that are refused, or accepted and never register`,
    attack: (target, tally, until) =>
      loops(CONNECTIONS, until, async index => {
        const isRefused = index % 2 === 0
        const socket = await open({ port: target.port })
        add(tally, isRefused ? 'refused upgrades' : 'silent clients')
        const closed = new Promise<'closed'>(resolve => socket.once('close', () => resolve('closed')))
        socket.write(upgradeHead({ wire: 'streams', token: isRefused ? 'wrong' : target.token }))
        const waited = Bun.sleep(CLOSED_WITHIN_MS * (isRefused ? 1 : 4))
        const end = await Promise.race([closed, waited])
        if (end !== 'closed' && !until.aborted)
          add(tally, isRefused ? 'refused, kept open' : 'silent, kept open')
        socket.destroy()
      }),
    judge: ({ tally }) =>
      (['refused, kept open', 'silent, kept open'] as const)
        .filter(what => (tally[what] ?? 0) > 0)
        .map(what => `${tally[what]} connections ${what}`),
  },
]
