// Everything that a client with a token can keep: names that it registers and drops, and ports.

import type { Attack } from '../scene/attack.ts'
import { HONEST_TOKEN } from '../scene/attack.ts'
import { add, Control, controlFrame, loops, send } from '../scene/wire.ts'
import { takePorts } from './control-floods.ts'

/** The names that one connection registers before it is dropped: each stays for the lease. */
const NAMES_OF_ONE = 250
/** What one token may hold here, leases included: those of a whole attack are still running at its end. */
const MOST_NAMES = 2_000
/** Of the 500 that the server has here. */
const MOST_PORTS = 300

let nextName = 0

export const attacks: readonly Attack[] = [
  {
    name: 'register-and-drop',
    does: 'clients that register 250 names and drop the connection, again and again',
    server: { limits: { maxTokenTunnels: MOST_NAMES } },
    attack: (target, tally, until) =>
      loops(8, until, async () => {
        const control = await Control.open(target, { wire: 'streams', token: target.token })
        add(tally, 'connections')
        let answers = 0
        const { promise, resolve } = Promise.withResolvers<void>()
        control.socket.once('close', () => resolve())
        control.heard = ({ type }) => {
          add(tally, String(type))
          if (++answers === NAMES_OF_ONE) resolve()
        }
        const all = Array.from({ length: NAMES_OF_ONE }, (_, ref) =>
          controlFrame({ type: 'register', ref, kind: 'http', name: `hoard-${process.pid}-${nextName++}` }),
        )
        await send(control.socket, Buffer.concat(all), until)
        await Promise.race([promise, Bun.sleep(2_000)])
        control.socket.destroy()
      }),
    judge: ({ tally }) =>
      (tally.granted ?? 0) > MOST_NAMES
        ? [`${tally.granted!.toLocaleString('en-US')} names were granted to one token`]
        : [],
  },
  {
    name: 'ports-used-up',
    does: 'one token that takes every port it can get, over many connections',
    // Ports stay with their client for the lease, and each has its listener.
    bounds: { keptFiles: 600 },
    server: { limits: { maxTokenPorts: MOST_PORTS } },
    async attack(target, tally, until) {
      const holders = await takePorts(target, tally)
      await loops(
        1,
        until,
        async () => {
          const control = await Control.open(target, {
            wire: 'streams',
            token: HONEST_TOKEN,
            address: '127.0.0.31',
          })
          control.socket.write(controlFrame({ type: 'register', ref: 1, kind: 'tcp' }))
          const { type } = await control.next(['granted', 'refused'])
          add(tally, type === 'granted' ? 'another token got a port' : 'another token got none')
          control.socket.destroy()
        },
        300,
      )
      for (const { socket } of holders) socket.destroy()
    },
    judge: ({ tally }) =>
      (tally['another token got none'] ?? 0) > 0
        ? [`another token got no port ${tally['another token got none']} times`]
        : [],
  },
]
