// Splices, lanes and trunks as sockets ask for them: each goes to the thread of its pace, which runs once it is of use.

import type { Lane, LaneTerms, Trunk } from '../socket.ts'
import { reportShortage } from './faults.ts'
import { Keeper } from './keeper.ts'
import { Kernel } from './kernel.ts'
import { type LaneListener, OpenTrunk } from './lanes.ts'
import type { Job, Outcome, SpliceCounts, Splicer } from './splicer.ts'
import type { Pace } from './thread.ts'

/** Set to `0` for the way through the program, always. */
const SWITCH = 'LOCALTUNNELS_SPLICE'
/** Where descriptors were too few for an answer, it is looked for again after this long. */
const ASK_AGAIN_MS = 1_000

/** `null`: not possible in this process. `undefined`: not known yet. */
let kernel: Kernel | null | undefined
let askAgainAt = 0
/** Of the threads that were of use so far. */
const keepers = new Map<Pace, Keeper>()
/** This file's own ending: `.ts`, and `.js` once built. */
let program = new URL(`./thread${import.meta.url.slice(-3)}`, import.meta.url)

/** Whether bytes can be moved without the program seeing them. */
export function canSplice(): boolean {
  if (kernel === undefined && performance.now() >= askAgainAt) kernel = probe()
  return kernel !== undefined && kernel !== null
}

/** For tests: what threads run that start from now on. */
export function runInThreads(url: URL): void {
  program = url
}

export function spliceCounts(): SpliceCounts {
  const sum = { threads: 0, begun: 0, running: 0, movedBytes: 0, lanes: 0, laneEnds: 0 }
  for (const { counts } of keepers.values()) {
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
): Job | undefined {
  return splicerOf(pace)?.start(from, to, limitBytes, ended)
}

/** Whether lanes can be begun here: on a trunk, once there is one. */
export function canBeginLane(): boolean {
  return canSplice()
}

/** Starts what serves lanes, for a trunk that is about to be opened, and waits for it. `false`: not here, or not now. */
export function lanesReady(): Promise<boolean> {
  return keeperOf('prompt')?.ready() ?? Promise.resolve(false)
}

/** Gives a connection to lanes: nothing else may read or write it until `over` was called, once and later. */
export function openTrunk(
  descriptor: number,
  isAppSide: boolean,
  over: (isLost: boolean) => void,
): OpenTrunk | undefined {
  return splicerOf('prompt')?.lanes.openTrunk(descriptor, isAppSide, over)
}

/**
 * Begins a lane (see `lane.ts`, and `app-lane.ts` for one without terms). Nothing else may read or write its connection
 * until `over` was called, once and later. `undefined`: not here, or not now.
 */
export function beginLane(
  trunk: Trunk,
  lane: number,
  descriptor: number,
  terms: LaneTerms | undefined,
  listener: LaneListener,
): Lane | undefined {
  if (!(trunk instanceof OpenTrunk)) return undefined
  return splicerOf('prompt')?.lanes.begin(trunk, lane, descriptor, terms, listener)
}

/** `undefined` also while its thread starts. */
function splicerOf(pace: Pace): Splicer | undefined {
  return keeperOf(pace)?.splicer
}

function keeperOf(pace: Pace): Keeper | undefined {
  if (!canSplice() || !kernel) return undefined
  let keeper = keepers.get(pace)
  if (keeper === undefined) {
    keeper = new Keeper(kernel, pace, () => program)
    keepers.set(pace, keeper)
  }
  return keeper
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
    // No libc by a name we know, or no foreign calls in this build: the way through the program is always there.
    return null
  }
}
