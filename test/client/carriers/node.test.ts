// Carriers in a Node process, against a server end on Bun.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { carrierServer } from '../../support/carrier-server.ts'
import { Random } from '../../support/random.ts'

const ROOT = join(import.meta.dir, '../../..')
const folder = mkdtempSync(join(tmpdir(), 'localtunnels-'))
let script: string

beforeAll(async () => {
  const entrypoint = join(ROOT, 'test/support/node-carriers.ts')
  // The real ws, found as an installed package is.
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  const built = await Bun.build({
    entrypoints: [entrypoint],
    target: 'node',
    outdir: folder,
    external: ['ws'],
  })
  script = join(folder, 'node-carriers.mjs')
  await Bun.write(script, built.outputs[0]!)
})
afterAll(() => rmSync(folder, { recursive: true }))

for (const kind of ['direct', 'ws']) {
  test(`a ${kind} carrier on Node echoes every byte and closes in good order`, async () => {
    const server = carrierServer()
    const node = Bun.spawn(['node', script, kind, String(server.port)], { stdout: 'pipe', stderr: 'inherit' })
    const { carrier, events } = await server.accepted()
    const bytes = new Random(5).bytes(262_144)
    const rounds = 20
    for (let round = 0; round < rounds; round++) {
      const before = events.count('drained')
      const batch = new Uint8Array(carrier.headroom + bytes.length)
      batch.set(bytes, carrier.headroom)
      if (!carrier.send(batch, carrier.headroom, batch.length)) {
        await events.until(() => events.count('drained') > before, 'drained')
      }
    }
    await events.until(() => events.receivedBytes === rounds * bytes.length, 'the echo')
    const echo = events.bytes
    for (let round = 0; round < rounds; round++) {
      const piece = echo.subarray(round * bytes.length, (round + 1) * bytes.length)
      expect(Buffer.compare(piece, bytes)).toBe(0)
    }
    carrier.close()
    expect((await new Response(node.stdout).text()).trim()).toBe('closed')
    expect(await node.exited).toBe(0)
    await events.happened('closed')
    expect(events.error).toBeUndefined()
    server.stop()
  })
}
