// `localtunnels server --workers`: processes of one machine that share the ports. This one serves no visitors: it
// holds the ports and the directory of names, and restarts workers that end.

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ServerConfigOptions } from '../../config/server-config.ts'
import { MemoryDirectory } from '../../directories/memory.ts'
import { DirectoryServer } from '../../directories/unix-server.ts'
import { optionInvalid, TunnelError } from '../../errors.ts'
import { DEFAULT_HOST } from '../../server/settings/options.ts'
import { inheritedSocket } from '../../sockets/inherited.ts'
import { listeningSocket } from '../../sockets/listening.ts'
import type { TotalsEvent } from '../output.ts'
import type { Run } from '../run.ts'
import { type Started, startProgram } from '../server/successor.ts'
import { aborted } from '../stop.ts'

/**
 * The pause in milliseconds before a worker that ended is restarted. It doubles each time, until the worker has lived
 * for a minute.
 */
const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 10_000
const LIVED_MS = 60_000
/** The variable that marks a worker: its number, and the folder of the sockets. */
const VARIABLE = 'LOCALTUNNELS_WORKER'

type Environment = Record<string, string | undefined>

/** The place of a worker among the others. */
export interface Place {
  readonly number: number
  readonly folder: string
}

/** Returns the place of a worker. `undefined` if this process is not one. Removes the variable from `environment`. */
export function placeOf(environment: Environment): Place | undefined {
  const [, number, folder] = /^(\d+):(.+)$/.exec(environment[VARIABLE] ?? '') ?? []
  delete environment[VARIABLE]
  return number === undefined || folder === undefined ? undefined : { number: Number(number), folder }
}

/** Throws `OPTION_INVALID` for options that several processes cannot share yet. */
export function refuseUnshared({ acme, clusterOf, http3 }: ServerConfigOptions): void {
  if (process.platform !== 'linux') throw optionInvalid('Several workers need Linux: leave out --workers.')
  const unshared = { acme, cluster: clusterOf, http3: http3 || undefined }
  for (const [name, value] of Object.entries(unshared))
    if (value !== undefined)
      throw optionInvalid(`${name} is for a server with one worker: leave out --workers.`)
}

/** Returns the descriptors that all workers share: inherited ones, and the other ports. */
export async function sharedSockets(
  { host = DEFAULT_HOST, port = 8080, httpPort, tlsPort }: ServerConfigOptions,
  inherited: readonly number[],
): Promise<readonly number[]> {
  const there = inherited.map(descriptor => inheritedSocket(descriptor).port)
  const besides = [httpPort, tlsPort].flatMap(one => (one === undefined || one === port ? [] : [one]))
  const hasMain = there.some(one => !besides.includes(one))
  const wanted = [...(hasMain ? [] : [port]), ...besides.filter(one => !there.includes(one))]
  const opened: number[] = []
  for (const one of wanted) {
    const descriptor = await listeningSocket(host, one)
    if (descriptor === undefined)
      throw new TunnelError('PORT_IN_USE', `Port ${one} on ${host} is in use, or needs more rights.`)
    opened.push(descriptor)
  }
  // The server's own port comes first.
  return hasMain ? [...inherited, ...opened] : [...opened, ...inherited]
}

/** Returns the folder for the sockets of one server's workers: only this user may enter it. */
export function workersFolder({ environment }: Run): Promise<string> {
  return mkdtemp(join(environment.XDG_RUNTIME_DIR ?? tmpdir(), 'localtunnels-'))
}

export class Workers {
  readonly #descriptors: readonly number[]
  readonly #run: Run
  readonly #folder: string
  readonly #door: DirectoryServer
  readonly #started = new Map<Started, number>()
  readonly #pauses = new Set<() => void>()
  readonly #startedAt: number = performance.now()
  readonly #totals: TotalsEvent[] = []
  #isOver = false

  private constructor(descriptors: readonly number[], run: Run, folder: string, door: DirectoryServer) {
    this.#descriptors = descriptors
    this.#run = run
    this.#folder = folder
    this.#door = door
  }

