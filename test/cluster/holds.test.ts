// What a server holds, while commands to the directory overtake each other.

import { expect, test } from 'bun:test'
import { MemoryDirectory } from '../../src/directories/memory.ts'
import type { Directory, DirectoryTimes } from '../../src/directory.ts'
import { Holds } from '../../src/parts/cluster/holds.ts'

const TIMES: DirectoryTimes = { nodeMs: 60_000, leaseMs: 60_000, earlyMs: 0, holdMs: 60_000 }

/** A directory that is told of a restore only when the test says so. */
class LateRestore extends MemoryDirectory {
  arrive: () => void = () => {}
  isAsked = false
  isAway = false
  override release(...args: Parameters<Directory['release']>): Promise<void> {
    return this.isAway ? Promise.reject(new Error('away')) : super.release(...args)
  }
  override async restore(...args: Parameters<Directory['restore']>): Promise<readonly string[]> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.arrive = resolve
    this.isAsked = true
    await promise
    return super.restore(...args)
  }
}

async function startHolds() {
  const directory = new LateRestore()
  const failures: string[] = []
  await directory.beat({ id: 'a', url: 'http://a' }, TIMES, 0)
  const holds = new Holds({
    node: 'a',
    directory,
    times: TIMES,
    whenUnreachable: 'refuse',
    lost() {},
    failed: error => void failures.push(error.message),
    wait: () => Promise.resolve(),
  })
  return { directory, holds, failures }
}

test('a name that is given back while it is renewed is free', async () => {
  const { directory, holds } = await startHolds()
  await holds.claim(['shop'], undefined, false)
  const restored = holds.restore()
  holds.release('shop')
  directory.arrive()
  await restored
  expect(await directory.find('shop')).toEqual([])
})

test('a name that is claimed again while it is renewed keeps the later epoch, and can be given back', async () => {
  const { directory, holds } = await startHolds()
  const claimed = await holds.claim(['shop'], undefined, false)
  const restored = holds.restore()
  const secret = typeof claimed === 'string' ? claimed : claimed.secret
  expect(await holds.claim(['shop'], secret, false)).toEqual({ names: ['shop'], secret })
  directory.arrive()
  await restored
  expect(holds.has('shop')).toBe(true)
  holds.release('shop')
  expect(await directory.find('shop')).toEqual([])
})

test('a name that is given back and taken by another server while it is renewed stays with that one', async () => {
  const { directory, holds } = await startHolds()
  await holds.claim(['shop'], undefined, false)
  const restored = holds.restore()
  holds.release('shop')
  await directory.beat({ id: 'b', url: 'http://b' }, TIMES, 0)
  await directory.claim('b', { name: 'shop', shown: '', next: 'p', isShared: false }, TIMES)
  directory.arrive()
  await restored
  expect(await directory.find('shop')).toEqual([{ id: 'b', url: 'http://b' }])
})

test('a name that is given back while the directory is away is free once it is back', async () => {
  const { directory, holds, failures } = await startHolds()
  await holds.claim(['shop', 'www.shop.example'], undefined, false)
  directory.isAway = true
  holds.release('shop')
  holds.release('www.shop.example')
  while (failures.length < 2) await Promise.resolve()
  expect(failures).toEqual(['away', 'away'])
  directory.isAway = false
  expect(await directory.find('shop')).toHaveLength(1)
  // A client that comes at once does not wait for the next renewal.
  expect(typeof (await holds.claim(['shop'], undefined, false))).toBe('object')
  const restored = holds.restore()
  while (!directory.isAsked) await Promise.resolve()
  expect(await directory.find('www.shop.example')).toEqual([])
  directory.arrive()
  await restored
  expect(await directory.find('shop')).toHaveLength(1)
})
