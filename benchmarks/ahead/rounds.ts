// Interleaved rounds: every row on every tunnel in turn, every other round in reverse order.

import { WARM_UP_SECONDS, warmUp } from '../load/warm.ts'
import { interrupted } from '../measure/children.ts'
import { type RunningOrigins, startOrigins } from '../origin/origin.ts'
import type { Origins, Peer, Tunnel } from '../peers/peer.ts'
import { checkTunnel } from './check.ts'
import type { Figures, Row } from './rows.ts'
import type { Measured } from './verdict.ts'

export interface RoundsOptions {
  readonly peers: readonly Peer[]
  readonly rows: readonly Row[]
  readonly rounds: number
  /** Length of one measurement. */
  readonly seconds: number
  readonly origin: 'nginx' | 'bun'
  say(this: void, line: string): void
}

/** Filled while it runs, so that an interrupted run keeps what it has. */
export interface Rounds {
  readonly measured: readonly Measured[]
  /** Peers that ran, with their versions. */
  readonly versions: Readonly<Record<string, string>>
  /** Peers that did not, with the reason. */
  readonly skipped: Readonly<Record<string, string>>
  origins(): RunningOrigins['kinds']
  /** Resolves when all is measured or the run was interrupted. */
  readonly done: Promise<void>
}

export function measureRounds(options: RoundsOptions): Rounds {
  const { peers, rounds, seconds, say } = options
  const measured: Measured[] = []
  const versions: Record<string, string> = {}
  const skipped: Record<string, string> = {}
  let kinds: RunningOrigins['kinds'] = {}
  let [began, total] = [performance.now(), 0]

  const all = async (): Promise<void> => {
    const origins = await startOrigins(options.origin)
    kinds = origins.kinds
    const installed = await detectAll()
    began = performance.now()
    total = rounds * options.rows.length * installed.length
    try {
      await freshRows(installed, origins)
      const rows = options.rows.filter(({ fresh }) => !fresh)
      if (rows.length > 0) await sharedRows(rows, await startAll(installed, origins), origins)
    } catch (error) {
      if (!interrupted.aborted) throw error
    }
  }

  const detectAll = async (): Promise<readonly Peer[]> => {
    const installed: Peer[] = []
    for (const peer of peers) {
      const detected = await peer.detect()
      if ('missing' in detected) {
        skipped[peer.name] = detected.missing
        say(`${peer.name}: ${detected.missing}`)
      } else {
        versions[peer.name] = detected.version
        installed.push(peer)
      }
    }
    return installed
  }

  /** Rows about what a new process does: one tunnel at a time, started for the row and stopped behind it. */
  const freshRows = async (installed: readonly Peer[], { ports, pids }: RunningOrigins): Promise<void> => {
    for (let round = 0; round < rounds; round++) {
      for (const row of options.rows.filter(({ fresh }) => fresh)) {
        for (const peer of installed) {
          await record(peer.name, row, round, async () => {
            const tunnel = await peer.start(ports)
            try {
              return await row.run(tunnel, pids, seconds)
            } finally {
              await tunnel.stop()
            }
          })
        }
      }
    }
  }

  const startAll = async (
    installed: readonly Peer[],
    { ports }: RunningOrigins,
  ): Promise<Map<string, Tunnel>> => {
    const started = new Map<string, Tunnel>()
    for (const peer of installed) {
      for (let attempt = 1; attempt <= START_ATTEMPTS && !started.has(peer.name); attempt++) {
        interrupted.throwIfAborted()
        try {
          started.set(peer.name, await startChecked(peer, ports))
          delete skipped[peer.name]
          say(`${peer.name} ${versions[peer.name]}: up and checked`)
        } catch (error) {
          skipped[peer.name] = reason(error)
          say(`${peer.name} failed the check (${attempt} of ${START_ATTEMPTS}): ${reason(error)}`)
        }
      }
    }
    return started
  }

  const sharedRows = async (
    rows: readonly Row[],
    tunnels: ReadonlyMap<string, Tunnel>,
    { pids }: RunningOrigins,
  ): Promise<void> => {
    await warmUp(tunnels.values(), seconds > 1 ? WARM_UP_SECONDS : seconds)
    interrupted.throwIfAborted()
    for (let round = 0; round < rounds; round++) {
      for (const row of rows) {
        const order = round % 2 ? [...tunnels].reverse() : [...tunnels]
        for (const [peer, tunnel] of order)
          await record(peer, row, round, () => row.run(tunnel, pids, seconds))
      }
    }
  }

  const record = async (
    peer: string,
    row: Row,
    round: number,
    take: () => Promise<Figures>,
  ): Promise<void> => {
    interrupted.throwIfAborted()
    try {
      measured.push({ peer, row: row.id, round, figures: await take() })
    } catch (error) {
      interrupted.throwIfAborted()
      measured.push({ peer, row: row.id, round, figures: null, failure: reason(error) })
    }
    progress(`round ${round + 1}/${rounds} ${row.id} ${peer}`)
  }

  const progress = (where: string): void => {
    const left = ((performance.now() - began) / measured.length) * (total - measured.length)
    const minutes = `${Math.floor(left / 60_000)}:${String(Math.floor((left / 1000) % 60)).padStart(2, '0')}`
    const line = `${measured.length}/${total} ${where}, ${minutes} left`
    if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${line}`)
    else if (measured.length % 10 === 0 || measured.length === total) say(line)
  }

  return { measured, versions, skipped, origins: () => kinds, done: all() }
}

/** One peer hangs now and then right after its start; ours gets as many chances as everybody. */
const START_ATTEMPTS = 3

async function startChecked(peer: Peer, ports: Origins): Promise<Tunnel> {
  const tunnel = await peer.start(ports)
  try {
    await checkTunnel(tunnel)
    return tunnel
  } catch (error) {
    await tunnel.stop()
    throw error
  }
}

/** A reason is a cell of a table. */
const MAX_REASON_CHARS = 120

export function reason(error: unknown): string {
  const line = error instanceof Error ? error.message.split('\n')[0]! : String(error)
  return line.length > MAX_REASON_CHARS ? `${line.slice(0, MAX_REASON_CHARS)}…` : line
}
