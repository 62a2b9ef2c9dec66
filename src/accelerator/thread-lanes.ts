// The thread's lanes and trunks: begins them on command, gives each its turn, and reports their ends to the main thread.

import type { LaneExchange, LaneLog } from '../accelerator.ts'
import { AppLane } from './app-lane.ts'
import { EPOLLIN, EPOLLOUT, EPOLLRDHUP, type Kernel } from './kernel.ts'
import { Lane, type LaneOrder, type LaneOver, type LaneSide, LaneTools } from './lane.ts'
import { NUMBERS_OF_EXCHANGE, TORN } from './lane-values.ts'
import { LineRoom, type ServedLine } from './line-room.ts'
import { MAX_LANES, type SharedSlots } from './shared-slots.ts'
import { IN_BYTES, Trunk } from './trunk.ts'

/**
 * The time in milliseconds within which each piece of a response must follow the one before. The first response of a
 * streaming app is delayed by this once: its lane ends, and the next lane begins only after more small requests.
 */
export const HOLD_MS = 2
/** The time in milliseconds for all pieces together. On a slow path the visitor then gets the pieces so far. */
const HOLD_ALL_MS = 10

/** The time in milliseconds for the other side's last message. If exceeded, the trunk or its other end is dead. */
const LAST_WORD_MS = 10_000

export type LaneCommand =
  | { readonly kind: 'begin'; readonly order: LaneOrder }
  | { readonly kind: 'end'; readonly slot: number }
  /** A trunk. `isAppSide`: the other end begins its lanes. */
  | {
      readonly kind: 'trunk'
      readonly trunk: number
      readonly descriptor: number
      readonly isAppSide: boolean
    }
  | { readonly kind: 'trunk-end'; readonly trunk: number }

export interface LaneReports {
  report(news: LaneNews): void
  /** Called with an error, after the splice, lane or trunk with the error was ended. */
  thrown(error: unknown): void
}

/**
 * A report of the thread. A lane reports its exchanges if its terms ask for that, `over` once, `more` any number of
 * times, `back` once.
 */
export type LaneNews =
  /**
   * Five numbers per exchange (slot, status, duration, bytes of request and response), and a line per request
   * (method, target, id). A message with objects would cost several times as much.
   */
  | { readonly kind: 'exchanges'; readonly numbers: Float64Array<ArrayBuffer>; readonly requests: string }
  /** Lines for the access log of the lane. */
  | {
      readonly kind: 'lines'
      readonly slot: number
      readonly lines: Uint8Array<ArrayBuffer>
      readonly count: number
    }
  | { readonly kind: 'over'; readonly slot: number; readonly over: LaneOver }
  | { readonly kind: 'more'; readonly slot: number; readonly bytes: Uint8Array<ArrayBuffer> }
  | { readonly kind: 'back'; readonly slot: number; readonly isTorn: boolean }
  /** The trunk has ended. This comes after the last news of its lanes. */
  | { readonly kind: 'trunk-over'; readonly trunk: number }

/**
 * The time in milliseconds for which exchanges wait for others before they are reported. It is too short for a person to
 * notice. A message costs about 20 µs at both ends and wakes two main threads: with 16 ms, the command line needed 8
 * % more at 400 requests a second.
 */
export const REPORT_MS = 50
const FULL_REPORT = 256
/** The size of the lines of that many requests, with the longest one. */
const LINES_BYTES = 131_072

export class ThreadLanes {
  readonly #kernel: Kernel
  readonly #poll: number
  /** The number in epoll of the first lane; trunks follow the lanes. */
  readonly #firstNumber: number
  readonly #slots: SharedSlots
  readonly #reports: LaneReports
  /** The parsers, made when first needed. */
  #tools: LaneTools | undefined
  readonly #lanes: (LaneSide | undefined)[] = []
  readonly #trunks: (Trunk | undefined)[] = []
  #laneCount = 0
  /** The exchanges to report, with the slots of their lanes. They are collected because a message costs more than its content. */
  #exchanges: LaneExchange[] = []
  #exchangeSlots: number[] = []
  /** The lines that were not sent to the logs yet, by the number of the log. */
  readonly #logs = new Map<number, { readonly room: LineRoom; slot: number }>()
  #lineCount = 0
  /** The time since when exchanges wait. 0 if none do. */
  #reportingSince = 0
  #trunkIn: ReturnType<Kernel['room']> | undefined

