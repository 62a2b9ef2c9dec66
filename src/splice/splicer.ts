// The main thread's side of splicing: starts each thread when it is first of use, and keeps the books of its jobs.

import { MessageChannel, Worker } from 'node:worker_threads'
import type { Lane, LaneTerms, Trunk } from '../socket.ts'
import { smallReads } from './activity.ts'
import { Board, MAX_JOBS } from './board.ts'
import type { Side } from './job.ts'
import { Kernel } from './kernel.ts'
import { type LaneListener, Lanes, OpenTrunk } from './lanes.ts'
import type { Finished, Pace, ThreadData, Up } from './thread.ts'
import type { LaneNews } from './thread-lanes.ts'

/** Set to `0` for the way through the program, always. */
const SWITCH = 'LOCALTUNNELS_SPLICE'

/** How a job ended. */
export interface Outcome {
  /** Bytes that reached the other connection. */
  readonly movedBytes: number
  /** Bytes that were read and did not. */
  readonly leftover: Uint8Array | undefined
  /** The side that broke. Who reads it sees a clean end: the kernel tells an error once, and told it already. */
  readonly failed: Side | undefined
  /** The thread died, and nobody knows how many bytes went where. */
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
  /** It takes a thread some 50 ms to load its program. What it is given before waits for that, and so does a visitor. */
  isUp = false

  /** `died`: the thread did, and all jobs are lost. */
  constructor(kernel: Kernel, bell: number, pace: Pace, thread: URL, died: () => void) {
    this.#kernel = kernel
    this.#bell = bell
    this.#pace = pace
    const { port1: commands, port2: laneCommands } = new MessageChannel()
    commands.unref()
    this.lanes = new Lanes(kernel, bell, commands)
    const workerData: ThreadData = {
      memory: this.#board.memory,
      bell,
      pace,
      smallReads,
      laneMemory: this.lanes.memory,
      laneCommands,
    }
    const worker = new Worker(thread, { workerData, transferList: [laneCommands] })
    worker.on('message', (message: Up | Finished | LaneNews) => {
      if (message === 'up') {
        this.isUp = true
        return
      }
      if ('kind' in message) return this.lanes.hear(message)
      const { slot, failed, leftover } = message
      this.#finished(slot, { failed, leftover, isLost: false })
    })
    const lose = () => {
      died()
      for (const slot of this.#jobs.keys()) this.#finished(slot, LOST)
      this.lanes.lose()
    }
    worker.on('error', lose)
    worker.on('exit', lose)
    // The connections keep a process alive, not what serves them.
    worker.unref()
  }

  get counts(): SpliceCounts {
    return {
      begun: this.#begun,
      running: MAX_JOBS - this.#free.length,
      movedBytes: this.#movedBytes,
      lanes: this.lanes.count,
      laneEnds: this.lanes.endCount,
    }
  }

  start(from: number, to: number, limitBytes: number, ended: (outcome: Outcome) => void): Job | undefined {
    const slot = this.#free.pop()
    if (slot === undefined) return undefined
    // The thread closes them.
    const copies = this.#kernel.duplicates([from, to])
    if (copies === undefined) {
      this.#free.push(slot)
      return undefined
    }
    const [fromHere = -1, toThere = -1] = copies
    const stop = () => {
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

  #finished(slot: number, rest: Omit<Outcome, 'movedBytes'>): void {
    const job = this.#jobs[slot]
    if (job === undefined) return
    this.#jobs[slot] = undefined
    if (rest.isLost) {
      // Nobody else closes them now.
      this.#kernel.close(this.#board.from(slot))
      this.#kernel.close(this.#board.to(slot))
    }
    job.finish(rest)
    this.#movedBytes += job.movedBytes
    // Behind what `finish` reads, and before the next job begins.
    this.#free.push(slot)
  }
}

/** `null`: not possible in this process. */
let kernel: Kernel | null | undefined
/** A thread died, or could not be started: no more is moved. What the other one still moves goes on. */
let hasFailed = false
/** Those that were of use so far. */
const splicers = new Map<Pace, Splicer>()

/** Whether bytes can be moved without the program seeing them. */
export function canSplice(): boolean {
  if (kernel === undefined) kernel = probe()
  return kernel !== null && !hasFailed
}

/** For tests and diagnosis. */
export interface SpliceCounts {
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

export function spliceCounts(): SpliceCounts {
  const sum = { begun: 0, running: 0, movedBytes: 0, lanes: 0, laneEnds: 0 }
  for (const { counts } of splicers.values()) {
    sum.begun += counts.begun
    sum.running += counts.running
    sum.movedBytes += counts.movedBytes
    sum.lanes += counts.lanes
    sum.laneEnds += counts.laneEnds
  }
  return sum
}

/**
 * Moves what comes on the connection of one descriptor to that of another, up to `limitBytes` or the end. Nobody else
 * may read the one or write the other until `ended` was called, once and later. `undefined`: not here, or not now.
 */
export function spliceDescriptors(
  from: number,
  to: number,
  limitBytes: number,
  pace: Pace,
  ended: (outcome: Outcome) => void,
): Job | undefined {
  return splicerOf(pace)?.start(from, to, limitBytes, ended)
}

/** Whether lanes can be begun now. The first question starts what serves them. */
export function canBeginLane(): boolean {
  return splicerOf('prompt') !== undefined
}

/** Gives a connection to lanes: nobody else may read or write it until `over` was called, once and later. */
export function openTrunk(
  descriptor: number,
  isAppSide: boolean,
  over: (isLost: boolean) => void,
): OpenTrunk | undefined {
  return splicerOf('prompt')?.lanes.openTrunk(descriptor, isAppSide, over)
}

/**
 * Begins a lane (see `lane.ts`, and `app-lane.ts` for one without terms). Nobody else may read or write its connection
 * until `over` was called, once and later. `undefined`: not here, or not now.
 */
export function beginLane(
  trunk: Trunk,
  lane: number,
  descriptor: number,
  terms: LaneTerms | undefined,
  listener: LaneListener,
): Lane | undefined {
  if (!(trunk instanceof OpenTrunk)) return undefined
  return splicerOf('prompt')?.lanes.begin(trunk, lane, descriptor, terms, listener)
}

/** `undefined` also while its thread starts. */
function splicerOf(pace: Pace): Splicer | undefined {
  if (!canSplice()) return undefined
  let splicer = splicers.get(pace)
  if (splicer === undefined) {
    splicer = begin(pace)
    if (splicer !== undefined) splicers.set(pace, splicer)
  }
  return splicer?.isUp ? splicer : undefined
}

function probe(): Kernel | null {
  const isKnown = process.platform === 'linux' && (process.arch === 'x64' || process.arch === 'arm64')
  if (!isKnown || process.env[SWITCH] === '0') return null
  try {
    const found = new Kernel()
    return found.canSplice() ? found : null
  } catch {
    // No libc by a name we know, or no foreign calls in this build: the way through the program is always there.
    return null
  }
}

function begin(pace: Pace): Splicer | undefined {
  const bell = kernel?.bell() ?? -1
  if (!kernel || bell < 0) return undefined
  // This file's own ending: `.ts`, and `.js` once built.
  const thread = new URL(`./thread${import.meta.url.slice(-3)}`, import.meta.url)
  try {
    return new Splicer(kernel, bell, pace, thread, () => {
      hasFailed = true
    })
  } catch {
    kernel.close(bell)
    hasFailed = true
    return undefined
  }
}
