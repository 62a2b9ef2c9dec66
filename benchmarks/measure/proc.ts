// What Linux says about processes: processor time and memory, read from /proc.

import { dlopen, type Pointer, ptr } from 'bun:ffi'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'

/** `getconf CLK_TCK`; 100 on every Linux that Bun runs on. */
const TICKS_PER_SECOND = 100
const PAGE_BYTES = 4096

export interface Processes {
  readonly server: readonly number[]
  readonly client: readonly number[]
}

const time = new BigInt64Array(2)
let clock: ((id: number, time: Pointer) => number) | undefined

/** User and system time of all threads, in seconds, as precisely as the kernel has it. A process that is gone counts nothing. */
export function cpuSeconds(pids: readonly number[]): number {
  clock ??= dlopen('libc.so.6', { clock_gettime: { args: ['i32', 'ptr'], returns: 'i32' } }).symbols
    .clock_gettime
  let nanoseconds = 0
  // The clock of another process by its id (CPUCLOCK_SCHED). /proc/PID/stat has ticks of 10 ms: too coarse for a small rate.
  for (const pid of pids)
    if (clock((~pid << 3) | 2, ptr(time)) === 0) nanoseconds += Number(time[0]) * 1e9 + Number(time[1])
  return nanoseconds / 1e9
}

/** These processes and all that they have started. */
export function withDescendants(pids: readonly number[]): readonly number[] {
  return pids.flatMap(pid => {
    const children = read(`/proc/${pid}/task/${pid}/children`).split(' ').filter(Boolean).map(Number)
    return [pid, ...withDescendants(children)]
  })
}

export interface MachineTimes {
  /** When it was read, as `performance.now()`. */
  readonly at: number
  /** Seconds that all cores spent on anything at all. Tells whether other work ran meanwhile. */
  readonly busy: number
  /** Seconds in which a core was wanted and the hypervisor ran another machine on it. */
  readonly steal: number
}

export function busyTimes(): MachineTimes {
  const fields = read('/proc/stat').split('\n', 1)[0]!.trim().split(/\s+/).slice(1).map(Number)
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = fields
  const busy = (user + nice + system + irq + softirq) / TICKS_PER_SECOND
  return { at: performance.now(), busy, steal: steal / TICKS_PER_SECOND }
}

export function residentBytes(pids: readonly number[]): number {
  let pages = 0
  for (const pid of pids) pages += Number(read(`/proc/${pid}/statm`).split(' ')[1] ?? 0)
  return pages * PAGE_BYTES
}

/** What no other process has too: the text of a runtime is there once for all that run it. */
export function privateBytes(pids: readonly number[]): number {
  let kib = 0
  for (const pid of pids)
    for (const [, size] of read(`/proc/${pid}/smaps_rollup`).matchAll(/^Private_\w+: +(\d+)/gm))
      kib += Number(size)
  return kib * 1024
}

/** Highest resident size since `forgetPeak`. */
export function peakBytes(pids: readonly number[]): number {
  let kib = 0
  for (const pid of pids) kib += Number(/VmHWM:\s+(\d+)/.exec(read(`/proc/${pid}/status`))?.[1] ?? 0)
  return kib * 1024
}

export function forgetPeak(pids: readonly number[]): void {
  for (const pid of pids) {
    try {
      writeFileSync(`/proc/${pid}/clear_refs`, '5')
    } catch {
      // Gone, or not ours to reset: the peak then counts from its start.
    }
  }
}

export function openFiles(pids: readonly number[]): number {
  let count = 0
  for (const pid of pids) {
    try {
      count += readdirSync(`/proc/${pid}/fd`).length
    } catch {
      // Gone meanwhile: it holds nothing.
    }
  }
  return count
}

function read(path: string): string {
  try {
    return readFileSync(path, 'latin1')
  } catch {
    return ''
  }
}
