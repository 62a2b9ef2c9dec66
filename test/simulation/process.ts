// A program on a machine. It can be frozen, which its clocks do not notice, and killed.

import type { Event, Timeline } from './timeline.ts'

export class Machine {
  readonly address: string
  /** How far its wall clock is off, in ms. */
  wallOffsetMs = 0
  /** It has no power: packets to it are lost. */
  isOff = false

  constructor(address: string) {
    this.address = address
  }
}

export class Process {
  readonly name: string
  readonly machine: Machine
  isFrozen = false
  isDead = false
  /** What came while it was frozen. */
  late: Event[] = []
  /** Timers that would still go off. */
  readonly timers: Map<number, () => void> = new Map()
  readonly #timeline: Timeline

  constructor(name: string, machine: Machine, timeline: Timeline) {
    this.name = name
    this.machine = machine
    this.#timeline = timeline
  }

  freeze(): void {
    this.isFrozen = true
  }

  thaw(): void {
    if (!this.isFrozen) return
    this.isFrozen = false
    const { late } = this
    this.late = []
    this.#timeline.again(late)
  }

  kill(): void {
    this.isDead = true
    this.late = []
    for (const cancel of this.timers.values()) cancel()
    this.timers.clear()
  }
}
