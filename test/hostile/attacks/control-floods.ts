// Control messages of a client with a token: registrations and releases, refused ones, ports when none is left.

import type { Attack, Tally, Target } from '../scene/attack.ts'
import { add, Control, controlFrame, loops, send } from '../scene/wire.ts'

const MESSAGES_AT_ONCE = 1_000

/** Sends batches for as long as the server lets it, then opens another connection and goes on. */
async function flood(
  target: Target,
  tally: Tally,
  until: AbortSignal,
  connections: number,
  batch: (index: number) => Buffer,
): Promise<void> {
  await loops(connections, until, async index => {
    const control = await Control.open(target, { wire: 'streams', token: target.token })
    add(tally, 'connections')
    control.heard = ({ type }) => add(tally, String(type))
    while (!until.aborted && control.isOpen && (await send(control.socket, batch(index), until))) {
      add(tally, 'batches')
      await Bun.sleep(0)
    }
    control.socket.destroy()
  })
}

const repeated = (one: (number: number) => unknown, length = MESSAGES_AT_ONCE): Buffer =>
  Buffer.concat(Array.from({ length }, (_, number) => controlFrame(one(number))))

/** Holds every port that the server gives, over as many connections as that takes. */
export async function takePorts(target: Target, tally: Tally): Promise<Control[]> {
  const [first, last] = target.tcpPorts
  const PORTS_OF_ONE = 250
  const holders: Control[] = []
  for (let left = last - first + 1; left > 0; left -= PORTS_OF_ONE) {
    try {
      const control = await Control.open(target, { wire: 'streams', token: target.token })
      holders.push(control)
      let answers = 0
      const { promise, resolve } = Promise.withResolvers<void>()
      control.socket.once('close', () => resolve())
      control.heard = ({ type }) => {
        add(tally, type === 'granted' ? 'ports' : 'ports refused')
        if (++answers === PORTS_OF_ONE) resolve()
      }
      // Below what counts as a flood.
      for (let ref = 1; ref <= PORTS_OF_ONE; ref++) {
        await send(control.socket, controlFrame({ type: 'register', ref, kind: 'tcp' }))
      }
      await Promise.race([promise, Bun.sleep(3_000)])
    } catch {
      // Refused: a bound was reached, and what is held stays.
    }
  }
  return holders
}

export const attacks: readonly Attack[] = [
  {
    name: 'register-release',
    does: '4 clients that register a name and release it, without end',
    attack: (target, tally, until) =>
      flood(target, tally, until, 4, index =>
        repeated(number =>
          number % 2 === 0
            ? { type: 'register', ref: number, kind: 'http', name: `flood-${index}` }
            : { type: 'release', tunnel: number },
        ),
      ),
  },
  {
    name: 'register-refused',
    does: '4 clients that register a name which another one holds, without end',
    attack: (target, tally, until) => {
      const batch = repeated(ref => ({ type: 'register', ref, kind: 'http', name: 'app' }))
      return flood(target, tally, until, 4, () => batch)
    },
  },
  {
    name: 'register-guarded',
    does: '4 clients that register names with a guard of 1,000 networks and release them, without end',
    attack: (target, tally, until) => {
      const networks = Array.from({ length: 500 }, (_, index) => `2001:db8:${index.toString(16)}::/64`)
      const guard = { sessionMs: 1_000, key: 'k'.repeat(32), allow: networks, deny: networks }
      return flood(target, tally, until, 4, index =>
        repeated(
          number =>
            number % 2 === 0
              ? {
                  type: 'register',
                  ref: number,
                  kind: 'guarded-http',
                  name: `flood-${index}-${number}`,
                  guard,
                }
              : { type: 'release', tunnel: number },
          64,
        ),
      )
    },
  },
  {
    name: 'ports-all-taken',
    does: 'a client that asks for a port 1,000 times at once, when none is left',
    // Ports stay with their client for the lease, and each has its listener.
    bounds: { keptFiles: 600 },
    async attack(target, tally, until) {
      const holders = await takePorts(target, tally)
      const batch = repeated(ref => ({ type: 'register', ref, kind: 'tcp' }))
      await flood(target, tally, until, 2, () => batch)
      for (const { socket } of holders) socket.destroy()
    },
  },
]
