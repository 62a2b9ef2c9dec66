// The splicing thread: how it is switched off, and that its death loses no job without a word.

import { describe, expect, test } from 'bun:test'
import { openSync } from 'node:fs'
import { join } from 'node:path'
import { Kernel } from '../../src/splice/kernel.ts'
import type { LaneOutcome } from '../../src/splice/lanes.ts'
import { canSplice, type Outcome, Splicer } from '../../src/splice/splicer.ts'
import { eventually } from '../support/events.ts'
import { laneTerms } from '../support/lane-terms.ts'
import { openDescriptors } from '../support/relay.ts'
import { within } from '../support/within.ts'

const SPLICER = join(import.meta.dir, '../../src/splice/splicer.ts')

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
      import { canOpenLane, openLane, spliceCounts } from '${SPLICER}'
      const first = canOpenLane()
      const lane = openLane(0, 1, 1, {}, () => {})
      while (!canOpenLane()) await new Promise(go => setImmediate(go))
      console.log(first, lane, spliceCounts().lanes, canOpenLane())`
    expect(await answerOf(script)).toBe('false undefined 0 true')
  })

  test('that dies hands every job and lane back as lost, and leaves no descriptor open', async () => {
    const kernel = new Kernel()
    const died = Promise.withResolvers<void>()
    const thread = new URL('../support/dying-thread.ts', import.meta.url)
    const splicer = new Splicer(kernel, kernel.bell(), 'bulk', thread, () => died.resolve())
    const [from, to] = [openSync('/dev/null', 'r'), openSync('/dev/null', 'w')]
    const before = openDescriptors()
    const outcomes: Outcome[] = []
    const lanes: LaneOutcome[] = []
    const lane = splicer.lanes.open(from, to, to, laneTerms(), outcome => lanes.push(outcome))
    expect(splicer.counts.lanes).toBe(1)
    const jobs = [1, 2, 3].map(() => splicer.start(from, to, 10, outcome => outcomes.push(outcome)))
    expect(jobs).not.toContain(undefined)
    await within(died.promise, 'the death of the thread')
    expect(outcomes.map(({ isLost }) => isLost)).toEqual([true, true, true])
    expect(splicer.counts).toMatchObject({ running: 0, lanes: 0 })
    expect(lanes).toMatchObject([{ isLost: true, isTorn: true }])
    lane?.stop()
    await eventually(() => openDescriptors() <= before, 'closed descriptors')
  })
})
