// A thread that splices: waits in epoll for sockets of its jobs and moves their bytes through a pipe each.

import { parentPort, workerData } from 'node:worker_threads'
import { Board, MAX_JOBS } from './board.ts'
import { Changes, EPOLLIN, EPOLLOUT, FAILED, Kernel, type Pipe, WOULD_BLOCK } from './kernel.ts'

/** What the main thread gives its thread to begin with. */
export interface ThreadData {
  readonly memory: SharedArrayBuffer
  /** Rung after each command. */
  readonly bell: number
  readonly pace: Pace
  /** See `activity.ts`. */
  readonly smallReads: Int32Array<SharedArrayBuffer>
}

/** A job is over. The leftover was read and did not reach the other socket. */
export interface Finished {
  readonly slot: number
  /** The side that broke: its error was told here, and will not be told again. */
  readonly failed: Side | undefined
  readonly leftover: Uint8Array<ArrayBuffer> | undefined
}

export type Side = 'from' | 'to'

/** Bulk gives way to everybody. Prompt is a conversation: pieces so small that what counts is when they arrive. */
export type Pace = 'bulk' | 'prompt'

/**
 * What a stalled reader costs, in the kernel. All jobs together reach just the 64 MB that Linux gives the pipes of an
 * unprivileged user (`pipe-user-pages-soft`); 1 MB moved 5 to 10 % more a second, 256 KB as much less. A conversation has
 * what every pipe has to begin with.
 */
const PIPE_BYTES = { bulk: 524_288, prompt: 65_536 }
/** Pipes kept for the next jobs. */
const MAX_SPARE_PIPES = 16
/** What one job moves before the others have their turn. */
const TURN_BYTES = 1_048_576
/** A job that moves nothing for one to two of these ends: the program waits for bytes as well, at no cost. */
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

/**
 * How long the thread of conversations looks for the next piece before it sleeps, if the last ones came so soon: a core
 * that fell asleep takes as long to wake up as all the rest of a round trip on the same machine. Others who want the core
 * get it between two looks. Over a network pieces come later, and nothing is spent.
 */
const LOOK_MS = 0.05
/** A sleep that was no longer than this says that the next piece may come within a look: it has the time to wake up in it. */
const SHORT_SLEEP_MS = 0.1
/** It looks while there were so many short sleeps and looks that found something more than twice the others. */
const ENOUGH_SOON = 4

const MAX_CHANGES = 64
const BELL = 2 * MAX_JOBS

/** Nobody changes it: to wait for a change is to rest. */
const NOTHING = new Int32Array(new SharedArrayBuffer(4))

class Job {
  readonly slot: number
  readonly from: number
  readonly to: number
  readonly limitBytes: number
  readonly pipe: Pipe
  takenBytes = 0
  movedBytes = 0
  movedAtSweep = -1
  /** Nothing more is taken. */
  hasEnded = false
  /** Nothing more is passed on. */
  isStuck = false
  /** It is among those whose turn comes. */
  isWaiting = false
  /** What is in the pipe is nobody's. */
  isSpoilt = false
  failed: Side | undefined

  constructor(slot: number, board: Board, pipe: Pipe) {
    this.slot = slot
    this.from = board.from(slot)
    this.to = board.to(slot)
    this.limitBytes = board.limitBytes(slot)
    this.pipe = pipe
  }

  get heldBytes(): number {
    return this.takenBytes - this.movedBytes
  }
}

class Thread {
  readonly #kernel = new Kernel()
  readonly #poll = this.#kernel.poll()
  readonly #board: Board
  readonly #bell: number
  readonly #pace: Pace
  readonly #jobs: (Job | undefined)[] = []
  #jobCount = 0
  /** Jobs that have more to move now, in the order of their turns. */
  #waiting: Job[] = []
  #turn: Job[] = []
  readonly #sparePipes: Pipe[] = []
  #sweptAt = 0
  readonly #smallReads: Int32Array<SharedArrayBuffer>
  #smallReadsSeen = 0
  #politeUntil = 0
  /** How often lately the next piece came soon, less twice the other times. */
  #soon = 0
  /** By all jobs, since the last look at who else is there. */
  #movedBytes = 0

