// Honest visitors of a cluster: `visitors-process.ts SPEC`. They come at a steady rate, whatever happens to those before, and some stay on
// their connections. Prints `visit {…}` for each visit that is over.

import type { Socket } from 'node:net'
import { Random } from '../support/random.ts'
import type { Judgement } from './answer.ts'
import { type Asked, ask, converse, type Kind, open, type Server } from './visit.ts'

export interface VisitorsSpec {
  readonly servers: readonly Server[]
  readonly names: readonly string[]
  readonly seed: number
  /** Visits on connections of their own that begin in a second. */
  readonly rate: number
  /** Visitors that keep their connections; each asks about five times a second. */
  readonly keeping: number
}

/** One visit. Times are milliseconds since 1970. */
export interface Visit {
  readonly kind: Kind
  readonly name: string
  /** Where it was served, or was to be. */
  readonly server: number
  readonly begin: number
  readonly end: number
  readonly judgement: Judgement
  /** Servers that did not take the connection. */
  readonly elsewhere: number
}

const { servers, names, seed, rate, keeping } = JSON.parse(process.argv[2] ?? '') as VisitorsSpec // its own type
const random = new Random(seed)
let ids = 0
let isOver = false
let underWay = 0

/** Of a hundred visits: so many of each kind. */
const KINDS: readonly (readonly [kind: Kind, share: number])[] = [
  ['get', 55],
  ['post', 20],
  ['chunked', 8],
  ['long', 7],
  ['cut', 3],
  ['socket', 7],
]
/** What hangs may be much, but not everything that there is. */
const MAX_UNDER_WAY = 3_000

function wish(kind: Kind): Asked {
  const id = ++ids
  const name = random.pick(names)
  const isLasting = kind === 'chunked' || kind === 'long' || kind === 'cut'
  const bytes =
    kind === 'socket'
      ? 2 + random.below(30)
      : isLasting
        ? 20_000 + random.below(2_000_000)
        : random.below(kind === 'post' ? 100_000 : 20_000)
  // A long answer lasts up to 6 s, and so does a WebSocket.
  return { kind, name, id, bytes, everyMs: random.below(kind === 'socket' ? 200 : 300) }
}

function kindOf(): Kind {
  let left = random.below(100)
  for (const [kind, share] of KINDS) {
    if (left < share) return kind
    left -= share
  }
  return 'get'
}

const now = (): number => performance.timeOrigin + performance.now()

interface Connected {
  readonly socket: Socket
  readonly at: number
  readonly elsewhere: number
}

/** At the server whose turn it is, or the first after it that takes connections. */
async function connect(first: number): Promise<Connected | undefined> {
  for (let elsewhere = 0; elsewhere < servers.length; elsewhere++) {
    const at = (first + elsewhere) % servers.length
    const socket = await open(servers[at]!).catch(() => undefined)
    if (socket !== undefined) return { socket, at, elsewhere }
  }
  return undefined
}

function tell(asked: Asked, begin: number, server: number, elsewhere: number, judgement: Judgement): void {
  const visit: Visit = { kind: asked.kind, name: asked.name, server, begin, end: now(), judgement, elsewhere }
  console.log(`visit ${JSON.stringify(visit)}`)
}

async function visit(): Promise<void> {
  const asked = wish(kindOf())
  const begin = now()
  const first = random.below(servers.length)
  underWay++
  try {
    const connected = await connect(first)
    if (connected === undefined)
      return tell(asked, begin, first, servers.length, 'failed: no server takes connections')
    const { socket, at, elsewhere } = connected
    const judgement =
      asked.kind === 'socket' ? await converse(socket, asked) : (await ask(socket, asked, false)).judgement
    tell(asked, begin, at, elsewhere, judgement)
  } finally {
    underWay--
  }
}

/** Asks again and again on one connection, until it is told to go. */
async function keep(): Promise<void> {
  let connected: Connected | undefined
  underWay++
  while (!isOver) {
    // Below `drainIdleMs`: a server that stops serves whoever asks so often once more, and says that it is the last time.
    await Bun.sleep(100 + random.below(200))
    const asked = wish(random.chance(0.2) ? 'post' : 'get')
    const begin = now()
    if (connected?.socket.destroyed !== false) connected = await connect(random.below(servers.length))
    if (connected === undefined) {
      tell(asked, begin, 0, servers.length, 'failed: no server takes connections')
      continue
    }
    const { at, elsewhere, socket } = connected
    const { judgement, isOpen } = await ask(socket, asked, true)
    tell(asked, begin, at, elsewhere, judgement)
    // Now and then at another server.
    if (!isOpen || random.chance(0.02)) {
      socket.destroy()
      connected = undefined
    }
  }
  connected?.socket.destroy()
  underWay--
}

const timer = setInterval(() => {
  if (underWay < MAX_UNDER_WAY) void visit()
}, 1_000 / rate)
for (let count = 0; count < keeping; count++) void keep()

// No new visits; those that are under way end.
process.on('SIGTERM', () => {
  isOver = true
  clearInterval(timer)
  setInterval(() => {
    if (underWay === 0) process.exit(0)
  }, 20)
})
console.log('ready')
