// The main thread's side of one worker thread: gives it commands, and counts what it does.

import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads'
import { type Pace, smallReads } from '../accelerator.ts'
import type { Splice } from '../socket.ts'
import { reportShortage, reportThrown } from './faults.ts'
import type { Side } from './job.ts'
import type { Kernel } from './kernel.ts'
import { MainLanes } from './main-lanes.ts'
import { MAX_SPLICES, SharedSlots } from './shared-slots.ts'
import type { Command, Finished, ThreadData, Thrown, Up } from './thread.ts'
import type { LaneNews } from './thread-lanes.ts'

/** The result of a job. */
export interface Outcome {
  /** The number of bytes that reached the other connection. */
  readonly movedBytes: number
  /** The bytes that were read and did not reach it. */
  readonly leftover: Uint8Array | undefined
  /** The side that broke. The kernel reports an error once, so the next read of it sees a clean end. */
  readonly failed: Side | undefined
  /** Whether the thread died, or failed in the middle of the job, so that it is unknown how many bytes went where. */
  readonly isLost: boolean
}

/** One direction between two connections. */
export class RunningSplice implements Splice {
  readonly #slots: SharedSlots
  readonly #slot: number
  readonly #stop: () => void
  readonly isPrompt: boolean
  readonly ended: (outcome: Outcome) => void
  /** The final count, stored because the slot may belong to another job by now. */
  #counted: number | undefined
  #isStopping = false

  constructor(
    slots: SharedSlots,
    slot: number,
    isPrompt: boolean,
    stop: () => void,
    ended: (outcome: Outcome) => void,
  ) {
    this.#slots = slots
    this.#slot = slot
    this.isPrompt = isPrompt
    this.#stop = stop
    this.ended = ended
  }

  get takenBytes(): number {
    return this.#counted ?? this.#slots.takenBytes(this.#slot)
  }

  get movedBytes(): number {
    return this.#counted ?? this.#slots.movedBytes(this.#slot)
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

export interface SpliceCounts {
  /** The number of threads that take commands. */
  readonly threads: number
  /** The number of splices that started in this process. */
  readonly begun: number
  readonly running: number
  /** The number of bytes that finished splices moved. */
  readonly movedBytes: number
  /** The number of visitors' lanes in this process. */
  readonly lanes: number
  /** The number of lane ends in this process, of visitors and of apps. */
  readonly laneEnds: number
}

export class WorkerThread {
  readonly #kernel: Kernel
  readonly #slots = new SharedSlots()
  readonly #commands: MessagePort
  readonly #wakeup: number
  readonly #pace: Pace
  readonly #splices: (RunningSplice | undefined)[] = []
  /** The duplicated descriptors, two for each splice, opened and closed here. */
  readonly #copies: (readonly number[])[] = []
  #begun = 0
  #movedBytes = 0
  readonly #free = Array.from({ length: MAX_SPLICES }, (_, index) => MAX_SPLICES - 1 - index)
  readonly lanes: MainLanes
  readonly #died: (cause: Error | undefined) => void
  /**
   * Whether the thread has loaded its program, which takes about 50 ms. Earlier commands wait until then, and so does a visitor.
   */
  isUp = false
  readonly #up = Promise.withResolvers<boolean>()
  /** Resolves with `true` once the thread takes commands, or with `false` if it dies first. */
  readonly up: Promise<boolean> = this.#up.promise
  #isDead = false

  /**
   * Makes the main thread's side. Closes the wakeup descriptor in the end. `died` is called once if the thread dies,
   * which loses all jobs.
   */
  constructor(
    kernel: Kernel,
    wakeup: number,
    pace: Pace,
    thread: URL,
    died: (cause: Error | undefined) => void,
  ) {
    this.#kernel = kernel
    this.#wakeup = wakeup
    this.#pace = pace
    this.#died = died
    const { port1, port2: commands } = new MessageChannel()
    port1.unref()
    this.#commands = port1
    this.lanes = new MainLanes(kernel, this.#slots, command => this.#command(command))
    const workerData: ThreadData = { memory: this.#slots.memory, commands, wakeup, pace, smallReads }
    const worker = new Worker(thread, { workerData, transferList: [commands] })
    worker.on('message', (message: Up | Thrown | Finished | LaneNews) => {
      // The runtime has no handler below that would catch the error.
      guarded(() => this.#receive(message))
    })
    worker.on('error', (error: unknown) =>
      this.#lose(error instanceof Error ? error : new Error(String(error))),
    )
    worker.on('exit', () => this.#lose(undefined))
    // Connections keep the process alive, not the threads that serve them.
    worker.unref()
  }

  #receive(message: Up | Thrown | Finished | LaneNews): void {
    if (message === 'up') {
      this.isUp = !this.#isDead
      this.#up.resolve(this.isUp)
      return
    }
    if (!('kind' in message)) return this.#finished(message.slot, message)
    if (message.kind !== 'thrown') return this.lanes.receive(message)
    reportThrown(new Error(message.message))
  }

  #lose(cause: Error | undefined): void {
    if (this.#isDead) return
    this.#isDead = true
    this.isUp = false
    this.#up.resolve(false)
    this.#kernel.close(this.#wakeup)
    guarded(() => this.#died(cause))
    for (const slot of this.#splices.keys()) guarded(() => this.#finished(slot, LOST))
    this.lanes.lose(reportThrown)
  }

  get counts(): SpliceCounts {
    return {
      threads: this.isUp ? 1 : 0,
      begun: this.#begun,
      running: MAX_SPLICES - this.#free.length,
      movedBytes: this.#movedBytes,
      lanes: this.lanes.count,
      laneEnds: this.lanes.endCount,
    }
  }

  start(
    from: number,
    to: number,
    limitBytes: number,
    ended: (outcome: Outcome) => void,
  ): RunningSplice | undefined {
    if (this.#isDead) return undefined
    const slot = this.#free.pop()
    if (slot === undefined) return undefined
    // Duplicates are opened and closed on this thread only, so a number that another connection has got is never closed.
    const copies = this.#kernel.duplicates([from, to])
    if (copies === undefined) {
      this.#free.push(slot)
      reportShortage()
      return undefined
    }
    const [fromHere = -1, toThere = -1] = copies
    const stop = () => this.#command({ kind: 'splice-end', slot })
    const splice = new RunningSplice(this.#slots, slot, this.#pace === 'prompt', stop, ended)
    this.#slots.clearSplice(slot)
    this.#splices[slot] = splice
    this.#copies[slot] = copies
    this.#begun++
    this.#command({ kind: 'splice', order: { slot, from: fromHere, to: toThere, limitBytes } })
    return splice
  }

  #command(command: Command): void {
    if (this.#isDead) return
    this.#commands.postMessage(command)
    this.#kernel.wakeUp(this.#wakeup)
  }

  #finished(slot: number, { failed, leftover, isLost }: Omit<Outcome, 'movedBytes'>): void {
    const splice = this.#splices[slot]
    if (splice === undefined) return
    this.#splices[slot] = undefined
    for (const copy of this.#copies[slot] ?? []) this.#kernel.close(copy)
    try {
      splice.finish({ failed, leftover, isLost })
    } finally {
      this.#movedBytes += splice.movedBytes
      // Freed after `finish` has read it, and before the next splice begins.
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
