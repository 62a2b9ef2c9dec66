// The state of this process: the delay of its event loop, its memory and its descriptors.

import { readdirSync } from 'node:fs'

const LOOK_EVERY_MS = 100

export class ProcessState {
  /** The total delay of timers in seconds, their number, and the longest delay since the last call of `takeWorst`. */
  delaySum = 0
  delayCount = 0
  #worst = 0
  #dueAt = 0
  readonly #timer: ReturnType<typeof setInterval>

  constructor() {
    this.#dueAt = performance.now() + LOOK_EVERY_MS
    this.#timer = setInterval(() => this.#look(), LOOK_EVERY_MS)
    this.#timer.unref()
  }

  /** Returns the longest delay since the last call, in seconds. */
  takeWorst(): number {
    const worst = this.#worst
    this.#worst = 0
    return worst
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #look(): void {
    const now = performance.now()
    const late = Math.max(0, now - this.#dueAt) / 1_000
    this.#dueAt = now + LOOK_EVERY_MS
    this.delaySum += late
    this.delayCount++
    if (late > this.#worst) this.#worst = late
  }
}

/** Returns the memory in bytes. `undefined` without a free descriptor, which the runtime needs to read it. */
export function usedMemory(): { readonly rss: number; readonly heapUsed: number } | undefined {
  try {
    return process.memoryUsage()
  } catch {
    return undefined // the other metrics are then even more important
  }
}

/** Returns the processor time of the process, in microseconds. */
export function processorUs(): number {
  const { user, system } = process.cpuUsage()
  return user + system
}

/** Returns the number of open descriptors. `undefined` if this system does not report it, or no descriptor is free to read it. */
export function openDescriptors(): number | undefined {
  try {
    // The list includes the descriptor with which it is read.
    return readdirSync('/proc/self/fd').length - 1
  } catch {
    return undefined // not Linux, or no descriptor is free
  }
}
