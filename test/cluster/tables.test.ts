// Tables that each server of a cluster has in memory: changes pass, and what was missed is found.

import { expect, test } from 'bun:test'
import { MemoryTables } from '../../src/directories/memory-tables.ts'
import type { DirectoryTables, TableEntry } from '../../src/directory.ts'
import type { SharedTable } from '../../src/parts/cluster/shared-table.ts'
import { Tables } from '../../src/parts/cluster/tables.ts'
import { SharedMarks } from '../../src/parts/cluster/used-marks.ts'
import { FUZZ, Random } from '../support/random.ts'

/** A server's way to the directory, which a test cuts, or makes deaf. */
class Way implements DirectoryTables {
  inner: DirectoryTables
  isCut = false
  isDeaf = false
  reads = 0
  #heard: ((table: string, entry: TableEntry, changes: number) => void) | undefined

  constructor(inner: DirectoryTables) {
    this.inner = inner
  }

  #call<Value>(call: () => Promise<Value>): Promise<Value> {
    return this.isCut ? Promise.reject(new Error('cut off')) : call()
  }

  listen: DirectoryTables['listen'] = heard => {
    this.#heard = heard
    return this.inner.listen((...change) => {
      if (!this.isCut && !this.isDeaf) heard(...change)
    })
  }

  /** It goes on with an empty one. */
  async replace(inner: DirectoryTables): Promise<void> {
    this.inner = inner
    if (this.#heard !== undefined) await this.listen(this.#heard)
  }

  put: DirectoryTables['put'] = (...args) => this.#call(() => this.inner.put(...args))
  read: DirectoryTables['read'] = name => {
    this.reads++
    return this.#call(() => this.inner.read(name))
  }
  changes: DirectoryTables['changes'] = () => this.#call(() => this.inner.changes())
}

interface Server {
  readonly way: Way
  readonly tables: Tables
  readonly table: SharedTable
  readonly errors: Error[]
}

async function serverOf(directory: DirectoryTables, maxKeys = 100): Promise<Server> {
  const way = new Way(directory)
  const errors: Error[] = []
  const tables = new Tables(way, error => errors.push(error))
  const table = tables.open('bans', maxKeys)
  await tables.start()
  return { way, tables, table, errors }
}

const keysOf = (table: SharedTable): string[] =>
  table
    .all()
    .map(({ key }) => key)
    .sort()

test('a change is in force at once, and known to the others, also to one that starts later', async () => {
  const directory = new MemoryTables()
  const [a, b] = [await serverOf(directory), await serverOf(directory)]
  let heard = 0
  b.table.onChange(() => heard++)
  a.table.set('one', 'x', 0)
  expect(a.table.get('one')).toBe('x')
  expect(b.table.get('one')).toBe('x')
  expect(heard).toBe(1)
  const c = await serverOf(directory)
  expect(c.table.get('one')).toBe('x')
  c.table.remove('one')
  for (const { table } of [a, b, c]) expect(table.get('one')).toBeUndefined()
})

test('what a server changes while the directory is away is told later; what it missed is read', async () => {
  const directory = new MemoryTables()
  const [a, b] = [await serverOf(directory), await serverOf(directory)]
  b.table.set('old', 'x', 0)
  await b.table.send()
  a.way.isCut = true
  a.table.set('mine', 'x', 0)
  b.table.set('theirs', 'x', 0)
  b.table.remove('old')
  await b.table.send()
  expect(await a.tables.look().catch((error: Error) => error.message)).toBe('cut off')
  expect(keysOf(a.table)).toEqual(['mine', 'old'])
  expect(keysOf(b.table)).toEqual(['theirs'])
  a.way.isCut = false
  a.tables.doubt()
  await a.tables.look()
  for (const { table } of [a, b]) expect(keysOf(table)).toEqual(['mine', 'theirs'])
})

test('a change that was not heard is found by the count, and nothing is read when none was missed', async () => {
  const directory = new MemoryTables()
  const [a, b] = [await serverOf(directory), await serverOf(directory)]
  a.way.isDeaf = true
  b.table.set('missed', 'x', 0)
  await b.table.send()
  await a.tables.look()
  await a.tables.look()
  expect(a.table.get('missed')).toBe('x')
  b.table.set('second', 'x', 0)
  await b.table.send()
  a.way.isDeaf = false
  b.table.set('third', 'x', 0)
  await b.table.send()
  await a.tables.look()
  expect(keysOf(a.table)).toEqual(['missed', 'second', 'third'])
  const { reads } = a.way
  for (let count = 0; count < 3; count++) {
    b.table.set(`heard-${count}`, 'x', 0)
    await b.table.send()
    await a.tables.look()
  }
  expect(a.way.reads).toBe(reads)
})

test('a directory that has lost its data gets it back, and what was removed stays so', async () => {
  const directory = new MemoryTables()
  const [a, b] = [await serverOf(directory), await serverOf(directory)]
  a.table.set('kept', 'x', 0)
  a.table.set('removed', 'x', 0)
  await a.table.send()
  b.way.isCut = true
  a.table.remove('removed')
  await a.table.send()
  expect(keysOf(b.table)).toEqual(['kept', 'removed'])
  b.way.isCut = false
  const empty = new MemoryTables()
  // The one that missed the removal is the first to bring what it has.
  for (const { way, tables } of [b, a]) {
    await way.replace(empty)
    await tables.look()
  }
  await b.tables.look()
  for (const { table } of [a, b, await serverOf(empty)]) expect(keysOf(table)).toEqual(['kept'])
})

