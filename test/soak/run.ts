// Hours of visitors, aborts and broken carriers; at the end nothing may be left of it: `bun test/soak/run.ts`.
//
//   --minutes N   how long (default 3); --hours N
//   --workers N   visitors at a time (default 24)
//   --rate N      visits a second of all of them; default 0, which is as many as they can
//
// Server and client run in processes of their own, with a proxy between them that breaks the carrier; by turns each has
// a listener for every request. A census of both is taken after a warm-up and after every quarter, each
// time without visitors: resident memory, open files, and the objects that stand for connections, streams, sockets
// and timers. They must not grow. Exits with 1 if they do, or if a single answer was wrong, or was missing while no
// carrier had been broken.

import { once } from 'node:events'
import { readdirSync, readlinkSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import type { Subprocess } from 'bun'
import { WebSocketServer } from 'ws'
import { readFlags } from '../../benchmarks/measure/flags.ts'
import { MAX_SPARE_PIPES } from '../../src/accelerator/job.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import type { Census } from './end.ts'
import { type Destination, KINDS, type Outcome, pattern } from './visits.ts'

const options = readFlags(
  import.meta.path,
  {
    minutes: { type: 'string' },
    hours: { type: 'string' },
    workers: { type: 'string', default: '24' },
    rate: { type: 'string', default: '0' },
  },
  ['minutes', 'hours', 'workers', 'rate'],
)
const totalMs = (Number(options.minutes ?? 0) + Number(options.hours ?? 0) * 60 || 3) * 60_000
const workers = Number(options.workers)
const rate = Number(options.rate)

/** Streams idle for 4 s are closed, and the app has 5 s to agree; two sweeps later all of it is gone. */
const QUIET_MS = 11_000
/** Links close once two sweeps of 30 s found them idle, and the third forgets them. */
const LONG_QUIET_MS = 95_000
/** After the carrier broke: until the client is back, answers may fail. */
const RECOVERY_MS = 3_000
const CUT_EVERY_MS = 5_000
/** Allocators keep what they once needed; a leak of one object a visit would be far more. */
const TOLERATED_BYTES = 24 * 1024 * 1024
/** Both ends of those that the splicing thread keeps for the next downloads: how many there were at once is chance. */
const KEPT_PIPE_ENDS = 2 * MAX_SPARE_PIPES
/** A sweep may be a tick away. */
const TOLERATED_OBJECTS = 2

const origin = createServer((request, answer) => {
  const { pathname } = new URL(request.url ?? '/', 'http://app')
  if (pathname === '/echo') {
    answer.writeHead(200, { 'Content-Length': request.headers['content-length'] })
    request.pipe(answer)
    return
  }
  if (pathname === '/broken') {
    answer.writeHead(200, { 'Content-Length': 1_000_000 })
    answer.write(pattern.subarray(0, 100_000))
    setTimeout(() => answer.destroy(), 5)
    return
  }
  answer.end(pattern.subarray(0, Number(pathname.slice('/bytes/'.length))))
})
const sockets = new WebSocketServer({ server: origin, path: '/ws' })
sockets.on('connection', socket => socket.on('message', (bytes, binary) => socket.send(bytes, { binary })))
origin.listen(0, '127.0.0.1')
await once(origin, 'listening')
const address = origin.address()
const originPort = typeof address === 'object' ? address?.port : undefined

class End {
  readonly #child: Subprocess
  readonly #messages: ((message: unknown) => void)[] = []

  constructor(args: readonly string[]) {
    this.#child = Bun.spawn({
      cmd: ['bun', join(import.meta.dir, 'end.ts'), ...args],
      stdio: ['ignore', 'inherit', 'inherit'],
      ipc: message => this.#messages.shift()?.(message),
    })
  }

  get pid(): number {
    return this.#child.pid
  }

  next(): Promise<unknown> {
    return new Promise(resolve => this.#messages.push(resolve))
  }

  async census(): Promise<Row> {
    const answer = this.next()
    this.#child.send('census')
    // Our own process, and the type it sends.
    const { rssBytes, heapBytes, objects } = (await answer) as Census
    return {
      'resident MiB': Math.round(rssBytes / 1024 / 1024),
      'heap KiB': Math.round(heapBytes / 1024),
      ...descriptors(this.pid),
      ...objects,
    }
  }

  async stop(): Promise<void> {
    this.#child.kill('SIGTERM')
    await this.#child.exited
  }
}

type Row = Readonly<Record<string, number>>

function descriptors(pid: number): Row {
  const counts = { files: 0, pipes: 0, 'kernel sockets': 0 }
  for (const fd of readdirSync(`/proc/${pid}/fd`)) {
    try {
      const target = readlinkSync(`/proc/${pid}/fd/${fd}`)
      if (target.startsWith('socket:')) counts['kernel sockets']++
      else if (target.startsWith('pipe:')) counts.pipes++
      else counts.files++
    } catch {
      // Closed between the two calls.
    }
  }
  return counts
}

const outcomes = new Map<string, number>()
const failures: string[] = []
let brokenUntil = 0
let isRunning = false

/** When the next visit is due, on the clock of `performance.now()`. */
let dueAt = 0

/** Waits until a visit is due. Visits that fell behind are not made up for: the rate is an upper bound. */
async function due(): Promise<void> {
  if (rate === 0) return
  const now = performance.now()
  dueAt = Math.max(dueAt, now) + 1_000 / rate
  await Bun.sleep(dueAt - now)
}

