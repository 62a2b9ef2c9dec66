// Splices, lanes and trunks as sockets ask for them: each goes to the thread of its pace, which runs once it is of use.

import type { Lane, LaneTerms, Pace } from '../accelerator.ts'
import { reportShortage } from './faults.ts'
import { Kernel } from './kernel.ts'
import type { LaneListener, OpenTrunk } from './main-lanes.ts'
import { Supervisor } from './supervisor.ts'
import type { Outcome, RunningSplice, SpliceCounts, WorkerThread } from './worker-thread.ts'

/** The environment variable that turns the threads off with `0`: every byte then passes the main thread. */
const SWITCH = 'LOCALTUNNELS_SPLICE'
/** The pause in milliseconds after a check that failed for want of descriptors. */
const ASK_AGAIN_MS = 1_000

/** The kernel. `null` if this process cannot use it. `undefined`: not known yet. */
let kernel: Kernel | null | undefined
let askAgainAt = 0
const supervisors = new Map<Pace, Supervisor>()
/**
 * The program of the threads, with this file's own ending: `.ts`, and `.js` once built. A single executable has it where
 * tools/binaries.ts put it.
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
 * Moves what comes on the connection of one descriptor to that of another, up to `limitBytes` or the end. Nothing else
 * may read the one or write the other until `ended` was called, once and later. `undefined`: not here, or not now.
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

/** Starts what serves lanes, for a trunk that is about to be opened, and waits for it. `false`: not here, or not now. */
export function lanesReady(): Promise<boolean> {
  return supervisorOf('prompt')?.ready() ?? Promise.resolve(false)
}

/** Gives a connection to lanes: nothing else may read or write it until `over` was called, once and later. */
export function openTrunk(
  descriptor: number,
  isAppSide: boolean,
  over: (isLost: boolean) => void,
): OpenTrunk | undefined {
  return threadOf('prompt')?.lanes.openTrunk(descriptor, isAppSide, over)
}

/**
 * Begins a lane (see `lane.ts`, and `app-lane.ts` for one without terms). Nothing else may read or write its connection
 * until `over` was called, once and later. `undefined`: not here, or not now.
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

/** Returns the thread of a pace. `undefined` also while it starts. */
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
    // No C library by a known name, or no foreign calls in this build: bytes pass the main thread.
    return null
  }
}
