// Starts splices, lanes and trunks for sockets: each on the thread for its kind of traffic, which starts when first needed.

import type { Lane, LaneTerms, Pace } from '../accelerator.ts'
import { reportShortage } from './faults.ts'
import { Kernel } from './kernel.ts'
import type { LaneListener, OpenTrunk } from './main-lanes.ts'
import { Supervisor } from './supervisor.ts'
import type { Outcome, RunningSplice, SpliceCounts, WorkerThread } from './worker-thread.ts'

/** The environment variable that turns the threads off if it is `0`. Every byte then stays on the main thread. */
const SWITCH = 'LOCALTUNNELS_SPLICE'
/** The pause in milliseconds after a check that failed for lack of descriptors. */
const ASK_AGAIN_MS = 1_000

/** The kernel. `null` if this process cannot use it. `undefined` before the first check. */
let kernel: Kernel | null | undefined
let askAgainAt = 0
const supervisors = new Map<Pace, Supervisor>()
/**
 * The program of the threads, with this file's own extension: `.ts`, or `.js` once built. In a single executable it
 * is where tools/binaries.ts put it.
 */
let program =
  'Bun' in globalThis && Bun.isStandaloneExecutable
    ? new URL('./src/accelerator/thread.js', import.meta.url)
    : new URL(`./thread${import.meta.url.slice(-3)}`, import.meta.url)

/** Whether bytes can be moved without the main thread. */
export function canSplice(): boolean {
  if (kernel === undefined && performance.now() >= askAgainAt) kernel = probe()
  return kernel !== undefined && kernel !== null
}

/** Sets the program of threads that start from now on, for tests. */
export function runInThreads(url: URL): void {
  program = url
}

export function spliceCounts(): SpliceCounts {
  const sum = { threads: 0, begun: 0, running: 0, movedBytes: 0, lanes: 0, laneEnds: 0 }
  for (const { counts } of supervisors.values()) {
    if (counts === undefined) continue
    sum.threads += counts.threads
    sum.begun += counts.begun
    sum.running += counts.running
    sum.movedBytes += counts.movedBytes
    sum.lanes += counts.lanes
    sum.laneEnds += counts.laneEnds
  }
  return sum
}

/**
 * Moves bytes from the connection of one descriptor to that of another, up to `limitBytes` or the end. No other code may read the
 * one or write the other until `ended` is called, once and never at once. `undefined` if this is impossible here, or now.
 */
export function spliceDescriptors(
  from: number,
  to: number,
  limitBytes: number,
  pace: Pace,
  ended: (outcome: Outcome) => void,
): RunningSplice | undefined {
  return threadOf(pace)?.start(from, to, limitBytes, ended)
}

/**
 * Starts the thread for lanes, before a trunk is opened, and waits for it. Resolves with `false` if it is impossible
 * here, or now.
 */
export function lanesReady(): Promise<boolean> {
  return supervisorOf('prompt')?.ready() ?? Promise.resolve(false)
}

/** Gives a connection to lanes. No other code may read or write it until `over` is called, once and never at once. */
export function openTrunk(
  descriptor: number,
  isAppSide: boolean,
  over: (isLost: boolean) => void,
): OpenTrunk | undefined {
  return threadOf('prompt')?.lanes.openTrunk(descriptor, isAppSide, over)
}

/**
 * Begins a lane (see `lane.ts`, and `app-lane.ts` for one without terms). No other code may read or write its
 * connection until `over` is called, once and never at once. `undefined` if this is impossible here, or now.
 */
export function beginLane(
  trunk: OpenTrunk,
  lane: number,
  descriptor: number,
  terms: LaneTerms | undefined,
  listener: LaneListener,
): Lane | undefined {
  return threadOf('prompt')?.lanes.begin(trunk, lane, descriptor, terms, listener)
}

/** Returns the thread for a kind of traffic. `undefined` also while it starts. */
function threadOf(pace: Pace): WorkerThread | undefined {
  return supervisorOf(pace)?.thread
}

function supervisorOf(pace: Pace): Supervisor | undefined {
  if (!canSplice() || !kernel) return undefined
  let supervisor = supervisors.get(pace)
  if (supervisor === undefined) {
    supervisor = new Supervisor(kernel, pace, () => program)
    supervisors.set(pace, supervisor)
  }
  return supervisor
}

function probe(): Kernel | null | undefined {
  const isKnown = process.platform === 'linux' && (process.arch === 'x64' || process.arch === 'arm64')
  if (!isKnown || process.env[SWITCH] === '0') return null
  try {
    const found = new Kernel()
    const isPossible = found.canSplice()
    if (isPossible !== undefined) return isPossible ? found : null
    askAgainAt = performance.now() + ASK_AGAIN_MS
    reportShortage()
    return undefined
  } catch {
    // No known C library, or no foreign calls in this build: bytes stay on the main thread.
    return null
  }
}
