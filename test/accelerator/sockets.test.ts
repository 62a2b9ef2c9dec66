// Bytes moved by the kernel between two connections: none lost, none twice, every end told, nothing left over.
// One test takes up to 8 s on a busy machine: 150 connections move 12 MB each, more at a time than there may be splices.

import { beforeAll, describe, expect, test } from 'bun:test'
import { readdir, readFile } from 'node:fs/promises'
import { getPriority } from 'node:os'
import { canSplice, spliceCounts } from '../../src/accelerator/threads.ts'
import { eventually } from '../support/events.ts'
import { reset } from '../support/peer.ts'
import { FUZZ, Random } from '../support/random.ts'
import { openDescriptors, patternAt, road, Sink, Source } from '../support/relay.ts'

const MB = 1_048_576

/** The event loop's next turn. */
const turn = () => new Promise<void>(resolve => setImmediate(resolve))

const settled = () => eventually(() => spliceCounts().running === 0, 'the end of all splices')

// Only Linux can, and only where no sandbox forbids it: elsewhere bytes go the way through the program.
describe.skipIf(!canSplice())('a splice', () => {
  // The thread takes 50 ms to start, or much more on a busy machine: until then bytes go the way through the program.
  beforeAll(async () => {
    {
      await using way = await road()
      new Sink(way.drain)
      new Source(way.source, 4_000 * MB)
      await way.relay.spliced()
    }
    await settled()
  })

  test('moves everything up to the end, and tells the end', async () => {
    await using way = await road()
    const sink = new Sink(way.drain)
    new Source(way.source, 40 * MB)
    expect(await sink.over()).toBe('end')
    expect(sink.receivedBytes).toBe(40 * MB)
    const { movedBytes, receivedBytes, events } = way.relay
    expect(movedBytes + receivedBytes).toBe(40 * MB)
    expect(movedBytes).toBeGreaterThan(20 * MB)
    expect(events.indexOf('done')).toBeLessThan(events.indexOf('ended'))
  })

  test('stops at its limit to the byte: what follows is received', async () => {
    const limits = [3 * MB + 1, 2 * MB + 3]
    await using way = await road(() => limits.pop())
    const sink = new Sink(way.drain)
    new Source(way.source, 30 * MB)
    expect(await sink.over()).toBe('end')
    expect(sink.receivedBytes).toBe(30 * MB)
    expect(way.relay.movedBytes).toBe(5 * MB + 4)
  })

  test('stopped while the reader is stalled it hands back what is between the sockets', async () => {
    await using way = await road()
    const sink = new Sink(way.drain)
    new Source(way.source, 64 * MB)
    const splice = await way.relay.spliced()
    way.drain.pause()
    await eventually(() => splice.takenBytes > splice.movedBytes, 'bytes between the sockets')
    splice.stop()
    splice.stop()
    await eventually(() => way.relay.events.includes('done'), 'done')
    // Right behind `done`, in one piece.
    expect(way.relay.events[way.relay.events.indexOf('done') + 1]).toBe('received')
    way.drain.resume()
    expect(await sink.over()).toBe('end')
    expect(sink.receivedBytes).toBe(64 * MB)
  })

  test('a reader that takes nothing costs no time', async () => {
    await using way = await road()
    const sink = new Sink(way.drain)
    new Source(way.source, 64 * MB)
    const splice = await way.relay.spliced()
    way.drain.pause()
    let seen = -1
    await eventually(() => {
      const isStill = splice.takenBytes === seen
      seen = splice.takenBytes
      return isStill && seen > splice.movedBytes
    }, 'standstill')
    const before = process.cpuUsage()
    await Bun.sleep(300) // what is measured: the time that nothing takes
    const { user, system } = process.cpuUsage(before)
    expect((user + system) / 1000).toBeLessThan(150)
    way.drain.resume()
    expect(await sink.over()).toBe('end')
  })

  test('is done by a thread that gives way to all others', async () => {
    await using way = await road()
    const sink = new Sink(way.drain)
    new Source(way.source, 8 * MB)
    expect(await sink.over()).toBe('end')
    const threads = await readdir('/proc/self/task')
    // Behind the name, which may have spaces: the 19th field of all is the nice value.
    const nices = await Promise.all(
      threads.map(async id => {
        const stat = await readFile(`/proc/self/task/${id}/stat`, 'latin1').catch(() => '')
        return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[16])
      }),
    )
    // A test run that is itself at 19 has nothing lower to give its thread.
    const own = getPriority()
    const known = nices.filter(nice => !Number.isNaN(nice))
    const others = own === 19 ? known.length : 1
    expect(known.filter(nice => nice === Math.min(own + 10, 19)).length).toBe(others)
    expect(Math.min(...known)).toBe(own)
  })

  test('without bytes for a while it ends by itself, and the program reads on', async () => {
    await using way = await road()
    const sink = new Sink(way.drain)
    const source = new Source(way.source, 8 * MB, '')
    await way.relay.spliced()
    await eventually(() => way.relay.events.includes('done'), 'an end without bytes')
    way.source.end(patternAt(source.sentBytes, 10))
    expect(await sink.over()).toBe('end')
    expect(sink.receivedBytes).toBe(8 * MB + 10)
  })

  test('a reset by the sender is an error, told after the splice', async () => {
    await using way = await road()
    const sink = new Sink(way.drain)
    new Source(way.source, 400 * MB)
    await way.relay.spliced()
    reset(way.source)
    expect(await sink.over()).toBe('ECONNRESET')
    const { events } = way.relay
    expect(events).toContain('from failed')
    expect(events.lastIndexOf('done')).toBeLessThan(events.indexOf('from failed'))
  })

  test('a reset by the reader is an error, told after the splice', async () => {
    await using way = await road()
    new Source(way.source, 400 * MB)
    const gone = Promise.withResolvers<void>()
    way.source.on('error', () => gone.resolve())
    await way.relay.spliced()
    reset(way.drain)
    await gone.promise
    await eventually(() => way.relay.events.includes('to failed'), 'the failure')
    const { events } = way.relay
    expect(events.lastIndexOf('done')).toBeLessThan(events.indexOf('to failed'))
  })

  for (const side of ['from', 'to'] as const) {
    test(`cut on the side of ${side} in the middle, both far sides see a reset`, async () => {
      await using way = await road()
      const sink = new Sink(way.drain)
      new Source(way.source, 400 * MB)
      const gone = Promise.withResolvers<string>()
      way.source.on('error', error => gone.resolve('code' in error ? String(error.code) : ''))
      await way.relay.spliced()
      way.relay[side].terminate()
      expect(await sink.over()).toBe('ECONNRESET')
      expect(await gone.promise).toBe('ECONNRESET')
      expect(way.relay.events).toContain('done')
    })
  }

  test('a reader that is stalled does not keep a cut connection open', async () => {
    await using way = await road()
    new Source(way.source, 400 * MB)
    const gone = Promise.withResolvers<void>()
    way.source.on('error', () => gone.resolve())
    const splice = await way.relay.spliced()
    way.drain.pause()
    await eventually(() => splice.takenBytes > splice.movedBytes, 'standstill')
    way.relay.from.terminate()
    await gone.promise
    await settled()
  })

  test('above the limit of jobs bytes go the way through the program', async () => {
    const count = 150
    const before = openDescriptors()
    const ways = await Promise.all(Array.from({ length: count }, () => road()))
    const sinks = ways.map(way => new Sink(way.drain))
    for (const way of ways) way.drain.pause()
    for (const way of ways) new Source(way.source, 12 * MB)
    await eventually(() => spliceCounts().running === 128, 'as many splices as there may be')
    for (const way of ways) way.drain.resume()
    for (const sink of sinks) expect(await sink.over()).toBe('end')
    for (const sink of sinks) expect(sink.receivedBytes).toBe(12 * MB)
    for (const way of ways) await way[Symbol.asyncDispose]()
    await settled()
    await eventually(() => openDescriptors() <= before + 2 * 16, 'closed descriptors')
  }, 60_000)

  test('a thousand starts and stops leave nothing behind', async () => {
    {
      await using way = await road()
      const sink = new Sink(way.drain)
      new Source(way.source, Number.POSITIVE_INFINITY)
      await way.relay.spliced()
      const before = openDescriptors()
      for (let count = 0; count < 1_000; count++) {
        const splice = await way.relay.spliced()
        splice.stop()
        await sink.until(() => way.relay.splice !== splice, 'the end of a splice')
      }
      expect(sink.outcome).toBeUndefined()
      expect(openDescriptors()).toBeLessThanOrEqual(before + 2)
    }
    await settled()
  }, 60_000)

  test(
    'random limits, stops and stalls: every byte once, in its place',
    async () => {
      for (let seed = 1; seed <= 50 * FUZZ; seed++) {
        const random = new Random(seed)
        const totalBytes = 1 + random.below(24 * MB)
        await using way = await road(() => {
          if (random.chance(0.2)) return undefined
          return random.chance(0.5) ? Number.POSITIVE_INFINITY : 1 + random.below(3 * MB)
        })
        const sink = new Sink(way.drain)
        new Source(way.source, totalBytes)
        while (sink.outcome === undefined) {
          for (let turns = random.below(30); turns > 0; turns--) await turn()
          if (random.chance(0.4)) way.relay.splice?.stop()
          if (random.chance(0.2)) way.drain.pause()
          else way.drain.resume()
        }
        expect(`${seed}: ${sink.outcome} after ${sink.receivedBytes}`).toBe(
          `${seed}: end after ${totalBytes}`,
        )
        expect(way.relay.movedBytes + way.relay.receivedBytes).toBe(totalBytes)
      }
      await settled()
    },
    60_000 * FUZZ,
  )
})
