// Upgrades that begin and go nowhere: refused ones that stay, accepted ones that never register.

import type { Attack } from '../scene/attack.ts'
import { add, loops, open, upgradeHead } from '../scene/wire.ts'

const CONNECTIONS = 200
/** From the answer on: a refused upgrade has no further use for its connection, a silent client has `registerTimeoutMs`. */
const CLOSED_WITHIN_MS = { 'refused upgrades': 1_000, 'silent clients': 4_000 }
const AGAIN_AFTER_MS = 500

export const attacks: readonly Attack[] = [
  {
    name: 'half-upgrades',
    // An address that guessed waits for its answers, also when its visitor has left meanwhile.
    bounds: { keptFiles: 150 },
    does: `${CONNECTIONS} control connections that are refused, or accepted and never register`,
    attack: (target, tally, until) =>
      loops(
        CONNECTIONS,
        until,
        async index => {
          const kind = index % 2 === 0 ? 'refused upgrades' : 'silent clients'
          const socket = await open({ port: target.port, reads: false })
          add(tally, kind)
          const answered = new Promise<void>(resolve => socket.once('data', () => resolve()))
          const closed = new Promise<'closed'>(resolve => socket.once('close', () => resolve('closed')))
          socket.write(
            upgradeHead({ wire: 'streams', token: kind === 'refused upgrades' ? 'wrong' : target.token }),
          )
          socket.on('data', () => {})
          // An address that guesses tokens waits for its answers.
          await Promise.race([answered, closed])
          const end = await Promise.race([closed, Bun.sleep(CLOSED_WITHIN_MS[kind])])
          if (end !== 'closed' && !until.aborted) add(tally, `${kind} kept open`)
          socket.destroy()
        },
        AGAIN_AFTER_MS,
      ),
    judge: ({ tally }) =>
      Object.entries(tally)
        .filter(([what]) => what.endsWith('kept open'))
        .map(([what, count]) => `${count} ${what}`),
  },
]
