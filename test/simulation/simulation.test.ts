// A cluster in simulated time: the real servers, clients and sockets, with everything that can go wrong between them, from one number.
// One that breaks something is repeated by `bun test/simulation/run.ts --seed N`, which also says in what order things went wrong.
// Seven seconds of computing.

import { expect, test } from 'bun:test'
import { FUZZ } from '../support/random.ts'
import { simulate } from './scenario.ts'

/** As many as a busy machine does in half a minute, and no more than these: always the same first ones. LT_FUZZ=4 does four times as many. */
const MOST_RUNS = 20 * FUZZ
const BUDGET_MS = 30_000 * FUZZ
const LEAST_RUNS = 10

test(
  `in up to ${MOST_RUNS} simulated clusters no answer is wrong or cut short unnoticed, and all tunnels answer again when faults are over`,
  () => {
    const broken: string[] = []
    const sum = { asked: 0, answered: 0, faults: 0 }
    const until = performance.now() + BUDGET_MS
    let runs = 0
    for (let seed = 1; seed <= MOST_RUNS && (runs < LEAST_RUNS || performance.now() < until); seed++) {
      runs++
      const result = simulate(seed)
      for (const one of result.broken) broken.push(`seed ${seed}: ${one}`)
      sum.asked += result.asked
      sum.answered += result.answered
      sum.faults += result.faultCount
    }
    expect(broken).toEqual([])
    // It was neither idle nor all down.
    expect(sum.faults).toBeGreaterThan(8 * runs)
    expect(sum.answered).toBeGreaterThan(0.3 * sum.asked)
  },
  120_000 * FUZZ,
)

test('the same number is the same run, to the last event, also in another process', async () => {
  const one = simulate(7)
  expect(simulate(7).hash).toBe(one.hash)
  expect(simulate(8).hash).not.toBe(one.hash)
  const run = Bun.spawn([process.execPath, 'test/simulation/run.ts', '--seed', '7'], {
    cwd: `${import.meta.dir}/../..`,
    stdout: 'pipe',
  })
  expect(await new Response(run.stdout).text()).toContain(`"hash":"${one.hash}"`)
}, 60_000)