  /**
   * Starts the workers. Resolves once all serve. Rejects with the reason if one does not; then none is left. Removes
   * `folder` at the end.
   */
  static async start(
    count: number,
    descriptors: readonly number[],
    folder: string,
    run: Run,
  ): Promise<Workers> {
    const door = await DirectoryServer.open(join(folder, 'directory'), new MemoryDirectory())
    const workers = new Workers(descriptors, run, folder, door)
    try {
      const numbers = Array.from({ length: count }, (_, at) => at + 1)
      await Promise.all(numbers.map(number => workers.#start(number, 0)))
      return workers
    } catch (error) {
      await workers.#kill()
      throw error
    }
  }

  async #start(number: number, restarts: number): Promise<void> {
    const environment = { ...this.#run.environment, [VARIABLE]: `${number}:${this.#folder}` }
    const startedAt = performance.now()
    const started = startProgram(this.#descriptors, environment)
    this.#started.set(started, number)
    void started.exited.then(code => {
      this.#started.delete(started)
      if (started.hasServed())
        this.#ended(number, code, performance.now() - startedAt > LIVED_MS ? 0 : restarts)
    })
    await started.serving
  }

  #ended(number: number, code: number, restarts: number): void {
    if (this.#isOver || this.#run.stop.aborted) return
    const ms = Math.min(FIRST_PAUSE_MS * 2 ** Math.min(restarts, 20), LONGEST_PAUSE_MS)
    this.#notice(`Worker ${number} ended with exit code ${code}, and starts again in ${ms / 1_000} s.`)
    const timer = setTimeout(() => {
      this.#pauses.delete(cancel)
      this.#start(number, restarts + 1).catch((error: Error) => {
        this.#notice(`Worker ${number} does not start: ${error.message}`)
        this.#ended(number, 1, restarts + 1)
      })
    }, ms)
    const cancel = () => clearTimeout(timer)
    this.#pauses.add(cancel)
  }

  #notice(message: string): void {
    this.#run.output.event({ type: 'notice', code: 'WORKER', message })
  }

  serving(): readonly { readonly number: number; readonly pid: number }[] {
    return [...this.#started]
      .filter(([started]) => started.hasServed())
      .map(([{ process }, number]) => ({ number, pid: process.pid }))
      .toSorted((one, other) => one.number - other.number)
  }

  tell(signal: NodeJS.Signals): void {
    for (const { process } of this.#started.keys()) process.kill(signal)
  }

  /** Returns the sum for all workers that ended in good order. Call it after `stop` or `handOver`. */
  totals(): TotalsEvent {
    const sum = (of: (one: TotalsEvent) => number) => this.#totals.reduce((all, one) => all + of(one), 0)
    return {
      type: 'totals',
      requests: sum(one => one.requests),
      connections: sum(one => one.connections ?? 0),
      errors: sum(one => one.errors),
      bytes: sum(one => one.bytes),
      durationMs: Math.round(performance.now() - this.#startedAt),
    }
  }

  /** Ends the workers after another program took over: open requests finish here. */
  async handOver(): Promise<void> {
    this.#isOver = true
    this.#say('handOver')
    await this.#gone()
  }

  async stop(): Promise<void> {
    this.#isOver = true
    // Not with a signal: the terminal may have sent one already, and a second one cuts requests in progress.
    this.#say('stop')
    await this.#gone()
  }

  async #kill(): Promise<void> {
    this.#isOver = true
    this.tell('SIGKILL')
    await this.#gone()
  }

  #say(word: 'handOver' | 'stop' | 'leave'): void {
    for (const { process } of this.#started.keys()) process.send({ [word]: true })
  }

  async #gone(): Promise<void> {
    for (const cancel of this.#pauses) cancel()
    // Visitors of one worker may use a tunnel of another, so none ends while one has requests in progress.
    await Promise.all([...this.#started.keys()].map(({ idle, exited }) => Promise.race([idle, exited])))
    this.#say('leave')
    const ends = [...this.#started.keys()].map(async ({ exited, totals }) => {
      await exited
      return await totals
    })
    for (const one of await Promise.all(ends)) if (one !== undefined) this.#totals.push(one)
    await this.#door[Symbol.asyncDispose]()
    await rm(this.#folder, { recursive: true, force: true })
  }
}

/** Sends the totals of this worker to the process that started it. */
export function sayTotals(totals: TotalsEvent): void {
  if (process.connected === true) process.send?.({ totals })
}

/** Reports to the process that started this one that nothing is in progress here. Resolves when that is so at all workers. */
export function othersIdle(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  if (process.connected !== true) return Promise.resolve()
  process.on('message', message => {
    if (typeof message === 'object' && message !== null && 'leave' in message) resolve()
  })
  process.on('disconnect', resolve)
  process.send?.({ idle: true })
  return promise
}

/**
 * Waits until the process that started this one asks it to stop, or is gone. Resolves with whether another program takes over.
 */
export function toldByParent(stop: AbortSignal): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  process.on('message', message => {
    if (typeof message !== 'object' || message === null) return
    if ('handOver' in message) resolve(true)
    else if ('stop' in message) resolve(false)
  })
  process.on('disconnect', () => resolve(false))
  void aborted(stop).then(() => resolve(false))
  return promise
}
