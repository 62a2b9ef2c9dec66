// The splicing thread: how it is switched off, and that its death loses no job without a word.

import { afterEach, describe, expect, mock, spyOn, test } from 'bun:test'
import { openSync, readdirSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import { watchFaults } from '../../src/accelerator/faults.ts'
import { Kernel } from '../../src/accelerator/kernel.ts'
import type { LaneOver } from '../../src/accelerator/lane.ts'
import { MAX_TRUNKS } from '../../src/accelerator/lane-values.ts'
import { type LaneListener, MainLanes } from '../../src/accelerator/main-lanes.ts'
import { SharedSlots } from '../../src/accelerator/shared-slots.ts'
import type { LaneCommand } from '../../src/accelerator/thread-lanes.ts'
import { beginLane, canSplice, lanesReady, openTrunk } from '../../src/accelerator/threads.ts'
import { type Outcome, WorkerThread } from '../../src/accelerator/worker-thread.ts'
import { eventually } from '../support/events.ts'
import { laneTerms } from '../support/lane-terms.ts'
import { joined, pair } from '../support/trunk.ts'
import { within } from '../support/within.ts'

const SPLICER = join(import.meta.dir, '../../src/accelerator/threads.ts')
const LANES = join(import.meta.dir, '../../src/accelerator/main-lanes.ts')

async function answerOf(script: string, environment: Record<string, string> = {}): Promise<string> {
  const child = Bun.spawn(['bun', '-e', script], {
    env: { ...process.env, ...environment },
    stdout: 'pipe',
    stderr: 'inherit',
  })
  const answer = await new Response(child.stdout).text()
  expect(await within(child.exited, 'the process to end')).toBe(0)
  return answer.trim()
}

// Without it all other tests of splicing would be skipped in silence.
test.skipIf(process.platform !== 'linux' || process.env.LOCALTUNNELS_SPLICE === '0')(
  'Linux can splice',
  () => {
    expect(canSplice()).toBe(true)
  },
)

describe.skipIf(!canSplice())('the splicing thread', () => {
  test('is not there when the environment says so', async () => {
    const script = `import { canSplice } from '${SPLICER}'; console.log(canSplice())`
    expect(await answerOf(script, { LOCALTUNNELS_SPLICE: '0' })).toBe('false')
    expect(await answerOf(script, { LOCALTUNNELS_SPLICE: '' })).toBe('true')
  })

  test('keeps no process alive', async () => {
    expect(await answerOf(`import { canSplice } from '${SPLICER}'; console.log(canSplice())`)).toBe('true')
  })

  test('is given nothing while it starts: whoever waits for an answer would wait for that as well', async () => {
    const script = `
      import { beginLane, lanesReady, openTrunk, spliceCounts } from '${SPLICER}'
      import { OpenTrunk } from '${LANES}'
      const ready = lanesReady()
      const trunk = openTrunk(0, false, () => {})
      const lane = beginLane(new OpenTrunk(0, undefined, () => {}), 0, 0, undefined, {})
      const isReady = await ready
      console.log(trunk, lane, spliceCounts().laneEnds, isReady)`
    expect(await answerOf(script)).toBe('undefined undefined 0 true')
  })

  /** A thread whose thread dies with its first job, and has done nothing before. */
  function doomed() {
    const kernel = new Kernel()
    const died = Promise.withResolvers<void>()
    const program = new URL('../support/dying-thread.ts', import.meta.url)
    const worker = new WorkerThread(kernel, kernel.wakeup(), 'bulk', program, () => died.resolve())
    const [from, to] = [openSync(import.meta.path, 'r'), openSync(import.meta.path, 'r')]
    return { kernel, thread: worker, from, to, died: within(died.promise, 'the death of the thread') }
  }

  test('that dies hands every job, lane and trunk back as lost, and leaves no descriptor open', async () => {
    const { kernel, thread, from, to, died } = doomed()
    const outcomes: Outcome[] = []
    const log: string[] = []
    const trunk = thread.lanes.openTrunk(to, true, isLost => log.push(`trunk over${isLost ? ' lost' : ''}`))
    if (trunk === undefined) throw new Error('no trunk')
    const { lanes } = thread
    const lane = lanes.begin(trunk, trunk.nextLane(), from, laneTerms(), listener(log, 'visitor'))
    expect(lanes.begin(trunk, 1, from, undefined, listener(log, 'app'))).toBeDefined()
    trunk.refuse(2, listener(log, 'refused'))
    expect(thread.counts).toMatchObject({ lanes: 1, laneEnds: 3 })
    expect(ownDescriptors().length).toBe(2 + 3)
    const jobs = [1, 2, 3].map(() => thread.start(from, to, 10, outcome => outcomes.push(outcome)))
    expect(jobs).not.toContain(undefined)
    await died
    expect(outcomes.map(({ isLost }) => isLost)).toEqual([true, true, true])
    expect(thread.counts).toMatchObject({ running: 0, lanes: 0, laneEnds: 0 })
    expect(log).toEqual([
      'visitor over lost torn',
      'visitor back torn',
      'app over lost torn',
      'app back torn',
      'refused over lost torn',
      'refused back torn',
      // Behind the last news of its lanes.
      'trunk over lost',
    ])
    expect(trunk.isOpen).toBe(false)
    expect(lanes.begin(trunk, 3, from, undefined, listener(log, 'late'))).toBeUndefined()
    lane?.stop()
    trunk.stop()
    expect(new Set(ownDescriptors())).toEqual(new Set([from, to]))
    expect(log.length).toBe(7)
    for (const one of [from, to]) kernel.close(one)
  })

  test('what a listener throws is reported, the others are called all the same, and it costs no slot', async () => {
    const { kernel, thread, from, to, died } = doomed()
    const { lanes } = thread
    const faults: string[] = []
    const stopWatching = watchFaults(({ detail }) => faults.push(detail))
    const log: string[] = []
    const throwing = (event: string) => {
      log.push(event)
      throw new Error(event)
    }
    const trunk = lanes.openTrunk(to, true, () => throwing('trunk over'))
    if (trunk === undefined) throw new Error('no trunk')
    const listening: LaneListener = {
      over: () => throwing('over'),
      more: () => throwing('more'),
      back: () => throwing('back'),
    }
    lanes.begin(trunk, 0, from, undefined, listening)
    lanes.begin(trunk, 1, from, undefined, listening)
    expect(() => lanes.receive({ kind: 'back', slot: 0, isTorn: false })).toThrow('back')
    expect(thread.counts.laneEnds).toBe(1)
    for (const name of ['first job', 'second job']) thread.start(from, to, 10, () => throwing(name))
    await died
    await eventually(() => log.length === 6, 'all of it')
    expect(log).toEqual(['back', 'first job', 'second job', 'over', 'back', 'trunk over'])
    expect(thread.counts).toMatchObject({ running: 0, laneEnds: 0 })
    // Once a second.
    expect(faults).toEqual(['A connection was cut, because a thread failed: first job.'])
    stopWatching()
    for (const one of ownDescriptors()) kernel.close(one)
  })

  test('that dies: a lane that was over is back, and its descriptor not closed once more', async () => {
    const { kernel, thread, from, to, died } = doomed()
    const { lanes } = thread
    const log: string[] = []
    const trunk = lanes.openTrunk(to, true, isLost => log.push(`trunk over${isLost ? ' lost' : ''}`))
    if (trunk === undefined) throw new Error('no trunk')
    const known = ownDescriptors()
    lanes.begin(trunk, 0, from, undefined, listener(log, 'lane'))
    const copies = ownDescriptors().filter(one => !known.includes(one))
    expect(copies.length).toBe(1)
    lanes.receive({ kind: 'over', slot: 0, over: OVER })
    expect(log).toEqual(['lane over'])
    expect(ownDescriptors()).not.toContain(copies[0]!)
    // Another connection gets the number meanwhile. A file has the lowest free one; the runtime may have been faster.
    const given = copies.pop()!
    while ((copies.at(-1) ?? -1) < given) copies.push(openSync(import.meta.path, 'r'))
    thread.start(from, to, 10, () => {})
    await died
    expect(log).toEqual(['lane over', 'lane back torn', 'trunk over lost'])
    expect(new Set(ownDescriptors())).toEqual(new Set([from, to, ...copies]))
    // News that comes too late changes nothing.
    lanes.receive({ kind: 'over', slot: 0, over: OVER })
    lanes.receive({ kind: 'more', slot: 0, bytes: new Uint8Array(1) })
    lanes.receive({ kind: 'back', slot: 0, isTorn: false })
    lanes.receive({ kind: 'trunk-over', trunk: 0 })
    expect(log.length).toBe(3)
    expect(thread.counts.laneEnds).toBe(0)
    for (const one of new Set([from, to, ...copies])) kernel.close(one)
  })

  test('a lane that a closed trunk refuses is over, and its stream lost', async () => {
    expect(await within(lanesReady(), 'the thread')).toBe(true)
    const link = await pair()
    const log: string[] = []
    const isOver = Promise.withResolvers<void>()
    const trunk = openTrunk(link.descriptor, true, () => isOver.resolve())
    trunk?.stop()
    trunk?.refuse(1, {
      over: ({ isTorn }) => log.push(`over ${isTorn}`),
      more: () => log.push('more'),
      back: isTorn => log.push(`back ${isTorn}`),
    })
    await within(isOver.promise, 'the end of the trunk')
    expect(log).toEqual(['over true', 'back true'])
    link.close()
  })

  test('a number that the other side gives to two lanes ends its trunk, and both lanes', async () => {
    expect(await within(lanesReady(), 'the thread')).toBe(true)
    const [first, second, link] = [await pair(), await pair(), await pair()]
    const log: string[] = []
    const trunk = openTrunk(link.descriptor, true, () => log.push('trunk over'))
    if (trunk === undefined) throw new Error('no trunk')
    for (const [name, { descriptor }] of Object.entries({ first, second })) {
      beginLane(trunk, 5, descriptor, undefined, {
        over: ({ isTorn }) => log.push(`${name} over ${isTorn}`),
        more: () => log.push(`${name} more`),
        back: isTorn => log.push(`${name} back ${isTorn}`),
      })
    }
    await eventually(() => log.includes('trunk over'), 'the end of the trunk')
    expect(log.toSorted()).toEqual([
      'first back true',
      'first over true',
      'second back true',
      'second over true',
      'trunk over',
    ])
    for (const { close } of [first, second, link]) close()
  })
})

/** Records the events of a lane, in order. */
function listener(log: string[], name: string): LaneListener {
  return {
    over: ({ isLost, isTorn }) => log.push(`${name} over${isLost ? ' lost' : ''}${isTorn ? ' torn' : ''}`),
    more: bytes => log.push(`${name} more ${bytes.length}`),
    back: isTorn => log.push(`${name} back${isTorn ? ' torn' : ''}`),
  }
}

/** Descriptors of this file, which nobody else opens: what a thread opens meanwhile does not count. */
function ownDescriptors(): number[] {
  return readdirSync('/proc/self/fd').flatMap(name => {
    try {
      return readlinkSync(`/proc/self/fd/${name}`) === import.meta.path ? [Number(name)] : []
    } catch {
      return [] // closed meanwhile, as the one that listed them
    }
  })
}

test.skipIf(!canSplice())('the kernel is given no memory beyond a room', () => {
  const kernel = new Kernel()
  const room = kernel.room(10)
  for (const [count, at] of [
    [11, 0],
    [5, 6],
    [1, -1],
  ] as const) {
    expect(() => kernel.send(0, room, count, at)).toThrow(RangeError)
    expect(() => kernel.receive(0, room, count, at)).toThrow(RangeError)
  }
})

test.skipIf(!canSplice())(
  'the kernel writes to a small room that was looked at through its buffer',
  async () => {
    const kernel = new Kernel()
    const { near, far, close } = await joined()
    const [from, into] = [kernel.room(5), kernel.room(5)]
    from.bytes.set([1, 2, 3, 4, 5])
    for (const { bytes } of [from, into]) expect(bytes.buffer.byteLength).toBe(5)
    expect(kernel.send(far, from, 5)).toBe(5)
    await eventually(() => kernel.receive(near, into) === 5, 'the bytes')
    expect([...into.bytes]).toEqual([1, 2, 3, 4, 5])
    close()
  },
)

describe('trunks', () => {
  afterEach(() => mock.restore())

  test.skipIf(!canSplice())('that no lane is on give their place to others, the longest idle first', () => {
    const commands: LaneCommand[] = []
    const kernel = new Kernel()
    const lanes = new MainLanes(kernel, new SharedSlots(), command => commands.push(command))
    const ended = () => commands.flatMap(one => (one.kind === 'trunk-end' ? [one.trunk] : []))
    const clock = spyOn(performance, 'now')
    const trunks = Array.from({ length: MAX_TRUNKS }, (_, index) => {
      clock.mockReturnValue(1_000 + index)
      return lanes.openTrunk(0, false, () => {})
    })
    expect(trunks).not.toContain(undefined)
    const lane = lanes.begin(trunks[0]!, 0, -1, undefined, listener([], 'lane'))
    expect(lane).toBeDefined()
    clock.mockReturnValue(6_000)
    expect(lanes.openTrunk(0, false, () => {})).toBeUndefined()
    expect(ended()).toEqual([])
    clock.mockReturnValue(6_001)
    expect(lanes.openTrunk(0, false, () => {})).toBeUndefined()
    // The first has a lane.
    expect(ended()).toEqual([trunks[1]!.slot])
    lanes.receive({ kind: 'trunk-over', trunk: trunks[1]!.slot })
    expect(lanes.openTrunk(0, false, () => {})?.slot).toBe(trunks[1]!.slot)
    lanes.lose(() => {})
  })
})

/** As the thread tells it of a lane that served nothing. */
const OVER: LaneOver = {
  sentBytes: 0,
  receivedBytes: 0,
  hasFailed: false,
  isTorn: false,
  request: undefined,
  isAsked: false,
  unsent: undefined,
}
