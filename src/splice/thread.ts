// A thread that moves bytes: waits in epoll for the sockets of its jobs and lanes, and gives each its turn.

import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { Board, MAX_JOBS } from './board.ts'
import { CopiedJob, type Job, MAX_SPARE_PIPES, PipedJob, type Side } from './job.ts'
import { Changes, EPOLLIN, EPOLLOUT, EPOLLRDHUP, Kernel, type Pipe, type Room } from './kernel.ts'
import { LaneBoard } from './lane-board.ts'
import { Lookout } from './lookout.ts'
import { ThreadLanes } from './thread-lanes.ts'

/** What the main thread gives its thread to begin with. */
export interface ThreadData {
  readonly memory: SharedArrayBuffer
  /** Rung after each command. */
  readonly bell: number
  readonly pace: Pace
  /** See `activity.ts`. */
  readonly smallReads: Int32Array<SharedArrayBuffer>
  /** Numbers of the lanes. */
  readonly laneMemory: SharedArrayBuffer
  /** Brings each `LaneCommand`. The bell is rung after it. */
  readonly laneCommands: MessagePort
}

/** The first message: orders are followed from now on. */
export type Up = 'up'

/** Something threw: what it was about has ended, and the thread goes on. */
export interface Thrown {
  readonly kind: 'thrown'
  readonly message: string
}

/** A job is over. The leftover was read and did not reach the other socket. */
export interface Finished {
  readonly slot: number
  /** The side that broke: its error was reported here, and will not be reported again. */
  readonly failed: Side | undefined
  readonly leftover: Uint8Array<ArrayBuffer> | undefined
  /** The job failed in the middle: it is not known how many bytes went where. */
  readonly isLost: boolean
}

/** Bulk gives way to everybody. Prompt is a conversation: pieces so small that what counts is when they arrive. */
export type Pace = 'bulk' | 'prompt'

/**
 * What a stalled reader of bulk costs, in the kernel. All jobs together reach just the 64 MB that Linux gives the pipes of
 * an unprivileged user (`pipe-user-pages-soft`); 1 MB moved 5 to 10 % more a second, 256 KB as much less.
 */
const PIPE_BYTES = 524_288
/** What a conversation is copied through, and how much of it a stalled reader costs. */
const COPY_BYTES = 65_536
/** Bulk rests after so much, if it has to. */
const REST_AFTER_BYTES = 1_048_576
/** A job or lane that moves nothing for one to two of these ends: the program waits for bytes as well, at no cost. */
const IDLE_MS = 500

/**
 * Below everybody else's 0: somebody's small answer goes first. Beside a download, p99 of small answers was 13 to 18 times
 * their own alone without it, and 1.3 to 7 with it; the download itself keeps its speed while there is a core for it.
 */
const NICE = 10

/**
 * How long the thread rests after each turn while somebody's small answers pass, and how long after the last of them. With
 * all cores busy a lower priority alone left them waiting behind the ends of the download: p99 of small answers beside it
 * 7.2 ms without rests, 4.3 with 0.3 ms, 2.5 with 1 ms (1.3 alone); bulk by itself keeps 95 to 100 % of its speed.
 */
const REST_MS = 1
const POLITE_MS = 5

const MAX_CHANGES = 64
const BELL = 2 * MAX_JOBS
/** Lanes and their trunks. */
const FIRST_LANE = BELL + 1

/** Never changes: waiting for a change is a pause. */
const NOTHING = new Int32Array(new SharedArrayBuffer(4))

class Thread {
  readonly #kernel = new Kernel()
  readonly #poll = this.#kernel.poll()
  readonly #lookout = new Lookout(this.#kernel, this.#poll)
  readonly #board: Board
  readonly #bell: number
  readonly #pace: Pace
  readonly #jobs: (Job | undefined)[] = []
  #jobCount = 0
  /** Jobs that have more to move now, in the order of their turns. */
  #waiting: Job[] = []
  #turn: Job[] = []
  readonly #sparePipes: Pipe[] = []
  #room: Room | undefined
  #sweptAt = 0
  /** Made once: it is called for every piece of a conversation. */
  readonly #serving = (job: Job) => this.#serve(job)
  readonly #smallReads: Int32Array<SharedArrayBuffer>
  #smallReadsSeen = 0
  #politeUntil = 0
  /** By all jobs, since the last look at who else is there. */
  #movedBytes = 0
  readonly #lanes: ThreadLanes

