// What Linux says about processes: processor time and memory, read from /proc.

import { readdirSync, readFileSync, writeFileSync } from 'node:fs'

/** `getconf CLK_TCK`; 100 on every Linux that Bun runs on. */
const TICKS_PER_SECOND = 100
const PAGE_BYTES = 4096

export interface Processes {
  readonly server: readonly number[]
  readonly client: readonly number[]
}

/** User and system time of all threads, in seconds. A process that is gone counts nothing. */
export function cpuSeconds(pids: readonly number[]): number {
  let ticks = 0
  for (const pid of pids) {
    const stat = read(`/proc/${pid}/stat`)
    // The name in brackets may hold blanks; the fields that count come behind it: utime is field 14, stime 15.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    ticks += Number(fields[11] ?? 0) + Number(fields[12] ?? 0)
  }
  return ticks / TICKS_PER_SECOND
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
