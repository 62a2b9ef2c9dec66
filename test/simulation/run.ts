// Simulations for as long as one likes: bun test/simulation/run.ts --hours 8, --seeds 100 --from 1, or --seed 17 for one of them. The first
// that breaks something ends it, with the fewest faults that still do so and the log of that run (`--first`: without).

import { parseArgs } from 'node:util'
import { type Result, simulate } from './scenario.ts'
import { shrink } from './shrink.ts'

const HOUR_MS = 3_600_000

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    seeds: { type: 'string' },
    from: { type: 'string', default: '1' },
    hours: { type: 'string' },
    first: { type: 'boolean', default: false },
  },
})

process.on('unhandledRejection', error => {
  console.log(`a rejection that nothing awaits: ${String(error)}`)
  process.exitCode = 1
})

if (values.seed === undefined) await runMany()
else show(simulate(Number(values.seed)))

async function runMany(): Promise<void> {
  const from = Number(values.from)
  const until =
    values.hours === undefined ? Number.POSITIVE_INFINITY : Date.now() + Number(values.hours) * HOUR_MS
  const most =
    values.seeds === undefined
      ? values.hours === undefined
        ? 100
        : Number.POSITIVE_INFINITY
      : Number(values.seeds)
  const sum = { runs: 0, events: 0, asked: 0, answered: 0, faults: 0, longestSettleMs: 0 }
  for (let seed = from; seed < from + most && Date.now() < until; seed++) {
    const result = simulate(seed)
    // Rejections that nothing awaits are reported between two runs.
    await new Promise(resolve => setImmediate(resolve))
    if (result.broken.length > 0) {
      console.log(`seed ${seed} breaks: ${result.broken.join('; ')}`)
      if (!values.first) show(shrink(seed, result))
      process.exitCode = 1
      return
    }
    if (process.exitCode === 1) return console.log(`seed ${seed}`)
    sum.runs++
    sum.events += result.events
    sum.asked += result.asked
    sum.answered += result.answered
    sum.faults += result.faultCount
    sum.longestSettleMs = Math.max(sum.longestSettleMs, result.settledMs ?? 0)
    if (sum.runs % 100 === 0) console.log(`seed ${seed}: ${JSON.stringify(sum)}`)
  }
  console.log(JSON.stringify(sum))
}

function show({ seed, hash, lines, broken, ...counts }: Result): void {
  // What single visitors got is of use where it is wrong.
  for (const line of lines) if (!/ q\d+ /.test(line)) console.log(line)
  console.log(JSON.stringify({ seed, hash, ...counts }))
  for (const one of broken) console.log(`BROKEN ${one}`)
  if (broken.length > 0) process.exitCode = 1
}
