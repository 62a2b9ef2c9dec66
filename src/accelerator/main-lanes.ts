// The main thread's side of lanes and trunks: opens them and keeps their counts.

import type { Lane, LaneCounts, LaneEnd, LaneHandler, LaneTerms } from '../accelerator.ts'
import type { Kernel } from './kernel.ts'
import type { LaneOver } from './lane.ts'
import { MAX_TRUNKS, NUMBERS_OF_EXCHANGE, TORN } from './lane-values.ts'
import { MAX_LANES, type SharedSlots } from './shared-slots.ts'
import type { LaneCommand, LaneNews } from './thread-lanes.ts'

export interface LaneOutcome extends LaneEnd {
  readonly hasFailed: boolean
  /** Whether the thread died. */
  readonly isLost: boolean
}

/** A listener like `LaneHandler`, for the code that holds the loan. */
export interface LaneListener extends Omit<LaneHandler, 'over'> {
  over(outcome: LaneOutcome): void
}

/**
 * The time in milliseconds without lanes after which a trunk may be replaced by another client's. It is dialled again
 * within a tenth of a second when its visitors send requests.
 */
const IDLE_TRUNK_MS = 5_000

const NOTHING: LaneCounts = {
  requests: 0,
  bytesIn: 0,
  bytesOut: 0,
  unreported: { requests: 0, errors: 0, bytes: 0 },
}

export class OpenTrunk {
  readonly slot: number
  /** The number of lanes that were not returned, and the time since there are none. */
  laneCount = 0
  idleSince: number = performance.now()
  /** Called once: no lane uses the trunk any more, and the thread does not read its connection. */
  readonly over: (isLost: boolean) => void
  readonly #lanes: MainLanes
  #nextLane = 0
  #isOpen = true

  constructor(slot: number, lanes: MainLanes, over: (isLost: boolean) => void) {
    this.slot = slot
    this.#lanes = lanes
    this.over = over
  }

  get isOpen(): boolean {
    return this.#isOpen
  }

  nextLane(): number {
    return this.#nextLane++
  }

