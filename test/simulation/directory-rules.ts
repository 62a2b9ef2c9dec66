// What has to hold of the directory in each state, and random ways through its states.

import type { Random } from '../support/random.ts'
import { type Action, actionsOf, begin, holderOf, type State, settled, step } from './directory-model.ts'

/** What `action` has broken; `undefined`: nothing. */
export function brokenRule(state: State, action: Action, before: State): string | undefined {
  for (const [name, epoch] of Object.entries(state.granted)) {
    const earlier = before.granted[name] ?? 0
    if (epoch !== earlier && epoch <= earlier) return `${name} was granted ${epoch} behind ${earlier}`
    const there = holderOf(before, name)
    // Only its own client takes a name from a server that lives.
    if (action.kind === 'strange' && epoch !== earlier && there !== undefined)
      return `${name} was taken from ${there.node}`
  }
  const rest = settled(state)
  for (const name of Object.keys(rest.granted)) {
    const by = Object.entries(rest.held).filter(([, own]) => own[name] !== undefined)
    if (by.length > 1)
      return `${name} is held by ${by.map(([node]) => node).join(' and ')} when all is repaired`
    const highest = Math.max(...Object.values(state.held).map(own => own[name]?.epoch ?? 0))
    const kept = by[0]?.[1][name]?.epoch ?? 0
    if (kept < highest && holderOf(rest, name)?.epoch !== rest.granted[name])
      return `${name}: epoch ${highest} gave way to ${kept}`
  }
  return undefined
}

/** Steps that can happen one after the other. Throws where one of them breaks a rule. */
export function walkOf(
  random: Random,
  nodes: readonly string[],
  names: readonly string[],
  length: number,
  now: number,
): readonly Action[] {
  const actions = actionsOf(nodes, names)
  const path: Action[] = []
  let state = begin(nodes, now)
  while (path.length < length) {
    const action = random.pick(actions)
    // Losses and partitions are rare beside what goes on all the time.
    if ((action.kind === 'lose' || action.kind === 'cut') && random.chance(0.5)) continue
    const outcome = step(state, action)
    if (outcome === undefined) continue
    const broken = brokenRule(outcome[0], action, state)
    if (broken !== undefined) throw new Error(`${JSON.stringify([...path, action])}: ${broken}`)
    state = outcome[0]
    path.push(action)
  }
  return path
}
