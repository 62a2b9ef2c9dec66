// All servers of a cluster are replaced, one after the other, while visitors ask: the script for many requests, with few.

import { expect } from 'bun:test'
import { join } from 'node:path'
import { testWith } from '../support/needs.ts'
import { run } from '../support/programs.ts'

const SCRIPT = join(import.meta.dir, 'rolling.ts')

testWith(
  ['redis-server'],
  'no request fails while the servers of a cluster are replaced',
  async () => {
    const { out, code } = await run(['bun', SCRIPT, '--requests', '4000'])
    expect(out).toContain(': 0 failed;')
    expect(code).toBe(0)
  },
  60_000,
)
