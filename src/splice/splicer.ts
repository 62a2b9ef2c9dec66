// The main thread's side of one splicing thread: gives it jobs, and keeps their books.

import { MessageChannel, Worker } from 'node:worker_threads'
import { smallReads } from './activity.ts'
import { Board, MAX_JOBS } from './board.ts'
import { reportShortage, reportThrown } from './faults.ts'
import type { Side } from './job.ts'
import type { Kernel } from './kernel.ts'
import { Lanes } from './lanes.ts'
import type { Finished, Pace, ThreadData, Thrown, Up } from './thread.ts'
import type { LaneNews } from './thread-lanes.ts'

/** How a job ended. */
export interface Outcome {
  /** Bytes that reached the other connection. */
  readonly movedBytes: number
  /** Bytes that were read and did not. */
  readonly leftover: Uint8Array | undefined
  /** The side that broke. The next read of it sees a clean end: the kernel reports an error once, and has done so. */
  readonly failed: Side | undefined
  /** The thread died, or failed in the middle of it: it is not known how many bytes went where. */
  readonly isLost: boolean
}

/** One way between two connections. */
export class Job {
  readonly #board: Board
  readonly #slot: number
  readonly #stop: () => void
  readonly isPrompt: boolean
  readonly ended: (outcome: Outcome) => void
  /** Set at the end: the slot may be another job's by then. */
  #counted: number | undefined
  #isStopping = false

  constructor(
    board: Board,
    slot: number,
    isPrompt: boolean,
    stop: () => void,
    ended: (outcome: Outcome) => void,
  ) {
    this.#board = board
    this.#slot = slot
    this.isPrompt = isPrompt
    this.#stop = stop
    this.ended = ended
  }

  get takenBytes(): number {
    return this.#counted ?? this.#board.takenBytes(this.#slot)
  }

  get movedBytes(): number {
    return this.#counted ?? this.#board.movedBytes(this.#slot)
  }

  stop(): void {
    if (this.#isStopping || this.#counted !== undefined) return
    this.#isStopping = true
    this.#stop()
  }

  finish(rest: Omit<Outcome, 'movedBytes'>): void {
    this.#counted = this.movedBytes
    this.ended({ movedBytes: this.#counted, ...rest })
  }
}

const LOST = { failed: undefined, leftover: undefined, isLost: true }

/** For tests and diagnosis. */
export interface SpliceCounts {
  /** Threads that follow orders. */
  readonly threads: number
  /** Jobs that began in this process. */
  readonly begun: number
  /** Jobs under way. */
  readonly running: number
  /** Bytes moved by those that ended. */
  readonly movedBytes: number
  /** Lanes of visitors of this process. */
  readonly lanes: number
  /** Ends of lanes in this process: visitors', and apps'. */
  readonly laneEnds: number
}

/** The splices of one thread. */
export class Splicer {
  readonly #kernel: Kernel
  readonly #board = new Board()
  readonly #bell: number
  readonly #pace: Pace
  readonly #jobs: (Job | undefined)[] = []
  #begun = 0
  #movedBytes = 0
  readonly #free = Array.from({ length: MAX_JOBS }, (_, index) => MAX_JOBS - 1 - index)
  readonly lanes: Lanes
  readonly #died: (cause: Error | undefined) => void
  /** It takes a thread some 50 ms to load its program. What it is given before waits for that, and so does a visitor. */
  isUp = false
  readonly #up = Promise.withResolvers<boolean>()
  /** Resolves once it is up, with `false` if it dies before. */
  readonly up: Promise<boolean> = this.#up.promise
  #isDead = false

  /** Closes the bell in the end. `died`: the thread did, and all jobs are lost; called once. */
  constructor(
    kernel: Kernel,
    bell: number,
    pace: Pace,
    thread: URL,
    died: (cause: Error | undefined) => void,
  ) {
    this.#kernel = kernel
    this.#bell = bell
    this.#pace = pace
    this.#died = died
    const { port1: commands, port2: laneCommands } = new MessageChannel()
    commands.unref()
    this.lanes = new Lanes(kernel, command => {
      if (this.#isDead) return
      commands.postMessage(command)
      kernel.ring(bell)
    })
    const workerData: ThreadData = {
      memory: this.#board.memory,
      bell,
      pace,
      smallReads,
      laneMemory: this.lanes.memory,
      laneCommands,
    }
    const worker = new Worker(thread, { workerData, transferList: [laneCommands] })
    worker.on('message', (message: Up | Thrown | Finished | LaneNews) => {
      // Nothing of the runtime's is below that would catch it.
      guarded(() => this.#hear(message))
    })
    worker.on('error', (error: unknown) =>
      this.#lose(error instanceof Error ? error : new Error(String(error))),
    )
    worker.on('exit', () => this.#lose(undefined))
    // The connections keep a process alive, not what serves them.
    worker.unref()
  }

  #hear(message: Up | Thrown | Finished | LaneNews): void {
    if (message === 'up') {
      this.isUp = !this.#isDead
      this.#up.resolve(this.isUp)
      return
    }
    if (!('kind' in message)) return this.#finished(message.slot, message)
    if (message.kind !== 'thrown') return this.lanes.hear(message)
    reportThrown(new Error(message.message))
  }

  #lose(cause: Error | undefined): void {
    if (this.#isDead) return
    this.#isDead = true
    this.isUp = false
    this.#up.resolve(false)
    this.#kernel.close(this.#bell)
    guarded(() => this.#died(cause))
    for (const slot of this.#jobs.keys()) guarded(() => this.#finished(slot, LOST))
    this.lanes.lose(reportThrown)
  }

  get counts(): SpliceCounts {
    return {
      threads: this.isUp ? 1 : 0,
      begun: this.#begun,
      running: MAX_JOBS - this.#free.length,
      movedBytes: this.#movedBytes,
      lanes: this.lanes.count,
      laneEnds: this.lanes.endCount,
    }
  }

  start(from: number, to: number, limitBytes: number, ended: (outcome: Outcome) => void): Job | undefined {
    if (this.#isDead) return undefined
    const slot = this.#free.pop()
    if (slot === undefined) return undefined
    // Duplicates are opened and closed on this thread: so a number that another connection has by now is never closed.
    const copies = this.#kernel.duplicates([from, to])
    if (copies === undefined) {
      this.#free.push(slot)
      reportShortage()
      return undefined
    }
    const [fromHere = -1, toThere = -1] = copies
    const stop = () => {
      if (this.#isDead) return
      this.#board.stop(slot)
      this.#kernel.ring(this.#bell)
    }
    const job = new Job(this.#board, slot, this.#pace === 'prompt', stop, ended)
    this.#jobs[slot] = job
    this.#begun++
    this.#board.start(slot, fromHere, toThere, limitBytes)
    this.#kernel.ring(this.#bell)
    return job
  }

  #finished(slot: number, { failed, leftover, isLost }: Omit<Outcome, 'movedBytes'>): void {
    const job = this.#jobs[slot]
    if (job === undefined) return
    this.#jobs[slot] = undefined
    this.#kernel.close(this.#board.from(slot))
    this.#kernel.close(this.#board.to(slot))
    try {
      job.finish({ failed, leftover, isLost })
    } finally {
      this.#movedBytes += job.movedBytes
      // Behind what `finish` reads, and before the next job begins.
      this.#free.push(slot)
    }
  }
}

function guarded(task: () => void): void {
  try {
    task()
  } catch (error) {
    reportThrown(error)
  }
}