  constructor(kernel: Kernel, poll: number, firstNumber: number, slots: SharedSlots, reports: LaneReports) {
    this.#kernel = kernel
    this.#poll = poll
    this.#firstNumber = firstNumber
    this.#slots = slots
    this.#reports = reports
  }

  /** The number of lanes that were not returned. */
  get count(): number {
    return this.#laneCount
  }

  /** Called when the descriptor with this number in epoll changed. */
  changed(number: number, isLast: boolean): void {
    const index = number - this.#firstNumber
    // The change may be of a lane that has ended. The next one in its place then finds nothing to read.
    if (index >= MAX_LANES) return this.#trunkChanged(this.#trunks[index - MAX_LANES], isLast)
    const lane = this.#lanes[index]
    try {
      lane?.changed(isLast)
    } catch (error) {
      lane?.crash(error)
    }
  }

  #trunkChanged(trunk: Trunk | undefined, isLast: boolean): void {
    try {
      trunk?.changed(isLast)
    } catch (error) {
      // The error belongs to no single lane: see `Trunk.#frameArrived`. `flush` closes the trunk.
      this.#reports.thrown(error)
      if (trunk !== undefined) trunk.isBroken = true
    }
  }

  /** Called at the end of a turn: writes the bytes of all lanes with one write for each trunk. */
  flush(): void {
    for (const [index, trunk] of this.#trunks.entries()) {
      if (trunk === undefined) continue
      trunk.flush()
      if (trunk.isBroken) this.#closeTrunk(index, trunk)
    }
    if (this.#toReport >= FULL_REPORT) this.#reportAll()
  }

  get isReporting(): boolean {
    return this.#toReport > 0
  }

  get #toReport(): number {
    return this.#exchanges.length + this.#lineCount
  }

  /** Reports exchanges that have waited long enough for others. */
  reportDue(now: number): void {
    if (!this.isReporting) return
    this.#reportingSince ||= now
    if (now - this.#reportingSince >= REPORT_MS) this.#reportAll()
  }

  /** Ends lanes without a request since the last sweep: waiting costs nothing on the main thread, which has timeouts. */
  sweep(now: number): void {
    for (const [number, { room }] of this.#logs) if (room.count === 0) this.#logs.delete(number)
    for (const lane of this.#lanes) {
      if (lane === undefined) continue
      if (lane.hasLeft) {
        lane.leavingSince ||= now
        if (now - lane.leavingSince > LAST_WORD_MS) lane.trunk.isBroken = true
      } else if (lane instanceof Lane) {
        if (lane.requests === lane.requestsAtSweep) this.#finish(lane)
        lane.requestsAtSweep = lane.requests
      }
    }
  }

  get isHolding(): boolean {
    return this.#tools !== undefined && this.#tools.holding.size > 0
  }

  /** Ends lanes that have held the beginning of a response for too long. */
  endHeld(now: number): void {
    for (const lane of this.#tools?.holding ?? [])
      if (now - lane.heldSince >= HOLD_MS || now - lane.heldFrom >= HOLD_ALL_MS) this.#finish(lane)
  }

  #finish(lane: LaneSide): void {
    try {
      lane.finish()
    } catch (error) {
      lane.crash(error)
    }
  }

  follow(command: LaneCommand): void {
    switch (command.kind) {
      case 'begin':
        return this.#begin(command.order)
      case 'end': {
        const lane = this.#lanes[command.slot]
        return lane && this.#finish(lane)
      }
      case 'trunk':
        return this.#openTrunk(command.trunk, command.descriptor, command.isAppSide)
      case 'trunk-end': {
        const trunk = this.#trunks[command.trunk]
        return trunk && this.#closeTrunk(command.trunk, trunk)
      }
    }
  }

  #begin(order: LaneOrder): void {
    const { slot, descriptor, terms } = order
    const trunk = this.#trunks[order.trunk]
    if (trunk === undefined || trunk.isBroken) return this.#refuse(order)
    if (trunk.endpoints.has(order.lane)) {
      // The other side numbers its lanes, and used this number twice.
      trunk.isBroken = true
      return this.#refuse(order)
    }
    this.#tools ??= new LaneTools(this.#kernel, this.#slots, {
      logged: (lane, log, line) => this.#log(lane.order.slot, log, line),
      exchanged: (lane, exchange) => {
        this.#exchanges.push(exchange)
        this.#exchangeSlots.push(lane.order.slot)
      },
      over: (lane, over) => this.#over(lane, over),
      more: (lane, bytes) => this.#reports.report({ kind: 'more', slot: lane.order.slot, bytes }),
      back: (lane, isTorn) => this.#back(lane.order.slot, isTorn),
      thrown: error => this.#reports.thrown(error),
    })
    const lane =
      terms === undefined
        ? new AppLane(order, trunk, this.#tools)
        : new Lane(order, terms, trunk, this.#tools)
    this.#lanes[slot] = lane
    this.#laneCount++
    // Bytes that have already arrived are reported as a change.
    const events = EPOLLIN | EPOLLRDHUP
    const isWatched =
      descriptor !== -1 && this.#kernel.watch(this.#poll, descriptor, events, this.#firstNumber + slot)
    if (!isWatched) this.#finish(lane)
    try {
      trunk.begin(lane)
    } catch (error) {
      lane.crash(error)
    }
  }

  /** Refuses a lane, because the trunk is gone: `trunk-over` is in transit to the main thread. */
  #refuse({ slot }: LaneOrder): void {
    this.#reports.report({ kind: 'over', slot, over: TORN })
    this.#reports.report({ kind: 'back', slot, isTorn: true })
  }

  #over({ order }: LaneSide, over: LaneOver): void {
    // The main thread closes the descriptor after the report.
    if (order.descriptor !== -1) this.#kernel.unwatch(this.#poll, order.descriptor)
    this.#reportAll()
    this.#reports.report({ kind: 'over', slot: order.slot, over })
  }

  #log(slot: number, log: LaneLog, line: ServedLine): void {
    let lines = this.#logs.get(log.number)
    if (lines === undefined) {
      lines = { room: new LineRoom(LINES_BYTES), slot }
      this.#logs.set(log.number, lines)
    }
    lines.slot = slot
    const id = Number(Atomics.add(log.ids, 0, 1n)) + 1
    if (!lines.room.add(id, log, line)) {
      this.#reportAll()
      lines.room.add(id, log, line)
    }
    this.#lineCount++
  }

  #reportAll(): void {
    this.#reportExchanges()
    this.#slots.reported(this.#lineCount)
    for (const { room, slot } of this.#logs.values())
      if (room.count > 0) this.#reports.report({ kind: 'lines', slot, count: room.count, lines: room.take() })
    this.#lineCount = 0
    this.#reportingSince = 0
  }

  #reportExchanges(): void {
    if (this.#exchanges.length === 0) return
    this.#slots.reported(this.#exchanges.length)
    const numbers = new Float64Array(NUMBERS_OF_EXCHANGE * this.#exchanges.length)
    let requests = ''
    for (const [
      index,
      { requestId, method, target, status, durationMs, requestBytes, bytes },
    ] of this.#exchanges.entries()) {
      const at = NUMBERS_OF_EXCHANGE * index
      numbers[at] = this.#exchangeSlots[index]!
      numbers[at + 1] = status
      numbers[at + 2] = durationMs
      numbers[at + 3] = requestBytes
      numbers[at + 4] = bytes
      requests += `${index === 0 ? '' : '\n'}${method} ${target} ${requestId}`
    }
    this.#reports.report({ kind: 'exchanges', numbers, requests })
    this.#exchanges = []
    this.#exchangeSlots = []
  }

  #back(slot: number, isTorn: boolean): void {
    this.#lanes[slot] = undefined
    this.#laneCount--
    this.#reports.report({ kind: 'back', slot, isTorn })
  }

  #openTrunk(index: number, descriptor: number, isAppSide: boolean): void {
    this.#trunkIn ??= this.#kernel.room(IN_BYTES)
    const trunk = new Trunk(this.#kernel, descriptor, this.#trunkIn, isAppSide)
    this.#trunks[index] = trunk
    const number = this.#firstNumber + MAX_LANES + index
    const isWatched = this.#kernel.watch(this.#poll, descriptor, EPOLLIN | EPOLLOUT | EPOLLRDHUP, number)
    if (!isWatched) this.#closeTrunk(index, trunk)
  }

  #closeTrunk(index: number, trunk: Trunk): void {
    this.#trunks[index] = undefined
    trunk.close()
    this.#kernel.unwatch(this.#poll, trunk.descriptor)
    this.#reports.report({ kind: 'trunk-over', trunk: index })
  }
}
