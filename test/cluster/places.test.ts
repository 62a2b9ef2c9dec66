// What a server remembers of names that others hold, whatever the order in which answers and changes come.

import { expect, test } from 'bun:test'
import { MemoryDirectory } from '../../src/directories/memory.ts'
import type { Node } from '../../src/directory.ts'
import { Places } from '../../src/parts/cluster/places.ts'
import { eventually } from '../support/events.ts'

const A: Node = { id: 'a', url: 'http://a' }
const B: Node = { id: 'b', url: 'http://b' }

/** A directory whose answers come when the test says. */
class Slow extends MemoryDirectory {
  readonly asked: ((nodes: readonly Node[]) => void)[] = []
  override find(): Promise<readonly Node[]> {
    const { promise, resolve } = Promise.withResolvers<readonly Node[]>()
    this.asked.push(resolve)
    return promise
  }
}

async function answered(places: Places, directory: Slow, nodes: readonly Node[]): Promise<void> {
  const answer = places.find('shop')
  directory.asked.at(-1)?.(nodes)
  await answer
}

test('a change that says what is known already does not forget it; one that says otherwise does', async () => {
  const directory = new Slow()
  const places = new Places(directory)
  await answered(places, directory, [A])
  places.changed('shop', 'a')
  expect(places.find('shop')).toEqual([A])
  places.changed('shop', 'b')
  expect(places.find('shop')).toBeInstanceOf(Promise)
  await answered(places, directory, [B])
  places.changed('shop', '')
  expect(places.find('shop')).toBeInstanceOf(Promise)
})

test('an answer older than a change is not kept, and one that has it is; other names do not matter', async () => {
  const directory = new Slow()
  const places = new Places(directory)
  const first = places.find('shop')
  places.changed('shop', 'b')
  // Who asks after the change does not get the answer to a question of before.
  const second = places.find('shop')
  expect(directory.asked).toHaveLength(2)
  directory.asked[0]?.([A])
  // Who asked before gets the answer to one more question.
  await eventually(() => directory.asked.length === 3, 'the question to be asked again')
  directory.asked[2]?.([B])
  expect(await first).toEqual([B])
  places.changed('blog', 'a')
  directory.asked[1]?.([B])
  await second
  expect(places.find('shop')).toEqual([B])
})
