// What a reader that stops costs in the kernel, at the server and the client together. Each case takes two seconds, in which
// buffers grow at full speed and then fill up.

import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { canSplice } from '../../src/accelerator/threads.ts'
import { mayBound } from '../support/receive-buffer.ts'
import { within } from '../support/within.ts'

const MB = 1_000_000
const MAX_HELD = 16 * MB

describe.skipIf(!mayBound())('a reader that stops in the middle of bulk', () => {
  for (const [way, splice] of [
    ['spliced', ''],
    ['through the program', '0'],
  ] as const)
    for (const direction of ['down', 'up'] as const)
      test.skipIf(splice === '' && !canSplice())(`costs at most 16 MB, ${way}, ${direction}`, async () => {
        const child = Bun.spawn(['bun', join(import.meta.dir, '../support/stalled-reader.ts'), direction], {
          env: { ...process.env, LOCALTUNNELS_SPLICE: splice },
          stdout: 'pipe',
          stderr: 'inherit',
        })
        const { heldBytes, receivedBytes } = JSON.parse(
          await within(new Response(child.stdout).text(), 'the figures'),
        )
        expect(receivedBytes).toBeGreaterThan(20 * MB)
        expect(heldBytes).toBeLessThan(MAX_HELD)
      })
})
