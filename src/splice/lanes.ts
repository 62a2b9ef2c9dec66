// The main thread's side of lanes: opens them, and keeps their books.

import type { MessagePort } from 'node:worker_threads'
import type { Lane, LaneCounts, LaneTerms, Splice } from '../socket.ts'
import type { Kernel } from './kernel.ts'
import type { LaneOrder, LaneOver } from './lane.ts'
import { LaneBoard, MAX_LANES } from './lane-board.ts'

/** As the thread told it, with what was counted. `isLost`: the thread died. */
export interface LaneOutcome extends Omit<LaneOver, 'lane'> {
  readonly counts: LaneCounts
  readonly sentBytes: number
  readonly receivedBytes: number
  readonly isLost: boolean
}

const LOST: Omit<LaneOver, 'lane'> = {
  request: undefined,
  isAsked: false,
  isTorn: true,
  isCrowded: false,
  answer: undefined,
  unsent: undefined,
  failed: undefined,
}

/** A lane under way. */
export class RunningLane implements Lane {
  readonly order: LaneOrder
  readonly #board: LaneBoard
  readonly #stop: () => void
  readonly #ended: (end: LaneOutcome) => void
  #isStopping = false
  /** The bytes that it moves each way, as whoever counts those wants to know. */
  readonly sending: Splice
  readonly receiving: Splice

  constructor(order: LaneOrder, board: LaneBoard, stop: () => void, ended: (end: LaneOutcome) => void) {
    this.order = order
    this.#board = board
    this.#stop = stop
    this.#ended = ended
    const { slot } = order
    this.sending = this.#way(() => board.sentBytes(slot))
    this.receiving = this.#way(() => board.receivedBytes(slot))
  }

  get counts(): LaneCounts {
    return this.#board.counts(this.order.slot)
  }

  /** Ends it, a moment later: with a request that is not answered yet, if there is one. */
  stop(): void {
    if (this.#isStopping) return
    this.#isStopping = true
    this.#stop()
  }

  finish(over: Omit<LaneOver, 'lane'>, isLost: boolean): void {
    this.#isStopping = true
    const { sending, receiving, counts } = this
    const { movedBytes: sentBytes } = sending
    const receivedBytes = receiving.movedBytes - (over.answer?.length ?? 0)
    this.#ended({ ...over, counts, sentBytes, receivedBytes, isLost })
  }

  #way(bytes: () => number): Splice {
    return {
      isPrompt: true,
      get movedBytes() {
        return bytes()
      },
      get takenBytes() {
        return bytes()
      },
      stop: () => this.stop(),
    }
  }
}

/** The lanes of one thread. */
export class Lanes {
  readonly #kernel: Kernel
  readonly #bell: number
  readonly #orders: MessagePort
  readonly #board = new LaneBoard()
  readonly #running: (RunningLane | undefined)[] = []
  readonly #free = Array.from({ length: MAX_LANES }, (_, index) => MAX_LANES - 1 - index)

  constructor(kernel: Kernel, bell: number, orders: MessagePort) {
    this.#kernel = kernel
    this.#bell = bell
    this.#orders = orders
  }

  get memory(): SharedArrayBuffer {
    return this.#board.memory
  }

  get count(): number {
    return MAX_LANES - this.#free.length
  }

  open(
    visitor: number,
    to: number,
    from: number,
    terms: LaneTerms,
    ended: (end: LaneOutcome) => void,
  ): RunningLane | undefined {
    const slot = this.#free.pop()
    if (slot === undefined) return undefined
    // The thread closes them.
    const copies = this.#kernel.duplicates(from === to ? [visitor, to] : [visitor, to, from])
    if (copies === undefined) {
      this.#free.push(slot)
      return undefined
    }
    const [visitorThere = -1, toThere = -1, fromThere = toThere] = copies
    const order: LaneOrder = { slot, visitor: visitorThere, to: toThere, from: fromThere, terms }
    this.#board.clear(slot)
    const lane = new RunningLane(order, this.#board, () => this.#tell(slot), ended)
    this.#running[slot] = lane
    this.#tell(order)
    return lane
  }

  over({ lane, ...over }: LaneOver): void {
    this.#finish(lane, over, false)
  }

  /** The thread died. */
  lose(): void {
    for (const lane of this.#running) {
      if (lane === undefined) continue
      // Nobody else closes them now.
      this.#close(lane.order)
      this.#finish(lane.order.slot, LOST, true)
    }
  }

  #finish(slot: number, over: Omit<LaneOver, 'lane'>, isLost: boolean): void {
    const lane = this.#running[slot]
    if (lane === undefined) return
    this.#running[slot] = undefined
    lane.finish(over, isLost)
    // Behind what `finish` reads, and before the next lane begins.
    this.#free.push(slot)
  }

  #close({ visitor, to, from }: LaneOrder): void {
    for (const descriptor of new Set([visitor, to, from])) this.#kernel.close(descriptor)
  }

  #tell(order: LaneOrder | number): void {
    this.#orders.postMessage(order)
    this.#kernel.ring(this.#bell)
  }
}
