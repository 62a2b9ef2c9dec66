// The honest visitors: `visitors-process.ts SPEC`. Prints four times a second what happened since the last time, as JSON.
//
// Each asks at its own steady pace, and a latency counts from the moment at which the request was due: a server that
// stops answering for a second is then seen in each request that should have been made meanwhile.

import { connect } from 'node:net'
import { HONEST_ADDRESS } from './attack.ts'
import { HttpConnection, type Outcome, type Place } from './http-connection.ts'
import { body } from './pattern.ts'

export interface VisitorsSpec {
  readonly port: number
  readonly isTls?: boolean
  readonly host: string
  readonly tcpPort: number
  readonly appPort: number
}

/** What happened since the last report. */
export interface Report {
  readonly right: number
  readonly wrong: number
  readonly failed: Readonly<Record<string, number>>
  /** Small requests through the tunnel, and the same straight to the app, in ms. */
  readonly latencies: readonly number[]
  readonly direct: readonly number[]
  /** Ages of the small requests that wait right now. */
  readonly waiting: readonly number[]
}

/** Longer than any honest request takes on a machine that is not under attack. */
const TIMEOUT_MS = 6_000
const REPORT_MS = 250
/** A visitor that is behind catches up, but not for more than this. */
const MOST_BEHIND_MS = 2_000

// The runner wrote it.
const spec = JSON.parse(process.argv[2] ?? '') as VisitorsSpec
const tunnel: Place = { port: spec.port, address: HONEST_ADDRESS, isTls: spec.isTls === true }
const app: Place = { port: spec.appPort, address: HONEST_ADDRESS }

let right = 0
let wrong = 0
let failed: Record<string, number> = {}
let latencies: number[] = []
let direct: number[] = []
const waiting = new Set<number>()
let nextId = 1

function count(what: string, outcome: Outcome): void {
  if (outcome === 'right') right++
  else if (outcome === 'wrong') wrong++
  else {
    const reason = `${what} ${outcome}`
    failed[reason] = (failed[reason] ?? 0) + 1
  }
}

const get = (id: number, bytes: number, last: boolean): string[] => [
  `GET /bytes/${bytes}?id=${id} HTTP/1.1\r\nHost: ${spec.host}\r\n${last ? 'Connection: close\r\n' : ''}\r\n`,
]

interface Manner {
  readonly what: string
  readonly place: Place
  readonly everyMs: number
  /** A new connection for each request. */
  readonly isFresh?: boolean
  readonly isTimed: boolean
  request(id: number): { readonly pieces: readonly (string | Uint8Array)[]; readonly bytes: number }
}

async function visit(manner: Manner): Promise<never> {
  const { place, everyMs, isFresh = false, isTimed, what } = manner
  let connection: HttpConnection | undefined
  let due = performance.now() + Math.random() * everyMs
  for (;;) {
    const early = due - performance.now()
    if (early > 0) await Bun.sleep(early)
    const wanted = due
    if (isTimed && place === tunnel) waiting.add(wanted)
    const id = nextId++
    const { pieces, bytes } = manner.request(id)
    let outcome: Outcome
    try {
      if (connection === undefined || !connection.isOpen || connection.isLast) {
        connection = await HttpConnection.open(place, TIMEOUT_MS)
      }
      outcome = await connection.ask(pieces, { id, bytes }, TIMEOUT_MS)
    } catch (error) {
      outcome = `failed: ${error instanceof Error ? error.message : String(error)}`
    }
    waiting.delete(wanted)
    count(what, outcome)
    if (isTimed) (place === tunnel ? latencies : direct).push(performance.now() - wanted)
    if (isFresh) {
      connection?.close()
      connection = undefined
    }
    due = Math.max(due + everyMs, performance.now() - MOST_BEHIND_MS)
  }
}

/** A raw conversation on one connection: what is sent comes back. */
async function converse(everyMs: number): Promise<never> {
  for (;;) {
    const { promise: over, resolve: end } = Promise.withResolvers<Outcome>()
    const socket = connect({ port: spec.tcpPort, host: '127.0.0.1', localAddress: HONEST_ADDRESS })
    let heard: (piece: Buffer) => void = () => {}
    socket.on('data', (piece: Buffer) => heard(piece))
    socket.on('error', (error: NodeJS.ErrnoException) => end(`failed: ${error.code ?? error.message}`))
    socket.on('close', () => end('failed: closed'))
    let outcome: Outcome = 'right'
    while (outcome === 'right') {
      await Bun.sleep(everyMs)
      const id = nextId++
      const sent = body(id, 300)
      let got = Buffer.alloc(0)
      const answered = new Promise<Outcome>(resolve => {
        heard = piece => {
          got = Buffer.concat([got, piece])
          if (got.length >= sent.length) resolve(got.equals(sent) ? 'right' : 'wrong')
        }
      })
      socket.write(sent)
      let timer: Timer | undefined
      const late = new Promise<Outcome>(resolve => {
        timer = setTimeout(() => resolve(`failed: no answer in ${TIMEOUT_MS} ms`), TIMEOUT_MS)
      })
      outcome = await Promise.race([answered, over, late])
      clearTimeout(timer)
      count('raw', outcome)
    }
    socket.destroy()
  }
}

const small = (id: number) => {
  const bytes = 1 + ((id * 7_919) % 2_000)
  return { pieces: get(id, bytes, false), bytes }
}
const KIB = 1024
for (let number = 0; number < 6; number++) {
  void visit({ what: 'kept', place: tunnel, everyMs: 100, isTimed: true, request: small })
}
for (let number = 0; number < 2; number++) {
  void visit({
    what: 'fresh',
    place: tunnel,
    everyMs: 250,
    isFresh: true,
    isTimed: true,
    request: id => ({ pieces: get(id, 700, true), bytes: 700 }),
  })
}
void visit({
  what: 'download',
  place: tunnel,
  everyMs: 400,
  isTimed: false,
  request: id => ({ pieces: get(id, 900 * KIB, false), bytes: 900 * KIB }),
})
void visit({
  what: 'upload',
  place: tunnel,
  everyMs: 400,
  isTimed: false,
  request: id => ({
    pieces: [
      `POST /echo?id=${id} HTTP/1.1\r\nHost: ${spec.host}\r\nContent-Length: ${200 * KIB}\r\n\r\n`,
      body(id, 200 * KIB),
    ],
    bytes: 200 * KIB,
  }),
})
for (let number = 0; number < 2; number++) void converse(100)
for (let number = 0; number < 2; number++) {
  void visit({ what: 'direct', place: app, everyMs: 100, isTimed: true, request: small })
}

setInterval(() => {
  const now = performance.now()
  const report: Report = {
    right,
    wrong,
    failed,
    latencies: latencies.map(round),
    direct: direct.map(round),
    waiting: [...waiting].map(due => round(now - due)),
  }
  console.log(`report ${JSON.stringify(report)}`)
  right = 0
  wrong = 0
  failed = {}
  latencies = []
  direct = []
}, REPORT_MS)
console.log('ready')

function round(ms: number): number {
  return Math.round(ms * 10) / 10
}
