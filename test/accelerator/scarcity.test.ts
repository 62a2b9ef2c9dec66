// Servers and clients with few descriptors live through more load than they can carry. Each case takes 4 s: pressure, a
// second in which nothing may use the processor, and recovery. LT_FUZZ=2 runs all of them.

import { describe, expect, test } from 'bun:test'
import { canSplice } from '../../src/accelerator/threads.ts'
import { FUZZ } from '../support/random.ts'
import { scarcity } from '../support/scarcity.ts'

const FEW: readonly (readonly [number, number])[] = [[64, 64]]
const ALL: readonly (readonly [number, number])[] = [
  ...FEW,
  [80, 80],
  [100, 64],
  [128, 128],
  [200, 200],
  [256, 256],
  [400, 400],
  [400, 48],
  [400, 64],
]

describe.skipIf(!canSplice())('without descriptors to spare', () => {
  test.each(FUZZ === 1 ? FEW : ALL)(
    'a server with %d and a client with %d neither die nor spin, say so, and recover',
    async (server, client) => {
      const { faults, serverErrors, answers } = await scarcity(server, client, FUZZ === 1 ? 1_500 : 4_000)
      expect(faults).toEqual([])
      expect(serverErrors.DESCRIPTORS_SHORT ?? 0).toBeGreaterThan(0)
      expect(answers).toBeGreaterThan(0)
    },
    60_000,
  )
})