  constructor({ memory, bell, pace, smallReads }: ThreadData) {
    this.#board = new Board(memory)
    this.#bell = bell
    this.#pace = pace
    this.#smallReads = smallReads
  }

  run(): never {
    const changes = new Changes(MAX_CHANGES)
    const orders = { start: (slot: number) => this.#start(slot), stop: (slot: number) => this.#stop(slot) }
    const bellBytes = new Uint8Array(8)
    if (this.#pace === 'bulk') this.#kernel.beNice(NICE)
    this.#kernel.watch(this.#poll, this.#bell, EPOLLIN, BELL)
    for (;;) {
      const timeoutMs = this.#waiting.length > 0 ? 0 : this.#jobCount > 0 ? IDLE_MS : -1
      const count = this.#await(changes, timeoutMs)
      for (let index = 0; index < count; index++) {
        const number = changes.number(index)
        if (number === BELL) this.#kernel.read(this.#bell, bellBytes)
        else {
          // A change may be of a job that is over: then it is of no use, and of no harm to the next one.
          const job = this.#jobs[number]
          if (job !== undefined) this.#wait(job)
        }
      }
      this.#board.follow(orders)
      const turn = this.#waiting
      this.#waiting = this.#turn
      this.#turn = turn
      for (const job of turn) {
        job.isWaiting = false
        if (this.#jobs[job.slot] === job) this.#serve(job)
      }
      turn.length = 0
      this.#sweep()
      if (this.#pace === 'prompt') Atomics.add(this.#smallReads, 0, count)
      else if (this.#movedBytes >= TURN_BYTES) this.#giveWay()
    }
  }

  #await(changes: Changes, timeoutMs: number): number {
    if (this.#pace === 'bulk' || timeoutMs === 0) return this.#kernel.wait(this.#poll, changes, timeoutMs)
    const looks = this.#soon >= ENOUGH_SOON
    const found = looks ? this.#look(changes) : 0
    const began = performance.now()
    const count = found > 0 ? found : this.#kernel.wait(this.#poll, changes, timeoutMs)
    const cameSoon = looks ? found > 0 : performance.now() - began < SHORT_SLEEP_MS
    this.#soon = cameSoon ? Math.min(this.#soon + 1, 2 * ENOUGH_SOON) : Math.max(this.#soon - 2, 0)
    return count
  }

  #look(changes: Changes): number {
    const until = performance.now() + LOOK_MS
    for (;;) {
      const found = this.#kernel.wait(this.#poll, changes, 0)
      if (found > 0 || performance.now() >= until) return found
      this.#kernel.yield()
    }
  }

  #start(slot: number): void {
    const pipe = this.#sparePipes.pop() ?? this.#kernel.pipe(PIPE_BYTES[this.#pace])
    if (pipe === undefined) {
      this.#kernel.close(this.#board.from(slot))
      this.#kernel.close(this.#board.to(slot))
      return this.#tell(slot)
    }
    const job = new Job(slot, this.#board, pipe)
    this.#jobs[slot] = job
    this.#jobCount++
    const isWatched =
      this.#kernel.watch(this.#poll, job.from, EPOLLIN, slot) &&
      this.#kernel.watch(this.#poll, job.to, EPOLLOUT, slot)
    if (isWatched) this.#wait(job)
    else this.#finish(job)
  }

  #stop(slot: number): void {
    const job = this.#jobs[slot]
    if (job !== undefined) this.#finish(job)
  }

  /** Moves until nothing moves any more, both sockets will tell of a change, or the turn is over. */
  #serve(job: Job): void {
    const turnEnd = job.movedBytes + TURN_BYTES
    while (job.movedBytes < turnEnd) {
      const took = this.#take(job)
      const passed = !job.isSpoilt && this.#pass(job)
      const isWhole = job.hasEnded || job.takenBytes === job.limitBytes
      if (job.isSpoilt || job.isStuck || (isWhole && job.heldBytes === 0)) return this.#finish(job)
      if (!took && !passed) return
    }
    // A conversation that has become bulk: the program finds that out as well, and has it moved as such.
    if (this.#pace === 'prompt') this.#finish(job)
    else this.#wait(job)
  }

  #wait(job: Job): void {
    if (job.isWaiting) return
    job.isWaiting = true
    this.#waiting.push(job)
  }

  #take(job: Job): boolean {
    const room = Math.min(job.pipe.capacityBytes - job.heldBytes, job.limitBytes - job.takenBytes)
    if (job.hasEnded || room <= 0) return false
    const count = this.#kernel.splice(job.from, job.pipe.writeEnd, room)
    if (count === WOULD_BLOCK) return false
    if (count > 0 && this.#kernel.isConnected(job.from)) {
      job.takenBytes += count
      this.#board.taken(job.slot, job.takenBytes)
      return true
    }
    job.hasEnded = true
    if (count === FAILED) job.failed = 'from'
    // After a reset the runtime reads as well, paused or not: nobody knows what lay between these bytes and the last.
    if (count > 0) {
      job.failed = 'from'
      job.isSpoilt = true
    }
    return true
  }

  #pass(job: Job): boolean {
    if (job.heldBytes === 0) return false
    const count = this.#kernel.splice(job.pipe.readEnd, job.to, job.heldBytes)
    if (count === WOULD_BLOCK) return false
    if (count > 0) {
      job.movedBytes += count
      this.#movedBytes += count
      this.#board.moved(job.slot, job.movedBytes)
    } else {
      job.isStuck = true
      if (count === FAILED) job.failed = 'to'
    }
    return count > 0
  }

