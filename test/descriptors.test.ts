// What is known of file descriptors, in a process with few of them.

import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { descriptorLimit, freeDescriptors } from '../src/descriptors.ts'

const isKnown = process.platform === 'linux' || process.platform === 'darwin'

test.skipIf(!isKnown)(
  'the limit is that of `ulimit -n`, and free ones are counted up to what is asked',
  async () => {
    const script = `
    const { descriptorLimit, freeDescriptors } = await import('${join(import.meta.dir, '../src/descriptors.ts')}')
    const { openSync, closeSync } = require('node:fs')
    const opened = []
    const counts = [descriptorLimit(), freeDescriptors(5), freeDescriptors(0)]
    try { for (;;) opened.push(openSync('/dev/null', 'r')) } catch {}
    counts.push(freeDescriptors(5))
    for (let count = 0; count < 3; count++) closeSync(opened.pop())
    counts.push(freeDescriptors(5), freeDescriptors(2), freeDescriptors(5))
    console.log(counts.join(' '))`
    const child = Bun.spawn(['sh', '-c', 'ulimit -n 100; exec bun -e "$0"', script], { stdout: 'pipe' })
    expect(await new Response(child.stdout).text()).toBe('100 5 0 0 3 2 3\n')
    expect(await child.exited).toBe(0)
  },
)

test.skipIf(!isKnown)('counting leaves none open', () => {
  const limit = descriptorLimit() ?? 0
  expect(limit).toBeGreaterThan(20)
  // More than there are, if each count kept one.
  for (let count = 0; count < limit; count += 20) expect(freeDescriptors(20)).toBe(20)
})
