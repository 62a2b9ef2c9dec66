// Connections that say nothing, more of them than the server has descriptors.

import type { ServerLimits } from '../../../src/index.ts'
import type { Attack, Tally, Target } from '../scene/attack.ts'
import { closed } from '../scene/wait.ts'
import { add, loops, open, send } from '../scene/wire.ts'

/** Where the one who looks after the server asks from. */
const OPERATOR_ADDRESS = '127.0.0.30'
const OPERATOR_EVERY_MS = 250
const OPERATOR_TIMEOUT_MS = 2_000

/** Holds this many, from this many addresses, and opens again what was closed. */
async function hold(
  target: Target,
  tally: Tally,
  until: AbortSignal,
  connections: number,
  addresses: number,
): Promise<void> {
  const holdOne = async (index: number): Promise<void> => {
    const address = `127.0.${1 + Math.floor((index % addresses) / 250)}.${1 + ((index % addresses) % 250)}`
    const socket = await open({ port: target.port, address })
    add(tally, 'connections')
    await closed(socket, until)
    socket.destroy()
  }
  await loops(connections, until, holdOne, 500)
}

/** Asks the control host as an operator does, on a new connection each time. */
async function operate(target: Target, tally: Tally, until: AbortSignal): Promise<void> {
  const ask = async (): Promise<void> => {
    const answered = Promise.withResolvers<boolean>()
    const timer = setTimeout(() => answered.resolve(false), OPERATOR_TIMEOUT_MS)
    const socket = await open({ port: target.port, address: OPERATOR_ADDRESS, reads: false }).catch(
      () => undefined,
    )
    if (socket === undefined) answered.resolve(false)
    else {
      socket.once('data', bytes => answered.resolve(bytes.toString('latin1').startsWith('HTTP/1.1 200')))
      socket.once('close', () => answered.resolve(false))
      await send(socket, 'GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n')
    }
    const isFine = await answered.promise
    clearTimeout(timer)
    socket?.destroy()
    if (!until.aborted) add(tally, isFine ? 'operator answered' : 'operator not answered')
  }
  // The first connections of an attack are not yet the shortage.
  await Bun.sleep(OPERATOR_EVERY_MS)
  await loops(1, until, ask, OPERATOR_EVERY_MS)
}

interface Crowd {
  readonly limits?: Partial<ServerLimits>
  readonly name: string
  readonly connections: number
  readonly addresses: number
  readonly openFiles?: number
}

function idle({ name, connections, addresses, openFiles, limits }: Crowd): Attack {
  const from = addresses === 1 ? 'one address' : `${addresses} addresses`
  const bounds = Object.entries(limits ?? {}).map(([limit, value]) => `\`${limit}\` ${value}`)
  if (openFiles !== undefined) bounds.unshift(`\`ulimit -n ${openFiles}\``)
  const under = bounds.length === 0 ? '' : `, under ${bounds.join(' and ')}`
  return {
    name,
    does: `${connections} idle connections of ${from}${under}`,
    openFiles,
    server: { limits },
    // A server that is full of strangers from everywhere cannot know the honest one among them. It stays alive and calm,
    // and lets in who runs it.
    bounds:
      addresses > 1 && under !== ''
        ? { failures: Number.POSITIVE_INFINITY, p99Ms: Number.POSITIVE_INFINITY }
        : {},
    async attack(target, tally, until) {
      await Promise.all([hold(target, tally, until, connections, addresses), operate(target, tally, until)])
    },
    judge({ tally, serverCores }) {
      const harms: string[] = []
      const missed = tally['operator not answered'] ?? 0
      const asked = missed + (tally['operator answered'] ?? 0)
      // While hundreds come in each second, a connection that has not yet said what it wants may be cut for the next.
      if (missed > 1 && missed * 5 > asked) harms.push(`/health was not answered ${missed} of ${asked} times`)
      if (openFiles !== undefined && serverCores > 0.9)
        harms.push(`the server used ${serverCores.toFixed(2)} cores`)
      return harms
    },
  }
}

export const attacks: readonly Attack[] = [
  idle({ name: 'idle-5000', connections: 5_000, addresses: 500 }),
  idle({
    name: 'idle-256-one-address',
    connections: 500,
    addresses: 1,
    openFiles: 256,
    limits: { maxAddressVisitors: 60 },
  }),
  idle({ name: 'idle-256-many-addresses', connections: 500, addresses: 400, openFiles: 256 }),
  idle({ name: 'idle-past-max', connections: 1_000, addresses: 400, limits: { maxVisitors: 300 } }),
]
