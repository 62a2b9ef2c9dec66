// Memory while somebody does not read: server and client, each in a process of its own, against their idle size.
//
//   bun benchmarks/stalled.ts              1 GiB down to a stalled reader, 1 GiB up to a stalled origin, then ten at once
//   bun benchmarks/stalled.ts --gib 5      5 GiB down and up, read as it comes
//
// In the end all of it is read and compared. Exit code 1: a process grew by more than 40 MiB while nobody read, or by
// more than 64 MiB in all (96 with ten at once: what ten at full speed leave to the collector), or a byte was wrong.

import { dialBun, listenBun } from '../src/sockets/bun.ts'
import { PatternedEnd } from './load/patterned.ts'
import { interrupted, launch, stopAll } from './measure/children.ts'
import { readFlags } from './measure/flags.ts'
import { forgetPeak, peakBytes, residentBytes } from './measure/proc.ts'

const MIB = 1_048_576
const STALLED_BOUND_MIB = 40
const BOUND_MIB = 64
const BOUND_OF_TEN_MIB = 96
/** How long nobody reads. Buffers fill up in a tenth of it. */
const STALL_MS = 3_000
const HOST = 'stalled.localhost'

interface Grown {
  readonly server: number
  readonly client: number
}

interface Row {
  readonly name: string
  /** MiB above idle, at the most: until somebody read on, and over the whole of it. */
  readonly stalled: Grown | undefined
  readonly most: Grown
  /** Bytes that left the sender while nobody read, for each transfer. */
  readonly swallowedMib: number | undefined
  readonly mibPerSecond: number
  readonly isRight: boolean
  readonly isBounded: boolean
}

// Whatever ends this early, `children.ts` ends the processes with it.
interrupted.addEventListener('abort', () => process.exit(130))

const values = readFlags(import.meta.path, { gib: { type: 'string' } }, ['gib'])
const here = import.meta.dir
const server = await launch(['bun', `${here}/ours/server.ts`], { ready: /listening (\d+)/ })
const port = Number(server.match?.[1])

const arrivals: ((app: PatternedEnd) => void)[] = []
const origin = listenBun({
  hostname: '127.0.0.1',
  accept(socket) {
    const app = new PatternedEnd()
    app.socket = socket
    app.onHead = () => arrivals.shift()?.(app)
    return app
  },
})
const client = await launch(
  ['bun', `${here}/ours/client.ts`, `${port}`, `${origin.port}`, 'stalled', 'streams'],
  {
    ready: /connected/,
  },
)

/** Begins one transfer. Returns who sends and who receives; neither was told to pause. */
async function begin(
  direction: 'down' | 'up',
  size: number,
): Promise<{ from: PatternedEnd; to: PatternedEnd }> {
  const arrived = new Promise<PatternedEnd>(resolve => arrivals.push(resolve))
  const visitor = new PatternedEnd()
  visitor.socket = await dialBun({ host: '127.0.0.1', port }, visitor)
  if (direction === 'up') {
    visitor.send(`POST / HTTP/1.1\r\nHost: ${HOST}\r\nContent-Length: ${size}\r\n\r\n`, size)
    return { from: visitor, to: await arrived }
  }
  visitor.send(`GET / HTTP/1.1\r\nHost: ${HOST}\r\n\r\n`, 0)
  const app = await arrived
  app.send(`HTTP/1.1 200 OK\r\nContent-Length: ${size}\r\n\r\n`, size)
  return { from: app, to: visitor }
}

async function measure(
  name: string,
  direction: 'down' | 'up',
  size: number,
  count: number,
  stalls: boolean,
): Promise<Row> {
  const idle = { server: residentBytes([server.pid]), client: residentBytes([client.pid]) }
  forgetPeak([server.pid, client.pid])
  const since = performance.now()
  const transfers = await Promise.all(Array.from({ length: count }, () => begin(direction, size)))
  const grown = (): Grown => ({
    server: (peakBytes([server.pid]) - idle.server) / MIB,
    client: (peakBytes([client.pid]) - idle.client) / MIB,
  })
  let swallowedMib: number | undefined
  let stalled: Grown | undefined
  if (stalls) {
    for (const { to } of transfers) to.socket?.pause()
    await Bun.sleep(STALL_MS)
    swallowedMib =
      transfers.reduce((sum, { from, to }) => sum + from.sentBytes - to.receivedBytes, 0) / count / MIB
    stalled = grown()
    for (const { to } of transfers) to.socket?.resume()
  }
  await Promise.all(transfers.map(({ to }) => to.all(size)))
  const seconds = (performance.now() - since - (stalls ? STALL_MS : 0)) / 1_000
  const isRight = transfers.every(({ to }) => to.receivedBytes === size && to.wrongPieces === 0)
  for (const { from, to } of transfers) for (const end of [from, to]) end.socket?.terminate()
  // The server learns of connections that end here; a POST on one of them would fail.
  await Bun.sleep(500)
  const most = grown()
  const bound = count > 1 ? BOUND_OF_TEN_MIB : BOUND_MIB
  return {
    name,
    stalled,
    most,
    swallowedMib,
    mibPerSecond: (size * count) / MIB / seconds,
    isRight,
    isBounded: largest(most) <= bound && largest(stalled) <= STALLED_BOUND_MIB,
  }
}

let isGood = false
try {
  isGood = await run()
} finally {
  origin.stop(true)
  await stopAll()
}
process.exit(isGood ? 0 : 1)

async function run(): Promise<boolean> {
  // One small exchange each way first: code that runs for the first time also costs memory.
  await measure('warm-up', 'down', 8 * MIB, 4, false)
  await measure('warm-up', 'up', 8 * MIB, 4, false)
  console.log(
    `idle: server ${inMib(residentBytes([server.pid]))} MiB, client ${inMib(residentBytes([client.pid]))} MiB\n`,
  )

  const rows: Row[] = []
  if (values.gib === undefined) {
    rows.push(await measure('1 GiB down, reader stalls', 'down', 1_024 * MIB, 1, true))
    rows.push(await measure('1 GiB up, origin stalls', 'up', 1_024 * MIB, 1, true))
    rows.push(await measure('10 x 100 MiB down, readers stall', 'down', 100 * MIB, 10, true))
    rows.push(await measure('10 x 100 MiB up, origin stalls', 'up', 100 * MIB, 10, true))
  } else {
    const size = Number(values.gib) * 1_024 * MIB
    rows.push(await measure(`${values.gib} GiB down`, 'down', size, 1, false))
    rows.push(await measure(`${values.gib} GiB up`, 'up', size, 1, false))
  }

  console.log(
    '| MiB above idle: | server, stalled | client, stalled | server, most | client, most | swallowed each | MiB/s when read | bytes |',
  )
  console.log('|---|---:|---:|---:|---:|---:|---:|---|')
  for (const { name, stalled, most, swallowedMib, mibPerSecond, isRight } of rows) {
    const sizes = [stalled?.server, stalled?.client, most.server, most.client, swallowedMib]
    const cells = sizes.map(mib => mib?.toFixed(1) ?? '')
    console.log(`| ${[name, ...cells, mibPerSecond.toFixed(0), isRight ? 'right' : 'WRONG'].join(' | ')} |`)
  }
  return rows.every(row => row.isRight && row.isBounded)
}

function largest(grown: Grown | undefined): number {
  return grown === undefined ? 0 : Math.max(grown.server, grown.client)
}

function inMib(bytes: number): string {
  return (bytes / MIB).toFixed(1)
}
