// How this process is: the delay of its event loop, its memory and its descriptors.

import { readdirSync } from 'node:fs'

const LOOK_EVERY_MS = 100

export class ProcessState {
  /** Seconds that timers came late, in sum, how many there were, and the worst since the last look. */
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

  /** The longest delay since the last call, seconds. */
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

/** Returns the memory in bytes. `undefined` without a free descriptor, which the runtime needs to ask the system. */
export function usedMemory(): { readonly rss: number; readonly heapUsed: number } | undefined {
  try {
    return process.memoryUsage()
  } catch {
    return undefined // the other metrics are wanted all the more
  }
}

/** Returns the time of all processors that the process used, in microseconds. */
export function processorUs(): number {
  const { user, system } = process.cpuUsage()
  return user + system
}

/** Returns the number of open descriptors. `undefined` if this system does not say, or there is no free one to ask with. */
export function openDescriptors(): number | undefined {
  try {
    // The list holds the one that it is read by.
    return readdirSync('/proc/self/fd').length - 1
  } catch {
    return undefined // not Linux, or none is free
  }
}
