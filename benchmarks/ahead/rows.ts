// The rows of the comparison: each makes one load on one tunnel and gives the figures that the table draws from.

import { run } from '../load/load.ts'
import { hold, keepBusy } from '../load/own.ts'
import { observe } from '../measure/observe.ts'
import { residentBytes } from '../measure/proc.ts'
import type { Tunnel } from '../peers/peer.ts'

/** Figures of one row on one tunnel in one round. */
export type Figures = Readonly<Record<string, number>>

export interface Row {
  readonly id: string
  readonly what: string
  /** Needs processes that have done nothing yet. */
  readonly fresh?: true
  run(tunnel: Tunnel, originPids: readonly number[], seconds: number): Promise<Figures>
}

export const ROWS: readonly Row[] = [
  small('t50', 50),
  small('t100', 100),
  small('t1', 1),
  small('t10', 10),
  small('t500', 500),
  {
    id: 'close10',
    what: 'GET 20 B, a new connection for every request, 10 at a time',
    run: (tunnel, originPids, seconds) =>
      observe(tunnel, originPids, () =>
        run(
          tunnel.endpoints.files!,
          { kind: 'closed', path: '/20', connections: 10, seconds, reconnect: true },
          'own',
        ),
      ),
  },
  sized('64k10', '/64k', 10),
  sized('1m10', '/1m', 10),
  bulk('down', 'down', '100 MB down, one stream', '/100m', 104_857_600, 1),
  bulk('down10', 'down', '10 × 10 MB down at once', '/10m', 10_485_760, 10),
  bulk('up', 'up', '100 MB up, one stream', '/', 104_857_600, 1),
  rate('open1000', 1_000),
  rate('open4000', 4_000),
  { id: 'held', what: '1,000 open visitor connections', fresh: true, run: held },
  { id: 'mixed', what: '20 B at 500/s, alone and beside a bulk download', run: mixed },
]

function small(id: string, connections: number): Row {
  const plural = connections === 1 ? '' : 's'
  return { ...sized(id, '/20', connections), what: `GET 20 B, ${connections} connection${plural}` }
}

function sized(id: string, path: string, connections: number): Row {
  return {
    id,
    what: `GET ${path}, ${connections} connections`,
    run: (tunnel, originPids, seconds) =>
      observe(tunnel, originPids, () =>
        run(tunnel.endpoints.files!, { kind: 'closed', path, connections, seconds }),
      ),
  }
}

function bulk(
  id: string,
  kind: 'down' | 'up',
  what: string,
  path: string,
  bytes: number,
  parallel: number,
): Row {
  return {
    id,
    what,
    run: (tunnel, originPids, seconds) =>
      observe(tunnel, originPids, () =>
        run(tunnel.endpoints[kind === 'up' ? 'sink' : 'files']!, {
          kind,
          path,
          bytes,
          parallel,
          seconds: seconds / 2,
        }),
      ),
  }
}

/**
 * What the marks were measured with. In less, p99 at 1,000/s is a handful of requests: those of visitors that are new,
 * whose number does not depend on how long the load lasts.
 */
const OPEN_LOOP_SECONDS = 4

function rate(id: string, perSecond: number): Row {
  return {
    id,
    what: `GET 20 B, open loop at ${perSecond}/s`,
    run: (tunnel, originPids, wished) => {
      const seconds = wished > 1 ? Math.max(wished, OPEN_LOOP_SECONDS) : wished
      return observe(tunnel, originPids, () =>
        run(tunnel.endpoints.files!, { kind: 'open', path: '/20', rate: perSecond, seconds }),
      )
    },
  }
}

/** How long memory is given to settle after the connections stand: what is freed at once does not count. */
const SETTLE_MS = 300

async function held(tunnel: Tunnel): Promise<Figures> {
  const pids = [...tunnel.processes.server, ...tunnel.processes.client]
  const before = residentBytes(pids)
  const idle = {
    server: residentBytes(tunnel.processes.server),
    client: residentBytes(tunnel.processes.client),
  }
  const connections = await hold(tunnel.endpoints.files!, 1_000)
  try {
    await Bun.sleep(SETTLE_MS)
    const added = residentBytes(pids) - before
    return {
      held: connections.connections,
      kbPerConnection: added / 1024 / 1_000,
      idleServerMb: idle.server / 1e6,
      idleClientMb: idle.client / 1e6,
      heldServerMb: residentBytes(tunnel.processes.server) / 1e6,
      heldClientMb: residentBytes(tunnel.processes.client) / 1e6,
      serverReadyMs: tunnel.readyMs.server,
      clientReadyMs: tunnel.readyMs.client,
    }
  } finally {
    await connections.release()
  }
}

async function mixed(tunnel: Tunnel, originPids: readonly number[], seconds: number): Promise<Figures> {
  const small = { kind: 'open', path: '/20', rate: 500, seconds: Math.max(2, seconds) } as const
  const alone = await observe(tunnel, originPids, () => run(tunnel.endpoints.files!, small))
  const download = await keepBusy(tunnel.endpoints.files!, '/100m')
  try {
    const beside = await observe(tunnel, originPids, () => run(tunnel.endpoints.files!, small))
    const factor = (beside.p99 ?? Number.NaN) / (alone.p99 ?? Number.NaN)
    return { p99Alone: alone.p99!, p99Beside: beside.p99!, factor, errors: alone.errors! + beside.errors! }
  } finally {
    await download.release()
  }
}
