// The directory, searched: all states that a few servers, names and clients can come to within so many steps, and long random walks. Each
// step is done by the model and by the real directory, which have to answer the same; in each state the rules have to hold.

import { expect, test } from 'bun:test'
import { FUZZ, Random } from '../support/random.ts'
import { type Action, actionsOf, begin, keyOf, type State, step } from './directory-model.ts'
import { MemoryEngine, replay } from './directory-replay.ts'
import { brokenRule, walkOf } from './directory-rules.ts'

const BEGIN_MS = 1_000_000
/** So many steps more than without. */
const DEEPER = Number(process.env.LT_DEEPER ?? 0)

interface Found {
  readonly state: State
  readonly path: readonly Action[]
}

/** Breadth first; two ways to the same state are one. */
async function search(
  nodes: readonly string[],
  names: readonly string[],
  depth: number,
): Promise<readonly number[]> {
  const actions = actionsOf(nodes, names)
  const first = begin(nodes, BEGIN_MS)
  const seen = new Set([keyOf(first)])
  let edge: Found[] = [{ state: first, path: [] }]
  let steps = 0
  for (let at = 0; at < depth; at++) {
    const found: Found[] = []
    for (const { state, path } of edge)
      for (const action of actions) {
        const outcome = step(state, action)
        if (outcome === undefined) continue
        steps++
        const [next] = outcome
        const longer = [...path, action]
        const broken = brokenRule(next, action, state)
        if (broken !== undefined) throw new Error(`${JSON.stringify(longer)}: ${broken}`)
        await replay(new MemoryEngine(BEGIN_MS), longer, first, names)
        const key = keyOf(next)
        if (seen.has(key)) continue
        seen.add(key)
        found.push({ state: next, path: longer })
      }
    edge = found
  }
  return [seen.size, steps]
}

test.each([
  [['a', 'b'], ['shop'], 9],
  [['a', 'b'], ['shop', 'blog'], 6],
  [['a', 'b', 'c'], ['shop'], 6],
])(
  '%j with %j: all that can happen in %d steps',
  async (nodes, names, depth) => {
    const [states = 0, steps = 0] = await search(nodes, names, depth + DEEPER)
    console.log(`${states} states, ${steps} steps`)
    expect(states).toBeGreaterThan(8_000)
    expect(steps).toBeGreaterThan(3 * states)
  },
  120_000,
)

test(
  'the same in long random walks of many servers and names',
  async () => {
    const seed = Number(process.env.LT_SEED ?? Math.floor(Math.random() * 1e9))
    const random = new Random(seed)
    const names = ['shop', 'blog', 'wiki', 'hooks', 'docs', 'chat']
    for (let walk = 0; walk < 60 * FUZZ; walk++) {
      const nodes = ['a', 'b', 'c', 'd', 'e', 'f', 'g'].slice(0, 3 + random.below(5))
      const path = walkOf(random, nodes, names, 200, BEGIN_MS)
      await replay(new MemoryEngine(BEGIN_MS), path, begin(nodes, BEGIN_MS), names).catch((error: Error) => {
        throw new Error(`seed ${seed}: ${error.message}`)
      })
    }
  },
  60_000 * FUZZ,
)