  constructor({ memory, bell, pace, smallReads, laneMemory, laneCommands }: ThreadData) {
    this.#board = new Board(memory)
    this.#bell = bell
    this.#pace = pace
    this.#smallReads = smallReads
    const board = new LaneBoard(laneMemory)
    this.#lanes = new ThreadLanes(this.#kernel, this.#poll, FIRST_LANE, board, laneCommands, {
      tell: news => parentPort?.postMessage(news),
      thrown,
    })
  }

  run(): void {
    if (this.#pace === 'bulk') this.#kernel.beNice(NICE)
    if (!this.#kernel.watch(this.#poll, this.#bell, EPOLLIN, BELL))
      throw new Error('the bell cannot be watched')
    parentPort?.postMessage('up' satisfies Up)
    try {
      this.#turns()
    } finally {
      this.#closeOwn()
    }
  }

  /** What the main thread knows nothing of: another thread is started after this one. */
  #closeOwn(): void {
    for (const job of this.#jobs) if (job instanceof PipedJob) this.#kernel.closePipe(job.pipe)
    for (const pipe of this.#sparePipes) this.#kernel.closePipe(pipe)
    this.#kernel.close(this.#poll)
  }

  #turns(): never {
    const changes = new Changes(MAX_CHANGES)
    const orders = { start: (slot: number) => this.#order(slot), stop: (slot: number) => this.#stop(slot) }
    const bellBytes = new Uint8Array(8)
    let now = performance.now()
    for (;;) {
      const isBusy = this.#jobCount + this.#lanes.count > 0
      const timeoutMs = this.#waiting.length > 0 ? 0 : isBusy ? IDLE_MS : -1
      const mayLook = this.#pace === 'prompt' && timeoutMs !== 0
      const count = mayLook
        ? this.#lookout.await(changes, timeoutMs, now)
        : this.#kernel.wait(this.#poll, changes, timeoutMs)
      for (let index = 0; index < count; index++) {
        const number = changes.number(index)
        if (number === BELL) {
          this.#kernel.read(this.#bell, bellBytes)
          this.#lanes.followCommands()
        } else if (number >= FIRST_LANE) this.#lanes.changed(number, changes.isLast(index))
        else {
          // A change may be of a job that is over: then it is of no use, and of no harm to the next one.
          const job = this.#jobs[number]
          if (job !== undefined) {
            job.isLast ||= changes.isLast(index)
            this.#wait(job)
          }
        }
      }
      // First: somebody waits for it.
      this.#lanes.flush()
      this.#board.follow(orders)
      const turn = this.#waiting
      this.#waiting = this.#turn
      this.#turn = turn
      for (const job of turn) {
        job.isWaiting = false
        if (this.#jobs[job.slot] === job) this.#guard(job, this.#serving)
      }
      turn.length = 0
      now = performance.now()
      if (mayLook) this.#lookout.learn(count, now)
      this.#sweep(now)
      if (this.#pace === 'prompt') Atomics.add(this.#smallReads, 0, count)
      else if (this.#movedBytes >= REST_AFTER_BYTES) this.#giveWay()
    }
  }

  #order(slot: number): void {
    try {
      this.#start(slot)
    } catch (error) {
      thrown(error)
      this.#tell(slot, undefined, undefined, true)
    }
  }

  #start(slot: number): void {
    const job = this.#makeJob(slot)
    if (job === undefined) return this.#tell(slot)
    this.#jobs[slot] = job
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

  /** `undefined`: without descriptors to spare. */
  #makeJob(slot: number): Job | undefined {
    if (this.#pace === 'prompt') {
      this.#room ??= this.#kernel.room(COPY_BYTES)
      return new CopiedJob(slot, this.#board, this.#kernel, this.#room)
    }
    const pipe = this.#sparePipes.pop() ?? this.#kernel.pipe(PIPE_BYTES)
    return pipe && new PipedJob(slot, this.#board, this.#kernel, pipe)
  }

  #stop(slot: number): void {
    const job = this.#jobs[slot]
    if (job !== undefined) this.#guard(job, () => this.#finish(job))
  }

  /** What one job throws ends that job, and no other. */
  #guard(job: Job, task: (job: Job) => void): void {
    try {
      task(job)
    } catch (error) {
      thrown(error)
      if (this.#jobs[job.slot] !== job) return
      this.#forget(job)
      // What it holds belongs to no connection any more.
      if (job instanceof PipedJob) this.#kernel.closePipe(job.pipe)
      this.#tell(job.slot, undefined, undefined, true)
    }
  }

  #serve(job: Job): void {
    const before = job.movedBytes
    const turn = job.turn()
    this.#movedBytes += job.movedBytes - before
    // A conversation that has become bulk is over, too: the program finds that out as well, and has it moved as such.
    if (turn === 'over' || (turn === 'goes on' && this.#pace === 'prompt')) this.#finish(job)
    else if (turn === 'goes on') this.#wait(job)
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
    this.#tell(job.slot, job.failed, leftover)
  }

  /** The main thread closes the descriptors, once it has heard. */
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

  #tell(slot: number, failed?: Side, leftover?: Uint8Array<ArrayBuffer>, isLost = false): void {
    const message: Finished = { slot, failed, leftover, isLost }
    parentPort?.postMessage(message, leftover === undefined ? [] : [leftover.buffer])
  }

  /** Leaves a core to the main thread, and to the apps on both sides, while small answers are under way. */
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

new Thread(workerData as ThreadData).run() // what `splicer.ts` gives it