  #finish(job: Job): void {
    // First: should it throw, the main thread closes what this one has not.
    const leftover = job.isSpoilt ? undefined : this.#readOut(job)
    this.#jobs[job.slot] = undefined
    this.#jobCount--
    for (const descriptor of [job.from, job.to]) {
      // Closing alone would not do: epoll forgets a connection when its last descriptor is closed, which is not ours.
      this.#kernel.unwatch(this.#poll, descriptor)
      this.#kernel.close(descriptor)
    }
    if (!job.isSpoilt && this.#sparePipes.length < MAX_SPARE_PIPES) this.#sparePipes.push(job.pipe)
    else this.#kernel.closePipe(job.pipe)
    this.#tell(job.slot, job.failed, leftover)
  }

  #readOut({ heldBytes, pipe }: Job): Uint8Array<ArrayBuffer> | undefined {
    if (heldBytes === 0) return undefined
    const leftover = new Uint8Array(heldBytes)
    for (let at = 0; at < heldBytes; ) {
      const count = this.#kernel.read(pipe.readEnd, leftover.subarray(at))
      if (count <= 0) throw new Error('a pipe holds less than was put into it')
      at += count
    }
    return leftover
  }

  #tell(slot: number, failed?: Side, leftover?: Uint8Array<ArrayBuffer>): void {
    const message: Finished = { slot, failed, leftover }
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

  #sweep(): void {
    if (this.#jobCount === 0) return
    const now = performance.now()
    if (now - this.#sweptAt < IDLE_MS) return
    this.#sweptAt = now
    for (const job of this.#jobs) {
      if (job === undefined) continue
      if (job.movedBytes === job.movedAtSweep && job.heldBytes === 0) this.#finish(job)
      job.movedAtSweep = job.movedBytes
    }
  }
}

new Thread(workerData as ThreadData).run() // what `splicer.ts` gives it