test('of two changes of one key the later one is valid, also where a clock is behind', async () => {
  const directory = new MemoryTables()
  const [a, b] = [await serverOf(directory), await serverOf(directory)]
  await directory.put('bans', [{ key: 'one', value: 'x', version: 9e14, untilMs: 0 }], 100)
  a.table.remove('one')
  expect(b.table.get('one')).toBeUndefined()
})

test('an entry ends at its time, and is forgotten everywhere', async () => {
  const directory = new MemoryTables()
  const a = await serverOf(directory)
  a.table.set('short', 'x', Date.now() - 1)
  a.table.set('long', 'x', Date.now() + 60_000)
  expect(keysOf(a.table)).toEqual(['long'])
  a.tables.doubt()
  await a.tables.look()
  expect(a.table.knows('short')).toBe(false)
  expect((await directory.read('bans')).map(({ key }) => key)).toEqual(['long'])
})

test('a full table says so; the entry is in force at its own server', async () => {
  const directory = new MemoryTables()
  const [a, b] = [await serverOf(directory, 2), await serverOf(directory, 2)]
  for (const key of ['one', 'two', 'three']) a.table.set(key, 'x', 0)
  await a.table.send()
  expect(a.errors.map(({ message }) => message)).toEqual([
    'The table bans of the cluster has 2 entries already.',
  ])
  expect(a.table.get('three')).toBe('x')
  expect(keysOf(b.table)).toEqual(['one', 'two'])
})

test('what a listener throws is reported, and the other listeners hear; a version that is none is nothing', async () => {
  const directory = new MemoryTables()
  const [a, b] = [await serverOf(directory), await serverOf(directory)]
  let heard = 0
  b.table.onChange(() => {
    throw new Error('broken')
  })
  b.table.onChange(() => heard++)
  a.table.set('one', 'x', 0)
  await a.table.send()
  await directory.put('bans', [{ key: 'strange', value: 'x', version: Number.NaN, untilMs: 0 }], 100)
  a.table.set('two', 'x', 0)
  await a.table.send()
  expect(keysOf(a.table)).toEqual(['one', 'two'])
  expect([heard, b.errors.map(({ message }) => message)]).toEqual([2, ['broken', 'broken']])
})

test('whatever is cut, missed or lost, all servers have the same in the end', async () => {
  for (let round = 0; round < 50 * FUZZ; round++) {
    const seed = Number(process.env.LT_SEED ?? Math.floor(Math.random() * 1e9))
    const pick = new Random(seed)
    let directory = new MemoryTables()
    const servers = [await serverOf(directory), await serverOf(directory), await serverOf(directory)]
    for (let step = 0; step < 60; step++) {
      const { way, table, tables } = servers[pick.below(3)]!
      const key = 'abc'[pick.below(3)]!
      switch (pick.below(7)) {
        case 0:
        case 1:
          table.set(key, `${step}`, 0)
          break
        case 2:
          table.remove(key)
          break
        case 3:
          way.isCut = !way.isCut
          // Whoever is connected again is told so.
          tables.doubt()
          break
        case 4:
          way.isDeaf = !way.isDeaf
          break
        case 5:
          await tables.look().catch(() => {})
          break
        default:
          if (pick.below(4) > 0) break
          directory = new MemoryTables()
          for (const one of servers) {
            await one.way.replace(directory)
            one.tables.doubt()
          }
      }
    }
    for (const { way } of servers) {
      way.isCut = false
      way.isDeaf = false
    }
    for (let look = 0; look < 3; look++)
      for (const { tables } of servers) {
        if (look === 0) tables.doubt()
        await tables.look()
      }
    const [first, ...others] = servers.map(({ table }) =>
      table
        .all()
        .map(({ key, value }) => `${key}${value}`)
        .sort(),
    )
    for (const other of others) expect(other, `seed ${seed}`).toEqual(first!)
    servers[0]?.table.set('a', 'last', 0)
    await servers[0]?.table.send()
    for (const { table } of servers) expect(table.get('a'), `seed ${seed}`).toBe('last')
  }
})

test('one owner has half of the room for what works once, at all servers together, and of that for sessions that ended', async () => {
  const directory = new MemoryTables()
  const marksOf = async () => {
    const tables = new Tables(directory, () => {})
    const marks = new SharedMarks(tables.open('used', 10), tables.open('ended', 10))
    await tables.start()
    return marks
  }
  const servers = [await marksOf(), await marksOf()]
  const untilMs = Date.now() + 60_000
  const take = async (owner: string, count: number) => {
    let taken = 0
    for (let at = 0; at < count; at++)
      if (await servers[at % 2]!.take(`${owner} ${at}`, untilMs, owner)) taken++
    return taken
  }
  expect(await take('greedy', 10)).toBe(5)
  expect(await take('modest', 2)).toBe(2)
  const [marks] = servers
  for (let at = 0; at < 10; at++) marks!.end(`${at}`, untilMs, 'greedy')
  marks!.end('modest', untilMs, 'modest')
  expect([marks!.hasEnded('0'), marks!.hasEnded('9'), marks!.hasEnded('modest')]).toEqual([true, false, true])
})
