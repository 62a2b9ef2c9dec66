// Threads that die, throw, or cannot start: it is reported, it costs what it was about, and nothing else.

import { describe, expect, test } from 'bun:test'
import { getPriority } from 'node:os'
import { join } from 'node:path'
import { canSplice } from '../../src/accelerator/threads.ts'
import { within } from '../support/within.ts'

const ROOT = join(import.meta.dir, '../..')

/** Runs a program in a process of its own and returns what it prints. */
async function printed(command: readonly string[]): Promise<string> {
  const child = Bun.spawn([...command], { cwd: ROOT, stdout: 'pipe', stderr: 'inherit' })
  const text = await new Response(child.stdout).text()
  expect(await within(child.exited, 'the process to end')).toBe(0)
  return text.trim()
}

const script = (source: string, prefix: readonly string[] = []) => printed([...prefix, 'bun', '-e', source])

/** With so many descriptors for the process. */
const withDescriptors = (count: number, source: string) =>
  printed(['sh', '-c', `ulimit -n ${count}; exec bun -e "$0"`, source])

/** Leaves so many descriptors free; `give()` gives back all that were taken. */
const TAKE = `
  const { openSync, closeSync } = require('node:fs')
  const taken = []
  const take = free => {
    try { for (;;) taken.push(openSync('/dev/null', 'r')) } catch {}
    for (let count = 0; count < free; count++) closeSync(taken.pop())
  }
  const give = () => { for (const one of taken.splice(0)) closeSync(one) }`

