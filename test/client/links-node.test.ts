// Links of a client on Node: the same bytes, the same way.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Between } from '../support/between.ts'
import { startServer } from '../support/tunnel.ts'
import { within } from '../support/within.ts'

const ROOT = join(import.meta.dir, '../..')
const BULK = Buffer.alloc(
  6_000_000,
  new Uint8Array(9973).map((_, index) => index * 31),
)
const sha256 = (data: Uint8Array) => createHash('sha256').update(data).digest('hex')
const folder = mkdtempSync(join(tmpdir(), 'localtunnels-'))
const script = join(folder, 'client.mjs')

beforeAll(async () => {
  const entrypoints = [join(ROOT, 'test/support/client-process.ts')]
  const built = await Bun.build({ entrypoints, target: 'node' })
  await Bun.write(script, built.outputs[0]!)
})
afterAll(() => rmSync(folder, { recursive: true }))

test('a client on Node carries bulk down and up on links', async () => {
  using origin = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: async request =>
      new Response(request.method === 'POST' ? sha256(await request.bytes()) : new Uint8Array(BULK)),
  })
  const server = await startServer()
  await using between = await Between.inFrontOf(server.port)
  await using client = Bun.spawn(
    ['node', script, `http://127.0.0.1:${between.port}`, 'app', `${origin.port}`],
    {
      stdout: 'pipe',
    },
  )
  const reader = client.stdout.getReader()
  await within(reader.read(), 'the client to connect')
  const url = `http://127.0.0.1:${server.port}/`
  const headers = { host: 'app.localhost' }
  const passed = (way: 'up' | 'down') => between.links.reduce((sum, link) => sum + link[way], 0)
  for (let round = 0; round < 2; round++) {
    expect(sha256(await (await fetch(url, { headers })).bytes())).toBe(sha256(BULK))
    const answer = await fetch(url, { headers, method: 'POST', body: BULK })
    expect(await answer.text()).toBe(sha256(BULK))
  }
  expect(passed('up')).toBeGreaterThan(BULK.length)
  expect(passed('down')).toBeGreaterThan(BULK.length)
  client.kill('SIGKILL')
  await between.until(() => between.openCount === 0, 'the links of a killed client to go')
  await server.stop()
})
