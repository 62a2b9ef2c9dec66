// A server and a client with few descriptors each, under more load than those carry: bulk, easy requests, raw connections
// and connections that say nothing. Used by a test, and by
// `bun test/support/scarcity.ts 64 100 256 400 400/64`: descriptors of both, or of the server and of the client.

import { readFileSync } from 'node:fs'
import { createConnection, type Socket as PeerSocket } from 'node:net'
import { join } from 'node:path'
import { peerServer } from './peer.ts'
import { Sink, Source } from './relay.ts'
import { deferred, within } from './within.ts'

/** Processor time that a process may use for one second of pressure without work, in ms: it would be all of it if it spun. */
const MAX_IDLE_MS = 500
const RECOVERY_MS = 5_000

interface Line {
  readonly ports?: readonly number[]
  readonly error?: string
}

/** One end in a process of its own. */
class End implements AsyncDisposable {
  readonly name: string
  readonly errors = new Map<string, number>()
  readonly #child: Bun.Subprocess<'pipe', 'pipe', 'inherit'>
  readonly #ports = deferred<readonly number[]>()

  constructor(descriptors: number, name: 'server' | 'client', ...args: readonly number[]) {
    this.name = name
    const program = join(import.meta.dir, 'scarce-end.ts')
    this.#child = Bun.spawn({
      cmd: ['sh', '-c', `ulimit -n ${descriptors}; exec bun "$0" "$@"`, program, name, ...args.map(String)],
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    void this.#read()
  }

  ports(): Promise<readonly number[]> {
    return within(this.#ports.promise, `the ${this.name}`)
  }

  get isAlive(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null
  }

  /** Processor time so far, in ms: the kernel counts in hundredths of a second. */
  get usedMs(): number {
    const stat = readFileSync(`/proc/${this.#child.pid}/stat`, 'latin1')
    const [user, system] = stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .slice(11, 13)
      .map(Number)
    return 10 * ((user ?? 0) + (system ?? 0))
  }

  async #read(): Promise<void> {
    let text = ''
    for await (const bytes of this.#child.stdout) {
      text += Buffer.from(bytes).toString('latin1')
      for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n')) {
        const line: Line = JSON.parse(text.slice(0, end))
        text = text.slice(end + 1)
        if (line.ports !== undefined) this.#ports.resolve(line.ports)
        if (line.error !== undefined) this.errors.set(line.error, (this.errors.get(line.error) ?? 0) + 1)
      }
    }
    this.#ports.reject(new Error(`the ${this.name} ended`))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#child.exited
  }
}

/** What came of it; empty lists where all is well. */
export interface Scarcity {
  readonly faults: readonly string[]
  readonly serverErrors: Readonly<Record<string, number>>
  readonly clientErrors: Readonly<Record<string, number>>
  readonly answers: number
  readonly recoveryMs: number
}