describe.skipIf(!canSplice())('threads', () => {
  test('that die again and again cost no wrong byte, are reported at both ends, and come back', async () => {
    const result = JSON.parse(await printed(['bun', 'test/support/mortal-load.ts', '2500']))
    expect(result.wrong).toEqual([])
    expect(result['server WORKER_FAILED']).toBeGreaterThan(1)
    expect(result['client WORKER_FAILED']).toBe(result['server WORKER_FAILED'])
    expect(result.answers).toBeGreaterThan(100)
    expect(result.pieces).toBeGreaterThan(100)
    expect(result.downloads).toBeGreaterThan(0)
    // Each death would leave its epoll, its wakeup and its pipes open.
    expect(result.openDescriptors).toBeLessThan(70)
  })

  test('are started again after a pause that doubles', async () => {
    const source = `
      import { Kernel } from './src/accelerator/kernel.ts'
      import { Supervisor } from './src/accelerator/supervisor.ts'
      import { watchFaults } from './src/accelerator/faults.ts'
      let program = new URL('data:text/javascript,throw new Error("no")')
      const supervisor = new Supervisor(new Kernel(), 'bulk', () => program)
      const real = performance.now.bind(performance)
      let skipped = 0
      performance.now = () => real() + skipped
      const deaths = []
      let died
      watchFaults(({ detail }) => { deaths.push(/after ([0-9.]+) s/.exec(detail)?.[1]); died() })
      for (const pause of [0, 500, 1_000, 2_000]) {
        const death = new Promise(resolve => { died = resolve })
        skipped += pause - 50
        if (pause > 0 && (await supervisor.ready())) throw new Error('too early')
        skipped += 50
        if (await supervisor.ready()) throw new Error('up')
        await death
      }
      program = new URL('./src/accelerator/thread.ts', 'file://${ROOT}/')
      skipped += 4_000
      console.log(deaths.join(' '), await supervisor.ready())
      process.exit()`
    expect(await script(source)).toBe('0.5 1 2 4 true')
  })

  test('are not started without descriptors to spare, which would end the process, and are later', async () => {
    const source = `${TAKE}
      import { lanesReady } from './src/accelerator/threads.ts'
      import { watchWorkers } from './src/sockets/worker-faults.ts'
      const codes = []
      watchWorkers(error => codes.push(error.code))
      take(Number('FREE'))
      const first = await lanesReady()
      give()
      const now = performance.now.bind(performance)
      performance.now = () => now() + 1_000
      console.log(first, await lanesReady(), codes.join())
      process.exit()`
    for (const free of [0, 1, 2, 3, 6, 11]) {
      expect([free, await withDescriptors(64, source.replace('FREE', `${free}`))]).toEqual([
        free,
        'false true DESCRIPTORS_SHORT',
      ])
    }
  })

  test('leave the last descriptors to the rest of the process', async () => {
    const source = `${TAKE}
      import { Kernel } from './src/accelerator/kernel.ts'
      import { freeDescriptors } from './src/descriptors.ts'
      const kernel = new Kernel()
      take(20)
      let count = 0
      while (kernel.duplicates([0, 0]) !== undefined) count += 2
      const pipe = kernel.pipe(4096)
      console.log(count, pipe, freeDescriptors(20))`
    expect(await withDescriptors(64, source)).toBe('12 undefined 8')
  })

  test('start for a trunk, and not because a visitor asks often', async () => {
    const source = `
      import { readdirSync } from 'node:fs'
      import { canSplice, lanesReady, spliceCounts } from './src/accelerator/threads.ts'
      const threads = () => readdirSync('/proc/self/task').length
      const before = threads()
      const can = canSplice()
      const isMore = threads() > before
      console.log(can, isMore, await lanesReady(), threads() > before, spliceCounts().threads)
      process.exit()`
    expect(await script(source)).toBe('true false true true 1')
  })

  test('that throw end the job that it was about, as lost, and no other', async () => {
    const source = `
      import { lanesReady, runInThreads, spliceDescriptors, spliceCounts } from './src/accelerator/threads.ts'
      import { watchFaults } from './src/accelerator/faults.ts'
      import { joined } from './test/support/trunk.ts'
      import { Kernel } from './src/accelerator/kernel.ts'
      const kernel = new Kernel()
      const fault = new Promise(resolve => watchFaults(({ kind, detail }) => resolve(kind + ' ' + /Error: [a-z]+/.exec(detail))))
      runInThreads(new URL('./test/support/clumsy-thread.ts', 'file://${ROOT}/'))
      const [a, b] = [await joined(), await joined()]
      const [c, d] = [await joined(), await joined()]
      const splice = (one, other) => {
        const over = Promise.withResolvers()
        return { job: spliceDescriptors(one.near, other.near, 1_000, 'bulk', over.resolve), over: over.promise }
      }
      let first
      while ((first = splice(a, b)).job === undefined) await Bun.sleep(1)
      const second = splice(c, d)
      const room = kernel.room(10)
      kernel.send(a.far, room, 5)
      const { isLost, movedBytes } = await first.over
      kernel.send(c.far, room, 7)
      while (second.job.movedBytes < 7) await Bun.sleep(1)
      second.job.stop()
      const end = await second.over
      console.log(await fault, isLost, end.isLost, end.movedBytes, spliceCounts().running)
      process.exit()`
    expect(await script(source)).toBe('failed Error: clumsy true false 7 0')
  })

  test('give way to others by ten steps more than their process does', async () => {
    const source = `
      import { Kernel } from './src/accelerator/kernel.ts'
      import { readFileSync } from 'node:fs'
      new Kernel().beNice(10)
      const stat = readFileSync('/proc/thread-self/stat', 'latin1')
      console.log(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[16])`
    const own = getPriority()
    for (const steps of [0, 6, 15])
      expect(await script(source, ['nice', '-n', `${steps}`])).toBe(`${Math.min(own + steps + 10, 19)}`)
  })

  test('that get no epoll fail at once: one that cannot wait would spin', async () => {
    const source = `${TAKE}
      import { Kernel } from './src/accelerator/kernel.ts'
      const kernel = new Kernel()
      take(0)
      try { console.log(kernel.poll()) } catch (error) { console.log(error.message) }`
    expect(await withDescriptors(64, source)).toBe('epoll_create1 failed: errno 24')
  })

  test('are looked for again when descriptors were too few to find out', async () => {
    const source = `${TAKE}
      import { canSplice } from './src/accelerator/threads.ts'
      take(0)
      const answers = [canSplice()]
      give()
      answers.push(canSplice())
      const now = performance.now.bind(performance)
      performance.now = () => now() + 1_000
      console.log(...answers, canSplice())`
    expect(await withDescriptors(64, source)).toBe('false false true')
  })
})
