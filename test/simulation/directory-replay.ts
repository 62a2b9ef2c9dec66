// The steps of the model, done by a real directory and the real holds of servers.

import { MemoryDirectory } from '../../src/directories/memory.ts'
import type { Directory, DirectoryTimes } from '../../src/directory.ts'
import {
  type Action,
  type Answer,
  holderOf,
  LEASE_TICKS,
  LOSS_MS,
  type State,
  step,
} from './directory-model.ts'

/** A tick of the model. */
const TICK_MS = 1_000

const TIMES: DirectoryTimes = {
  nodeMs: TICK_MS,
  leaseMs: LEASE_TICKS * TICK_MS,
  earlyMs: TICK_MS,
  holdMs: 1_000 * LOSS_MS,
}

/** What happens to the directory itself. */
export interface Engine {
  readonly directory: Directory
  readonly times: DirectoryTimes
  /** So much time passes: what `state` has no more is over. */
  tick(state: State): Promise<void>
  lose(now: number): Promise<void>
}

export class MemoryEngine implements Engine {
  readonly times: DirectoryTimes = TIMES
  directory: MemoryDirectory
  #now: number

  constructor(now: number) {
    this.#now = now
    this.directory = new MemoryDirectory(() => this.#now)
  }

  tick(): Promise<void> {
    this.#now += TICK_MS
    return Promise.resolve()
  }

  lose(): Promise<void> {
    this.#now += LOSS_MS
    this.directory = new MemoryDirectory(() => this.#now)
    return Promise.resolve()
  }
}

/** Does one action as the servers of `before` do it. `before` and `after`: as the model has it. */
async function perform(engine: Engine, action: Action, before: State, after: State): Promise<Answer> {
  const { directory, times } = engine
  switch (action.kind) {
    case 'tick':
      await engine.tick(after)
      return ''
    case 'lose':
      await engine.lose(after.now)
      return ''
    case 'cut':
      return ''
    case 'beat': {
      const { node } = action
      const { isKnown, highestEpoch } = await directory.beat(
        { id: node, url: `http://${node}` },
        times,
        before.heard[node] ?? 0,
      )
      if (isKnown) return `known ${highestEpoch}`
      const holds = Object.entries(before.held[node] ?? {}).map(([name, { epoch, proof }]) => ({
        name,
        epoch,
        proof: `p${proof}`,
        isShared: false,
      }))
      const lost = await directory.restore(node, holds, times)
      return `new ${highestEpoch} lost ${[...lost].sort().join()}`
    }
    case 'release': {
      const { node, name } = action
      const wasThere = (await directory.find(name)).some(({ id }) => id === node)
      await directory.release(node, name, before.held[node]?.[name]?.epoch ?? 0)
      const isThere = (await directory.find(name)).some(({ id }) => id === node)
      return wasThere && !isThere ? 'free' : 'not its own'
    }
    default: {
      const { node, name, kind } = action
      const secret = before.secrets[name] ?? 0
      const shown = kind === 'strange' || secret === 0 ? '' : `p${secret}`
      const wish = { name, shown, next: `p${before.lastProof + 1}`, isShared: false }
      const outcome = await directory.claim(node, wish, times)
      return outcome.kind === 'granted' ? `granted ${outcome.epoch} ${outcome.isProved}` : outcome.kind
    }
  }
}

/** Who has each name, as the directory says. */
async function holders(directory: Directory, names: readonly string[]): Promise<string> {
  const found = await Promise.all(names.map(name => directory.find(name)))
  return found.map(nodes => nodes.map(({ id }) => id).join('+')).join()
}

/** Does all of it, and looks at every name behind each step. Throws where the directory is not as the model has it. */
export async function replay(
  engine: Engine,
  path: readonly Action[],
  first: State,
  names: readonly string[],
): Promise<void> {
  let state = first
  for (const action of path) {
    const outcome = step(state, action)
    if (outcome === undefined) throw new Error(`${JSON.stringify(action)} cannot happen`)
    const [next, answer] = outcome
    const real = `${await perform(engine, action, state, next)} (${await holders(engine.directory, names)})`
    const model = `${answer} (${names.map(name => holderOf(next, name)?.node ?? '').join()})`
    if (real !== model)
      throw new Error(`${JSON.stringify(path)}: ${JSON.stringify(action)} is "${real}", and not "${model}"`)
    state = next
  }
}
