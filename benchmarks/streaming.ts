// Large answers streamed (streams wire) against buffered whole (JSON wire); server-sent events; a slow reader.
// `bun benchmarks/streaming.ts`

import { watchedGet } from './load/watched.ts'
import { interrupted, stopAll } from './measure/children.ts'
import { column, interleave, type Subject, type Taken } from './measure/interleave.ts'
import { forgetPeak, peakBytes } from './measure/proc.ts'
import type { Group } from './measure/result.ts'
import { startPeers } from './measure/running.ts'
import { conclude, printGroup, roundsOr, unlessQuick } from './measure/suite.ts'
import { FILE_SIZES } from './origin/origin.ts'
import type { Endpoint, Tunnel } from './peers/peer.ts'

const { tunnels, versions } = await startPeers([
  'direct',
  'ours-streams',
  'ours-json',
  'rathole',
  'frp-http',
  'ferrotunnel',
])
const rounds = roundsOr(5)
const groups: Group[] = []
const COLUMNS = [
  column('firstByte', 'first byte', 'ms', 'lower'),
  column('total', 'total', 'ms', 'lower'),
  column('serverPeak', 'server peak', 'MB', 'lower'),
  column('clientPeak', 'client peak', 'MB', 'lower'),
]

for (const name of unlessQuick(['10m', '100m'], ['10m'])) {
  const title = `${FILE_SIZES[name]! / 1_048_576} MB answer`
  await show(
    interleave(
      title,
      COLUMNS,
      subjects(tunnel => download(tunnel, name)),
      rounds,
    ),
  )
}
await show(
  interleave(
    'Server-sent events',
    [column('firstByte', 'first event', 'ms', 'lower'), column('total', 'last event', 'ms')],
    subjects(events),
    rounds,
    'The app sends one event at once and one after 500 ms.',
  ),
)
const slow = unlessQuick('100m', '10m')
await show(
  interleave(
    `Slow reader: ${FILE_SIZES[slow]! / 1_048_576} MB to a visitor that stops reading for a second`,
    COLUMNS,
    subjects(tunnel => download(tunnel, slow, 1_000)),
    rounds,
  ),
)
await conclude('streaming', 'Streaming', groups, versions)
await stopAll()
process.exit(interrupted.aborted ? 130 : 0)

async function show(measured: Promise<Group>): Promise<void> {
  const group = await measured
  groups.push(group)
  printGroup(group)
}

function subjects(take: (tunnel: Tunnel) => Promise<Taken>): readonly Subject[] {
  return [...tunnels].map(([name, tunnel]) => ({ name, take: () => take(tunnel) }))
}

async function download({ endpoints, processes }: Tunnel, name: string, pauseMs = 0): Promise<Taken> {
  forgetPeak([...processes.server, ...processes.client])
  const { status, firstByteMs, totalMs, bytes } = await watchedGet(endpoints.files!, `/${name}`, pauseMs)
  if (status !== 200) return `status ${status}`
  if (bytes !== FILE_SIZES[name]) return `cut after ${bytes} bytes`
  return {
    firstByte: firstByteMs,
    total: totalMs,
    serverPeak: peakBytes(processes.server) / 1e6,
    clientPeak: peakBytes(processes.client) / 1e6,
  }
}

async function events({ endpoints }: Tunnel): Promise<Taken> {
  const to: Endpoint = endpoints.sink!
  const { status, firstByteMs, totalMs } = await watchedGet(to, '/events')
  return status === 200 ? { firstByte: firstByteMs, total: totalMs } : `status ${status}`
}
