// The directory as a model: every sequence of a few steps of two servers, a directory that loses its data, and partitions; and long
// random ones. The servers are those of `holds.ts`, the clock stands still unless a step moves it.

import { expect, test } from 'bun:test'
import { MemoryDirectory } from '../../src/directories/memory.ts'
import type { Directory, DirectoryTimes } from '../../src/directory.ts'
import { Holds } from '../../src/parts/cluster/holds.ts'
import { FUZZ, Random } from '../support/random.ts'

// Each number is told apart by a step of the clock.
const TIMES: DirectoryTimes = { nodeMs: 6, leaseMs: 30, earlyMs: 3, holdMs: 600 }
const NAME = 'shop'

/** Two servers and what their clients know; a step is a letter, so that a failure can be read and repeated. */
class World {
  #now = 0
  #directory: MemoryDirectory
  readonly #cut = new Set<string>()
  readonly servers = new Map<string, Holds>()
  /** What the owner of the name was given last. */
  secret = ''
  /** Who was granted the name last, of those that hold it. */
  readonly granted: { node: string; epoch: number }[] = []

  constructor(nodes: readonly string[]) {
    for (const node of nodes) this.servers.set(node, new Holds(this.#hostOf(node)))
    this.#directory = this.#empty()
  }

  #empty(): MemoryDirectory {
    const directory = new MemoryDirectory(() => this.#now)
    for (const [id, server] of this.servers)
      void directory.listen({
        changed: (...change) => {
          if (!this.#cut.has(id)) server.changed(...change)
        },
        reconnected() {},
      })
    return directory
  }

  #hostOf(node: string) {
    return {
      node,
      directory: this.#viewOf(node),
      times: TIMES,
      whenUnreachable: 'refuse' as const,
      lost() {},
      failed() {},
      // What has to wait is refused: the step that waited is tried again by a later letter.
      wait: () => Promise.reject(new Error('early')),
    }
  }

  #viewOf(node: string): Directory {
    const call = <Value>(run: (directory: Directory) => Promise<Value>): Promise<Value> =>
      this.#cut.has(node) ? Promise.reject(new Error('cut')) : run(this.#directory)
    return {
      listen: listener => call(one => one.listen(listener)),
      beat: (...args) => call(one => one.beat(...args)),
      claim: async (id, wish, times) => {
        const outcome = await call(one => one.claim(id, wish, times))
        if (outcome.kind === 'granted') this.granted.push({ node: id, epoch: outcome.epoch })
        return outcome
      },
      restore: (...args) => call(one => one.restore(...args)),
      release: (...args) => call(one => one.release(...args)),
      find: name => call(one => one.find(name)),
      ports: () => call(one => one.ports()),
      leave: id => call(one => one.leave(id)),
      nodes: () => call(one => one.nodes()),
      secret: fresh => call(one => one.secret(fresh)),
      close: () => Promise.resolve(),
    }
  }

  async step(letter: string): Promise<void> {
    const node = letter.toLowerCase() === letter ? 'a' : 'b'
    const server = this.servers.get(node)
    if (server === undefined) throw new Error(`no server ${node}`)
    switch (letter.toLowerCase()) {
      case 'o': {
        const claimed = await server.claim([NAME], this.secret || undefined, false).catch(() => 'INTERNAL')
        if (typeof claimed !== 'string') this.secret = claimed.secret
        return
      }
      case 's':
        await server.claim([NAME], undefined, false).catch(() => 'INTERNAL')
        return
      case 'r':
        return server.release(NAME)
      case 'k':
        return this.beat(node)
      case 'p':
        if (!this.#cut.delete(node)) this.#cut.add(node)
        return
      case 't':
        this.#now += TIMES.nodeMs / 3
        return this.beatAll()
      // The lease of who is cut off ends; who is not has beaten meanwhile.
      case 'l':
        this.#now += TIMES.leaseMs + 1
        return this.beatAll()
      case 'x':
        // It takes longer to start than all the grants took that were made before.
        this.#now += 1_000
        this.#directory = this.#empty()
        return
    }
  }

  async beat(node: string): Promise<void> {
    const server = this.servers.get(node)
    try {
      const self = { id: node, url: `http://${node}` }
      const { highestEpoch } = await this.#viewOf(node).beat(self, TIMES, server?.highestEpoch ?? 0)
      server?.saw(highestEpoch)
      await server?.restore()
    } catch {
      // It is cut off.
    }
  }

  async beatAll(): Promise<void> {
    for (const node of this.servers.keys()) await this.beat(node)
  }

  /** Everything is connected again and all have beaten, twice. */
  async settle(): Promise<void> {
    this.#cut.clear()
    await this.beatAll()
    await this.beatAll()
  }

  get holders(): string[] {
    return [...this.servers].filter(([, server]) => server.has(NAME)).map(([node]) => node)
  }
}

/** What has to hold after every sequence. */
async function check(steps: readonly string[]): Promise<void> {
  const world = new World(['a', 'b'])
  await world.beatAll()
  await world.step('t')
  await world.step('t')
  const text = steps.join('')
  for (const step of steps) await world.step(step)
  const before = world.holders
  await world.settle()
  const { holders, granted } = world
  // A name is held once.
  if (holders.length > 1) throw new Error(`${text}: held by ${holders.join(' and ')}`)
  // Who was granted it last, and did not give it back, has it.
  const last = granted.at(-1)?.node
  if (last !== undefined && before.includes(last) && holders.join() !== last)
    throw new Error(`${text}: ${last} was granted it last, and ${holders.join() || 'nobody'} has it`)
  // Epochs of grants only grow: who was granted the name last is not beaten by who had it before.
  for (const [index, { epoch }] of granted.entries())
    if (granted.slice(0, index).some(one => one.epoch >= epoch))
      throw new Error(`${text}: epoch ${epoch} was granted behind ${granted.map(one => one.epoch).join()}`)
}

/** Letters of server a, capitals of server b; t, l and x are of nobody. */
const STEPS = ['o', 'O', 's', 'S', 'r', 'R', 'k', 'K', 'p', 'P', 't', 'l', 'x']
const DEPTH = Number(process.env.LT_DEPTH ?? 5)

test(`after each of all sequences of ${DEPTH} steps a name is held once, and epochs have only grown`, async () => {
  const faults: string[] = []
  const walk = async (steps: readonly string[]): Promise<void> => {
    if (steps.length === DEPTH) {
      await check(steps).catch((error: Error) => faults.push(error.message))
      return
    }
    for (const step of STEPS) await walk([...steps, step])
  }
  // Every interesting sequence begins with a claim: by symmetry at server a.
  await walk(['o'])
  expect(faults.slice(0, 20), `${faults.length} faults`).toEqual([])
}, 60_000)

test('the same after long random sequences', async () => {
  const seed = Number(process.env.LT_SEED ?? Math.floor(Math.random() * 1e9))
  const random = new Random(seed)
  for (let round = 0; round < 2_000 * FUZZ; round++) {
    const steps = Array.from({ length: 6 + random.below(30) }, () => STEPS[random.below(STEPS.length)] ?? 't')
    await check(steps).catch((error: Error) => {
      throw new Error(`seed ${seed}: ${error.message}`)
    })
  }
})