async function worker(): Promise<void> {
  while (isRunning) {
    await due()
    const kind = pickKind()
    const began = performance.now()
    const outcome = await kind.run(to).catch((): Outcome => 'broken')
    outcomes.set(`${kind.name}: ${outcome}`, (outcomes.get(`${kind.name}: ${outcome}`) ?? 0) + 1)
    const isExcused = began < brokenUntil || performance.now() < brokenUntil
    if (outcome === 'wrong' || ((outcome === 'refused' || outcome === 'broken') && !isExcused)) {
      failures.push(`${kind.name} was ${outcome} after ${Math.round(performance.now() - began)} ms`)
    }
  }
}

const weights = KINDS.reduce((sum, { weight }) => sum + weight, 0)
function pickKind(): (typeof KINDS)[number] {
  let at = Math.random() * weights
  for (const kind of KINDS) {
    at -= kind.weight
    if (at < 0) return kind
  }
  return KINDS[0]!
}

async function visits(ms: number, quietMs: number): Promise<void> {
  isRunning = true
  const running = Array.from({ length: workers }, worker)
  const until = performance.now() + ms
  for (let cut = 0; performance.now() < until; cut++) {
    await Bun.sleep(Math.min(CUT_EVERY_MS, until - performance.now()))
    // Not shortly before the end: the count then needs the client.
    if (until - performance.now() < RECOVERY_MS) continue
    brokenUntil = performance.now() + RECOVERY_MS
    proxy.cutAll(cut % 2 === 0 ? 'reset' : 'end')
  }
  isRunning = false
  await Promise.all(running)
  await Bun.sleep(quietMs)
}

function show(title: string, rows: Readonly<Record<string, Row>>): void {
  console.log(`\n${title}`)
  const names = Object.keys(Object.values(rows)[0] ?? {})
  for (const name of names) {
    console.log(
      `  ${name.padEnd(20)}${Object.values(rows)
        .map(row => `${row[name] ?? 0}`.padStart(10))
        .join('')}`,
    )
  }
}

function growth(which: string, before: Row, after: Row): string[] {
  return Object.entries(after).flatMap(([name, count]) => {
    const grown = count - (before[name] ?? 0)
    if (name === 'heap KiB') return grown > 4_096 ? [`${which}: heap grew by ${grown} KiB`] : []
    if (name === 'resident MiB') {
      return grown * 1024 * 1024 > TOLERATED_BYTES ? [`${which}: resident memory grew by ${grown} MiB`] : []
    }
    if (name === 'pipes') return count > KEPT_PIPE_ENDS ? [`${which}: ${count} pipes are open`] : []
    if (name === 'told, not ended') return count > 0 ? [`${which}: ${count} ends were never told`] : []
    return grown > TOLERATED_OBJECTS ? [`${which}: ${grown} more of ${name}`] : []
  })
}

const server = new End(['server'])
// Its first message.
const { ready: port } = (await server.next()) as { readonly ready: number }
const proxy = new TcpProxy(port)
const client = new End(['client', `${proxy.port}`, `${originPort}`, 'app'])
await client.next()
const to: Destination = { port, host: 'app.localhost' }

const ends = { server, client }
const censuses: Record<keyof typeof ends, Record<string, Row>> = { server: {}, client: {} }
const take = async (when: string): Promise<void> => {
  for (const which of ['server', 'client'] as const) censuses[which][when] = await ends[which].census()
  const [first, second] = [censuses.server[when], censuses.client[when]]
  console.log(
    `${when}: server ${first?.['resident MiB']} MiB, client ${second?.['resident MiB']} MiB, ${total()} visits`,
  )
}
const total = (): number => [...outcomes.values()].reduce((sum, count) => sum + count, 0)

await visits(Math.min(totalMs / 4, 120_000), LONG_QUIET_MS)
await take('warm')
for (const quarter of [1, 2, 3, 4]) {
  await visits(totalMs / 4, quarter === 4 ? LONG_QUIET_MS : QUIET_MS)
  await take(`${quarter}/4`)
}
for (const which of ['server', 'client'] as const)
  show(`${which}: warm, and after each quarter`, censuses[which])
console.log('\nvisits')
for (const [outcome, count] of [...outcomes].toSorted(([one], [other]) => one.localeCompare(other)))
  console.log(`  ${outcome.padEnd(40)}${count}`)

const grown = (['server', 'client'] as const).flatMap(which =>
  growth(which, censuses[which].warm ?? {}, censuses[which]['4/4'] ?? {}),
)
const runHours = totalMs / 3_600_000
for (const which of ['server', 'client'] as const) {
  const [first, last] = [censuses[which]['1/4'], censuses[which]['4/4']].map(
    row => row?.['resident MiB'] ?? 0,
  )
  // Three quarters lie between the two counts.
  const perHour = (last! - first!) / (runHours * 0.75)
  console.log(`${which}: ${first} MiB after a quarter, ${last} at the end: ${perHour.toFixed(1)} MiB an hour`)
}
console.log(`\n${failures.length} failures of ${total()} visits`)
for (const failure of [...failures.slice(0, 20), ...grown]) console.log(`  ✗ ${failure}`)
await client.stop()
await server.stop()
proxy[Symbol.dispose]()
origin.close()
process.exit(failures.length + grown.length === 0 ? 0 : 1)
