// A thread that moves bytes: waits in epoll for the sockets of its jobs and lanes, and gives each its turn.

import { type MessagePort, parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import type { Pace } from '../accelerator.ts'
import { CopiedJob, type Job, MAX_SPARE_PIPES, PipedJob, type Side, type SpliceOrder } from './job.ts'
import { Changes, EPOLLIN, EPOLLOUT, EPOLLRDHUP, Kernel, type Pipe, type Room } from './kernel.ts'
import { MAX_SPLICES, SharedSlots } from './shared-slots.ts'
import { HOLD_MS, type LaneCommand, REPORT_MS, ThreadLanes } from './thread-lanes.ts'

export interface ThreadData {
  /** The memory of `SharedSlots`. */
  readonly memory: SharedArrayBuffer
  /** The port through which each `Command` comes. */
  readonly commands: MessagePort
  /** The descriptor that becomes readable after each command. */
  readonly wakeup: number
  readonly pace: Pace
  /** The counter of small reads; see `accelerator.ts`. */
  readonly smallReads: Int32Array<SharedArrayBuffer>
}

export type Command =
  | { readonly kind: 'splice'; readonly order: SpliceOrder }
  | { readonly kind: 'splice-end'; readonly slot: number }
  | LaneCommand

/** The first message: the thread takes commands from now on. */
export type Up = 'up'

/** An error that ended a splice, lane or trunk, while the thread continues. */
export interface Thrown {
  readonly kind: 'thrown'
  readonly message: string
}

/** The end of a job. `leftover` was read and did not reach the other socket. */
export interface Finished {
  readonly slot: number
  /** The side that broke. Its error was reported here, and will not be reported again. */
  readonly failed: Side | undefined
  readonly leftover: Uint8Array<ArrayBuffer> | undefined
  /** Whether the job failed in the middle, so that it is unknown how many bytes went where. */
  readonly isLost: boolean
}

/**
 * The size of a pipe: the kernel memory that a stalled reader of a large transfer costs. All jobs together stay
 * within the 64 MB that Linux allows the pipes of an unprivileged user (`pipe-user-pages-soft`). 1 MB moved 5 to 10 %
 * more per second, 256 KB as much less.
 */
const PIPE_BYTES = 524_288
/** The size of the buffer for interactive connections, which a stalled reader of one costs. */
const COPY_BYTES = 65_536
/** The number of bytes after which a large transfer pauses, if it must. */
const REST_AFTER_BYTES = 1_048_576
/**
 * The time in milliseconds. A job or lane without bytes for one to two of these ends, because the main thread waits at no cost.
 */
const IDLE_MS = 500

/**
 * The priority (nice value) of the thread; all others have 0, so small responses go first. With 0, the 99th
 * percentile of small responses next to a download was 13 to 18 times its value without the download; with this, up
 * to 7 times. The download keeps its speed while a core is free.
 */
const NICE = 10

/**
 * The pause in milliseconds after each turn while small responses pass, and after the last of them. With all cores busy, priority
 * alone left them waiting behind the download's ends: p99 of small responses was 7.2 ms without pauses, 4.3 ms with 0.3 ms, 2.5
 * ms with 1 ms, and 1.3 ms without a download. A large transfer by itself keeps 95 to 100 % of its speed.
 */
const REST_MS = 1
const POLITE_MS = 5

const MAX_CHANGES = 64
const WAKEUP = MAX_SPLICES
/** The first number in epoll of lanes and their trunks. */
const FIRST_LANE = WAKEUP + 1

/** A number that never changes, so that waiting for a change of it is a pause. */
const NOTHING = new Int32Array(new SharedArrayBuffer(4))

class Thread {
  readonly #kernel = new Kernel()
  readonly #poll = this.#kernel.poll()
  readonly #slots: SharedSlots
  readonly #commands: MessagePort
  readonly #wakeup: number
  readonly #wakeupBytes = new Uint8Array(8)
  readonly #pace: Pace
  readonly #jobs: (Job | undefined)[] = []
  #jobCount = 0
  /** The jobs with more to move now, in the order of their turns. */
  #waiting: Job[] = []
  #turn: Job[] = []
  readonly #sparePipes: Pipe[] = []
  #room: Room | undefined
  #sweptAt = 0
  /** The bound method, made once because every piece of an interactive connection calls it. */
  readonly #serving = (job: Job) => this.#serve(job)
  readonly #smallReads: Int32Array<SharedArrayBuffer>
  #smallReadsSeen = 0
  #politeUntil = 0
  /** The number of bytes that all jobs moved since the last check for other work. */
  #movedBytes = 0
  readonly #lanes: ThreadLanes

  constructor({ memory, commands, wakeup, pace, smallReads }: ThreadData) {
    this.#slots = new SharedSlots(memory)
    this.#commands = commands
    this.#wakeup = wakeup
    this.#pace = pace
    this.#smallReads = smallReads
    this.#lanes = new ThreadLanes(this.#kernel, this.#poll, FIRST_LANE, this.#slots, {
      report: news => parentPort?.postMessage(news),
      thrown,
    })
  }

  run(): void {
    if (this.#pace === 'bulk') this.#kernel.beNice(NICE)
    if (!this.#kernel.watch(this.#poll, this.#wakeup, EPOLLIN, WAKEUP))
      throw new Error('the wakeup cannot be watched')
    parentPort?.postMessage('up' satisfies Up)
    try {
      this.#turns()
    } finally {
      this.#closeOwn()
    }
  }

  /** Closes descriptors that the main thread does not know. It starts another thread after this one. */
  #closeOwn(): void {
    for (const job of this.#jobs) if (job instanceof PipedJob) this.#kernel.closePipe(job.pipe)
    for (const pipe of this.#sparePipes) this.#kernel.closePipe(pipe)
    this.#kernel.close(this.#poll)
  }

  #turns(): never {
    const changes = new Changes(MAX_CHANGES)
    for (;;) {
      const isBusy = this.#jobCount + this.#lanes.count > 0
      const isReporting = this.#lanes.isReporting
      const idleMs = this.#lanes.isHolding ? HOLD_MS : isReporting ? REPORT_MS : isBusy ? IDLE_MS : -1
      const timeoutMs = this.#waiting.length > 0 ? 0 : idleMs
      const count = this.#kernel.wait(this.#poll, changes, timeoutMs)
      for (let index = 0; index < count; index++) {
        const number = changes.number(index)
        if (number === WAKEUP) {
          this.#followCommands()
        } else if (number >= FIRST_LANE) this.#lanes.changed(number, changes.isLast(index))
        else {
          // The change may be of a job that has ended. The next job in its place then finds nothing, which does no harm.
          const job = this.#jobs[number]
          if (job !== undefined) {
            job.isLast ||= changes.isLast(index)
            this.#wait(job)
          }
        }
      }
      // Lanes come first, because visitors wait for them.
      this.#lanes.flush()
      const turn = this.#waiting
      this.#waiting = this.#turn
      this.#turn = turn
      for (const job of turn) {
        job.isWaiting = false
        if (this.#jobs[job.slot] === job) this.#guard(job, this.#serving)
      }
      turn.length = 0
      const now = performance.now()
      this.#sweep(now)
      if (this.#lanes.isHolding) this.#lanes.endHeld(now)
      this.#lanes.reportDue(now)
      if (this.#pace === 'prompt') Atomics.add(this.#smallReads, 0, count)
      else if (this.#movedBytes >= REST_AFTER_BYTES) this.#giveWay()
    }
  }

  #followCommands(): void {
    this.#kernel.read(this.#wakeup, this.#wakeupBytes)
    for (;;) {
      const command = receiveMessageOnPort(this.#commands)?.message as Command | undefined // see `WorkerThread`
      if (command === undefined) return
      try {
        this.#follow(command)
      } catch (error) {
        thrown(error)
        if (command.kind === 'splice') this.#report(command.order.slot, undefined, undefined, true)
      }
    }
  }

  #follow(command: Command): void {
    if (command.kind === 'splice') this.#start(command.order)
    else if (command.kind === 'splice-end') this.#stop(command.slot)
    else this.#lanes.follow(command)
  }

  #start(order: SpliceOrder): void {
    const job = this.#makeJob(order)
    if (job === undefined) return this.#report(order.slot)
    this.#jobs[order.slot] = job
    this.#jobCount++
    this.#guard(job, () => this.#watch(job))
  }

  #watch(job: Job): void {
    const isWatched =
      this.#kernel.watch(this.#poll, job.from, EPOLLIN | EPOLLRDHUP, job.slot) &&
      this.#kernel.watch(this.#poll, job.to, EPOLLOUT, job.slot)
    if (isWatched) this.#wait(job)
    else this.#finish(job)
  }

  /** Makes a job. `undefined` if there are no descriptors to spare. */
  #makeJob(order: SpliceOrder): Job | undefined {
    if (this.#pace === 'prompt') {
      this.#room ??= this.#kernel.room(COPY_BYTES)
      return new CopiedJob(order, this.#slots, this.#kernel, this.#room)
    }
    this.#kernel.unpace(order.to)
    const pipe = this.#sparePipes.pop() ?? this.#kernel.pipe(PIPE_BYTES)
    return pipe && new PipedJob(order, this.#slots, this.#kernel, pipe)
  }

  #stop(slot: number): void {
    const job = this.#jobs[slot]
    if (job !== undefined) this.#guard(job, () => this.#finish(job))
  }

  /** Runs a task of a job. An error ends only that job. */
  #guard(job: Job, task: (job: Job) => void): void {
    try {
      task(job)
    } catch (error) {
      thrown(error)
      if (this.#jobs[job.slot] !== job) return
      this.#forget(job)
      // Its content belongs to no connection any more.
      if (job instanceof PipedJob) this.#kernel.closePipe(job.pipe)
      this.#report(job.slot, undefined, undefined, true)
    }
  }

  #serve(job: Job): void {
    const before = job.movedBytes
    const turn = job.turn()
    this.#movedBytes += job.movedBytes - before
    // An interactive connection that has become a large transfer ends here too. The main thread notices, and starts
    // another splice for it.
    if (turn === 'over' || (turn === 'unfinished' && this.#pace === 'prompt')) this.#finish(job)
    else if (turn === 'unfinished') this.#wait(job)
  }

  #wait(job: Job): void {
    if (job.isWaiting) return
    job.isWaiting = true
    this.#waiting.push(job)
  }

  #finish(job: Job): void {
    const leftover = job.readOut()
    this.#forget(job)
    if (job instanceof PipedJob) this.#keepPipe(job.sparePipe)
    this.#report(job.slot, job.failed, leftover)
  }

  /** Forgets a job. The main thread closes its descriptors after the report. */
  #forget(job: Job): void {
    this.#jobs[job.slot] = undefined
    this.#jobCount--
    for (const descriptor of [job.from, job.to]) this.#kernel.unwatch(this.#poll, descriptor)
  }

  #keepPipe(pipe: Pipe | undefined): void {
    if (pipe === undefined) return
    if (this.#sparePipes.length < MAX_SPARE_PIPES) this.#sparePipes.push(pipe)
    else this.#kernel.closePipe(pipe)
  }

  #report(slot: number, failed?: Side, leftover?: Uint8Array<ArrayBuffer>, isLost = false): void {
    const message: Finished = { slot, failed, leftover, isLost }
    parentPort?.postMessage(message, leftover === undefined ? [] : [leftover.buffer])
  }

  /** Leaves a core to the main thread, and to apps on both sides, while small responses are in progress. */
  #giveWay(): void {
    this.#movedBytes = 0
    const now = performance.now()
    const smallReads = this.#smallReads[0]!
    if (smallReads !== this.#smallReadsSeen) this.#politeUntil = now + POLITE_MS
    this.#smallReadsSeen = smallReads
    if (now < this.#politeUntil) Atomics.wait(NOTHING, 0, 0, REST_MS)
  }

  #sweep(now: number): void {
    if (this.#jobCount + this.#lanes.count === 0) return
    if (now - this.#sweptAt < IDLE_MS) return
    this.#sweptAt = now
    this.#lanes.sweep(now)
    for (const job of this.#jobs) {
      if (job === undefined) continue
      if (job.movedBytes === job.movedAtSweep && job.heldBytes === 0)
        this.#guard(job, () => this.#finish(job))
      job.movedAtSweep = job.movedBytes
    }
  }
}

function thrown(error: unknown): void {
  const message = error instanceof Error ? (error.stack ?? error.message) : String(error)
  parentPort?.postMessage({ kind: 'thrown', message } satisfies Thrown)
}

new Thread(workerData as ThreadData).run() // what `thread.ts` gives it
