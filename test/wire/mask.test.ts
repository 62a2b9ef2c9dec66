// Masking against the definition in the RFC, at every length that goes another way.

import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { maskInPlace } from '../../src/wire/mask.ts'
import { FUZZ, Random } from '../support/random.ts'

const KEY_BYTES = [0x37, 0xfa, 0x21, 0x9d] as const
const KEY = 0x9d21fa37

/** Masks a random range of random bytes at a random alignment. Returns the first byte that is wrong, or -1. */
function maskSomewhere(rng: Random, length: number): number {
  const shift = rng.below(17)
  const bytes = new Uint8Array(new ArrayBuffer(length + 60), shift)
  bytes.set(rng.bytes(bytes.length))
  const before = bytes.slice()
  const start = rng.below(20)
  const end = start + length
  const offset = rng.below(9)
  maskInPlace(bytes, start, end, KEY, offset)
  return bytes.findIndex((byte, at) => {
    const mask = at >= start && at < end ? KEY_BYTES[(offset + at - start) % 4]! : 0
    return byte !== (before[at]! ^ mask)
  })
}

function maskEverywhere(): void {
  const rng = new Random(7)
  for (let round = 0; round < 300 * FUZZ; round++) {
    const length = rng.below(2_000)
    expect([length, maskSomewhere(rng, length)]).toEqual([length, -1])
  }
  // Around what is masked at a time.
  for (const middle of [1_024, 16_384, 32_768, 49_152])
    for (let length = middle - 66; length <= middle + 66; length += 1 + rng.below(3))
      expect([length, maskSomewhere(rng, length)]).toEqual([length, -1])
}

test('masking is what the RFC says from any start, at any alignment, with any offset', maskEverywhere)

test('also where nothing may be compiled at run time', async () => {
  const run = Bun.spawn(['bun', 'test', import.meta.path, '-t', 'what the RFC says'], {
    cwd: join(import.meta.dir, '../..'),
    env: { ...process.env, BUN_JSC_useWasm: '0' },
    stderr: 'pipe',
  })
  expect(await new Response(run.stderr).text()).toContain(' 1 pass\n')
  expect(await run.exited).toBe(0)
})

test('where it cannot be compiled, that is tried once', async () => {
  const script = `
    import { maskInPlace } from '${join(import.meta.dir, '../../src/wire/mask.ts')}'
    let tries = 0
    Object.defineProperty(globalThis, 'WebAssembly', { get: () => { tries++ } })
    for (let round = 0; round < 3; round++) maskInPlace(new Uint8Array(100_000), 0, 100_000, ${KEY})
    console.log(tries)
  `
  const run = Bun.spawn(['bun', '-e', script], { stdout: 'pipe' })
  expect(await new Response(run.stdout).text()).toBe('1\n')
})

test('megabytes are masked whole, and masked again they are as before', () => {
  const rng = new Random(11)
  const bytes = rng.bytes(3_000_001)
  const before = bytes.slice()
  maskInPlace(bytes, 0, bytes.length, KEY)
  expect(bytes.every((byte, at) => byte === (before[at]! ^ KEY_BYTES[at % 4]!))).toBe(true)
  maskInPlace(bytes, 0, bytes.length, KEY)
  expect(Buffer.compare(bytes, before)).toBe(0)
})
