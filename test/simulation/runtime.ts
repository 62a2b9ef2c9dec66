// The runtime of the simulation, in place of Bun's for as long as one runs: clocks, timers, chance, connections. Everything above it is
// the real code, its sockets (src/sockets/bun*.ts) included. A simulation runs in one go, so that no other code sees any of this.

import type { Random } from '../support/random.ts'
import type { Network } from './network.ts'
import type { Process } from './process.ts'
import type { Timeline } from './timeline.ts'

/** Wall clocks begin here: 2026-01-01. */
const WALL_MS = 1_767_225_600_000
/** A clock that starts at 0 would hide code that takes 0 for "long ago". */
const UPTIME_MS = 500_000

// Threads that move bytes have no place here: they would not wait for the clock.
process.env.LOCALTUNNELS_SPLICE = '0'

type Replacement = readonly [owner: Record<string, unknown>, name: string, value: unknown]

export class Runtime {
  readonly #timeline: Timeline
  readonly #network: Network
  readonly #random: Random
  #lastTimer = 0

  constructor(timeline: Timeline, network: Network, random: Random) {
    this.#timeline = timeline
    this.#network = network
    this.#random = random
  }

  /** Runs `work` with this runtime in place of the real one. */
  run<Result>(work: () => Result): Result {
    const replacements = this.#replacements()
    const saved = replacements.map(([owner, name]) => owner[name])
    for (const [owner, name, value] of replacements) owner[name] = value
    try {
      return work()
    } finally {
      for (const [index, [owner, name]] of replacements.entries()) owner[name] = saved[index]
    }
  }

  #replacements(): readonly Replacement[] {
    const timeline = this.#timeline
    const globals = globalThis as unknown as Record<string, unknown>
    const bun = Bun as unknown as Record<string, unknown>
    type Task = (...args: unknown[]) => void
    const start = (task: Task, ms: number, isRepeated: boolean, args: unknown[]) =>
      this.#start(ms, isRepeated, () => task(...args))
    return [
      [
        globals,
        'setTimeout',
        (task: Task, ms = 0, ...args: unknown[]) => start(task, Math.max(1, ms), false, args),
      ],
      [
        globals,
        'setInterval',
        (task: Task, ms = 0, ...args: unknown[]) => start(task, Math.max(1, ms), true, args),
      ],
      [globals, 'setImmediate', (task: Task, ...args: unknown[]) => start(task, 0, false, args)],
      [globals, 'clearTimeout', clear],
      [globals, 'clearInterval', clear],
      [globals, 'clearImmediate', clear],
      [performance, 'now', () => timeline.now + UPTIME_MS],
      [Date, 'now', () => this.#wallMs],
      [Math, 'random', () => this.#random.bits() / 0x1_0000_0000],
      [bun, 'listen', (options: never) => this.#network.listen(this.#process, options)],
      [bun, 'connect', (options: never) => this.#network.connect(this.#process, options)],
    ] as unknown as readonly Replacement[] // objects of the runtime, taken for records
  }

  /** Of the machine whose program runs. */
  get #wallMs(): number {
    return Math.floor(WALL_MS + this.#timeline.now + (this.#timeline.current?.machine.wallOffsetMs ?? 0))
  }

  get #process(): Process {
    const { current } = this.#timeline
    if (current === undefined) throw new Error('a timer or a connection is asked for outside of any program')
    return current
  }

  #start(ms: number, isRepeated: boolean, task: () => void): Timer {
    const process = this.#process
    const id = ++this.#lastTimer
    const plan = (): void => {
      const cancel = this.#timeline.after(ms, process, () => {
        process.timers.delete(id)
        if (isRepeated) plan()
        task()
      })
      process.timers.set(id, cancel)
    }
    plan()
    return new Timer(process, id)
  }
}

class Timer {
  readonly #process: Process
  readonly #id: number

  constructor(process: Process, id: number) {
    this.#process = process
    this.#id = id
  }

  cancel(): void {
    this.#process.timers.get(this.#id)?.()
    this.#process.timers.delete(this.#id)
  }

  ref(): this {
    return this
  }

  unref(): this {
    return this
  }
}

function clear(timer: unknown): void {
  if (timer instanceof Timer) timer.cancel()
}