  refuse(lane: number, handler: LaneHandler): void {
    if (this.#lanes.begin(this, lane, -1, undefined, handler) !== undefined) return
    // The connection is closed, or has no room for the notice, for which the other side would wait.
    this.stop()
    handler.over({ ...TORN, counts: NOTHING })
    handler.back(true)
  }

  stop(): void {
    if (!this.#isOpen) return
    this.#isOpen = false
    this.#lanes.command({ kind: 'trunk-end', trunk: this.slot })
  }

  finish(isLost: boolean): void {
    this.#isOpen = false
    this.over(isLost)
  }
}

class RunningLane implements Lane {
  readonly slot: number
  readonly trunk: OpenTrunk
  /** A duplicate descriptor, closed here once the thread has stopped using it. */
  readonly descriptor: number
  readonly isOfVisitor: boolean
  readonly listener: LaneListener
  readonly #lanes: MainLanes
  isOver = false

  constructor(
    slot: number,
    trunk: OpenTrunk,
    descriptor: number,
    isOfVisitor: boolean,
    listener: LaneListener,
    lanes: MainLanes,
  ) {
    this.slot = slot
    this.trunk = trunk
    this.isOfVisitor = isOfVisitor
    this.descriptor = descriptor
    this.listener = listener
    this.#lanes = lanes
  }

  get counts(): LaneCounts {
    return this.#lanes.countsOf(this.slot)
  }

  stop(): void {
    if (!this.isOver) this.#lanes.command({ kind: 'end', slot: this.slot })
  }

  over(over: LaneOver, isLost: boolean): void {
    if (this.isOver) return
    this.isOver = true
    if (this.descriptor !== -1) this.#lanes.close(this.descriptor)
    this.listener.over({ ...over, counts: this.counts, isLost })
  }
}

export class MainLanes {
  readonly #kernel: Kernel
  readonly command: (command: LaneCommand) => void
  readonly #slots: SharedSlots
  readonly #running: (RunningLane | undefined)[] = []
  readonly #free = Array.from({ length: MAX_LANES }, (_, index) => MAX_LANES - 1 - index)
  readonly #trunks: (OpenTrunk | undefined)[] = []
  readonly #trunkDescriptors: number[] = []
  readonly #freeTrunks = Array.from({ length: MAX_TRUNKS }, (_, index) => MAX_TRUNKS - 1 - index)

  /** Makes the lanes. `command` gives a command to the thread, if that runs. */
  constructor(kernel: Kernel, slots: SharedSlots, command: (command: LaneCommand) => void) {
    this.#kernel = kernel
    this.#slots = slots
    this.command = command
  }

  get endCount(): number {
    return MAX_LANES - this.#free.length
  }

  get count(): number {
    return this.#running.filter(lane => lane?.isOfVisitor && !lane.isOver).length
  }

  countsOf(slot: number): LaneCounts {
    return this.#slots.counts(slot)
  }

  openTrunk(descriptor: number, isAppSide: boolean, over: (isLost: boolean) => void): OpenTrunk | undefined {
    const slot = this.#freeTrunks.pop()
    if (slot === undefined) {
      this.#retireIdleTrunk()
      return undefined
    }
    const [copy] = this.#kernel.duplicates([descriptor]) ?? []
    if (copy === undefined) {
      this.#freeTrunks.push(slot)
      return undefined
    }
    const trunk = new OpenTrunk(slot, this, over)
    this.#trunks[slot] = trunk
    this.#trunkDescriptors[slot] = copy
    this.command({ kind: 'trunk', trunk: slot, descriptor: copy, isAppSide })
    return trunk
  }

  /** Begins a lane. `descriptor` is -1 for a lane that cannot be served here. */
  begin(
    trunk: OpenTrunk,
    lane: number,
    descriptor: number,
    terms: LaneTerms | undefined,
    listener: LaneListener,
  ): Lane | undefined {
    if (!trunk.isOpen) return undefined
    const slot = this.#free.pop()
    if (slot === undefined) return undefined
    const [copy] = descriptor === -1 ? [-1] : (this.#kernel.duplicates([descriptor]) ?? [])
    if (copy === undefined) {
      this.#free.push(slot)
      return undefined
    }
    this.#slots.clearLane(slot)
    const running = new RunningLane(slot, trunk, copy, terms !== undefined, listener, this)
    this.#running[slot] = running
    trunk.laneCount++
    this.command({ kind: 'begin', order: { slot, descriptor: copy, trunk: trunk.slot, lane, terms } })
    return running
  }

  receive(news: LaneNews): void {
    switch (news.kind) {
      case 'exchanges':
        return this.#exchanged(news.numbers, news.requests.split('\n'))
      case 'lines':
        this.#slots.seen(news.count)
        return this.#running[news.slot]?.listener.logged?.(news.lines, news.count)
      case 'over':
        return this.#running[news.slot]?.over(news.over, false)
      case 'more':
        return this.#running[news.slot]?.listener.more(news.bytes)
      case 'back':
        return this.#back(news.slot, news.isTorn)
      case 'trunk-over':
        return this.#trunkOver(news.trunk, false)
    }
  }

  #exchanged(numbers: Float64Array, requests: readonly string[]): void {
    this.#slots.seen(requests.length)
    for (const [index, line] of requests.entries()) {
      // None of the three parts contains a space.
      const [method = '', target = '', requestId = ''] = line.split(' ')
      const at = NUMBERS_OF_EXCHANGE * index
      this.#running[numbers[at]!]?.listener.exchanged?.({
        requestId,
        method,
        target,
        status: numbers[at + 1]!,
        durationMs: numbers[at + 2]!,
        requestBytes: numbers[at + 3]!,
        bytes: numbers[at + 4]!,
      })
    }
  }

  /** Called when the thread died. An error of a listener is reported, and the other listeners are still called. */
  lose(thrown: (error: unknown) => void): void {
    const guarded = (task: () => void) => {
      try {
        task()
      } catch (error) {
        thrown(error)
      }
    }
    for (const lane of [...this.#running]) {
      if (lane === undefined) continue
      guarded(() => lane.over(TORN, true))
      guarded(() => this.#back(lane.slot, true))
    }
    for (const slot of this.#trunks.keys()) guarded(() => this.#trunkOver(slot, true))
  }

  close(descriptor: number): void {
    this.#kernel.close(descriptor)
  }

  #back(slot: number, isTorn: boolean): void {
    const lane = this.#running[slot]
    if (lane === undefined) return
    this.#running[slot] = undefined
    if (--lane.trunk.laneCount === 0) lane.trunk.idleSince = performance.now()
    try {
      lane.listener.back(isTorn)
    } finally {
      // Freed after the counts, before the next lane begins.
      this.#free.push(slot)
    }
  }

  /** Makes room for another client's trunk by ending one that has been idle. */
  #retireIdleTrunk(): void {
    let longest: OpenTrunk | undefined
    for (const trunk of this.#trunks) {
      if (trunk === undefined || trunk.laneCount > 0 || !trunk.isOpen) continue
      if (longest === undefined || trunk.idleSince < longest.idleSince) longest = trunk
    }
    if (longest !== undefined && performance.now() - longest.idleSince >= IDLE_TRUNK_MS) longest.stop()
  }

  #trunkOver(slot: number, isLost: boolean): void {
    const trunk = this.#trunks[slot]
    if (trunk === undefined) return
    this.#trunks[slot] = undefined
    this.#freeTrunks.push(slot)
    this.#kernel.close(this.#trunkDescriptors[slot]!)
    trunk.finish(isLost)
  }
}