/** Descriptors of the server, and of the client. */
export async function scarcity(
  descriptors: number,
  clientDescriptors: number,
  pressureMs: number,
): Promise<Scarcity> {
  const faults: string[] = []
  let answers = 0
  using app = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: request => new Response(new URL(request.url).pathname),
  })
  using echo = Bun.listen({
    port: 0,
    hostname: '127.0.0.1',
    socket: { data: (socket, bytes) => void socket.write(bytes) },
  })
  const bulk = await peerServer({})
  void feed(bulk)
  await using server = new End(descriptors, 'server')
  const [port = 0] = await server.ports()
  await using client = new End(clientDescriptors, 'client', port, app.port ?? 0, echo.port, bulk.port)
  const [echoPort = 0, bulkPort = 0] = await client.ports()

  /** `true`: as it has to be. `false`: refused or cut, as may be under pressure. */
  const easy = async (count: number): Promise<boolean> => {
    const visitor = await connected(port)
    if (visitor === undefined) return false
    try {
      for (let index = 0; index < count; index++) {
        const path = `/${Math.random()}`
        const answer = await exchange(
          visitor,
          `GET ${path} HTTP/1.1\r\nHost: app.localhost\r\n\r\n`,
          /\r\n\r\n./,
        )
        if (answer?.startsWith('HTTP/1.1 200') !== true) return false
        if (!answer.endsWith(path)) faults.push(`${path} got ${answer}`)
        answers++
      }
      return true
    } finally {
      visitor.destroy()
    }
  }
  const talk = async (count: number): Promise<boolean> => {
    const visitor = await connected(echoPort)
    if (visitor === undefined) return false
    try {
      for (let index = 0; index < count; index++) {
        const piece = `${index} ${Math.random()};`
        const answer = await exchange(visitor, piece, /;/)
        if (answer === undefined) return false
        if (answer !== piece) faults.push(`${piece} came back as ${answer}`)
      }
      return true
    } finally {
      visitor.destroy()
    }
  }
  const download = async (): Promise<boolean> => {
    const visitor = await connected(bulkPort)
    if (visitor === undefined) return false
    const sink = new Sink(visitor)
    const outcome = await sink.over()
    visitor.destroy()
    if (outcome.startsWith('wrong')) faults.push(outcome)
    if (outcome === 'end' && sink.receivedBytes !== BULK_BYTES)
      faults.push(`ended after ${sink.receivedBytes}`)
    return outcome === 'end'
  }

  // It works, and threads may be there or not.
  if (!(await easy(1))) faults.push('nothing worked before the pressure')
  const until = performance.now() + pressureMs
  const during = async (task: () => Promise<boolean>) => {
    while (performance.now() < until) if (!(await task().catch(() => false))) await Bun.sleep(5)
  }
  const silent = Array.from({ length: 2 * descriptors }, () => during(() => silence(port, until)))
  const kinds = [() => easy(50), () => talk(100), () => download()]
  await Promise.all([...silent, ...kinds.flatMap(kind => Array.from({ length: 12 }, () => during(kind)))])

  // Silent connections only: no process has anything to do.
  const idleUntil = performance.now() + 1_500
  const idle = Array.from({ length: 2 * descriptors }, () => silence(port, idleUntil))
  await Bun.sleep(400) // until those are in, and what was under way is over
  const before = [server.usedMs, client.usedMs]
  await Bun.sleep(1_000) // what is measured: the time that nothing takes
  for (const [index, end] of [server, client].entries()) {
    if (!end.isAlive) faults.push(`the ${end.name} died`)
    else if (end.usedMs - (before[index] ?? 0) > MAX_IDLE_MS) faults.push(`the ${end.name} spins`)
  }
  await Promise.all(idle)

  const over = performance.now()
  const works = async () => (await Promise.all([easy(20), talk(20), download(), easy(20)])).every(Boolean)
  while (!(await works().catch(() => false))) {
    if (performance.now() - over > RECOVERY_MS) {
      faults.push(`not all works ${RECOVERY_MS} ms after the pressure`)
      break
    }
    await Bun.sleep(50)
  }
  bulk.close()
  return {
    faults,
    serverErrors: Object.fromEntries(server.errors),
    clientErrors: Object.fromEntries(client.errors),
    answers,
    recoveryMs: Math.round(performance.now() - over),
  }
}

const BULK_BYTES = 3_000_000

async function feed(bulk: Awaited<ReturnType<typeof peerServer>>): Promise<void> {
  for (;;) {
    const next = await bulk.accepted().catch(() => undefined)
    if (next !== undefined) new Source(next, BULK_BYTES)
  }
}

/** `undefined`: refused. */
function connected(port: number): Promise<PeerSocket | undefined> {
  return new Promise(resolve => {
    const socket = createConnection({ port, host: '127.0.0.1', allowHalfOpen: true })
    socket.on('error', () => resolve(undefined))
    socket.once('connect', () => resolve(socket))
  })
}

/** What comes back, once it looks complete; `undefined`: the connection broke, or nothing came for long. */
function exchange(socket: PeerSocket, piece: string, complete: RegExp): Promise<string | undefined> {
  return new Promise(resolve => {
    let text = ''
    const done = (answer: string | undefined) => {
      clearTimeout(timer)
      socket.off('data', data).off('end', over).off('close', over)
      resolve(answer)
    }
    const over = () => done(undefined)
    const data = (bytes: Buffer) => {
      text += bytes.toString('latin1')
      if (complete.test(text)) done(text)
    }
    const timer = setTimeout(() => done(undefined), 2_000)
    socket.on('data', data).on('end', over).on('close', over)
    if (socket.destroyed) done(undefined)
    else socket.write(piece)
  })
}

/** A connection that says nothing until then, or until it is cut. */
async function silence(port: number, until: number): Promise<boolean> {
  const visitor = await connected(port)
  if (visitor === undefined) return false
  const closed = new Promise<void>(resolve => visitor.once('close', () => resolve()))
  await Promise.race([closed, Bun.sleep(Math.max(0, until - performance.now()))])
  visitor.destroy()
  return performance.now() >= until
}

if (import.meta.main) {
  for (const pair of process.argv.slice(2)) {
    const [descriptors = 64, clientDescriptors = descriptors] = pair.split('/').map(Number)
    console.log(pair, JSON.stringify(await scarcity(descriptors, clientDescriptors, 4_000)))
  }
  process.exit()
}
