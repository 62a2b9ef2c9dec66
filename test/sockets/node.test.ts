// Sockets on node:net keep the contract, in Bun's node:net and in Node itself.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { associate } from '../../src/sockets/associate.ts'
import { dial } from '../../src/sockets/dial.ts'
import { dialNode } from '../../src/sockets/node.ts'
import { datagramCases } from '../suites/datagrams.ts'
import { dialCases } from '../suites/socket.ts'
import { viaCases } from '../suites/via.ts'

/** Bun 1.4.5 closes a TLS connection made over a given socket when the far side ends. On Bun, sockets/bun.ts is used. */
const NOT_IN_BUN = 'over TLS, after the far side ended, writing goes on'

/** Node tells a reset that comes right behind our own end as the far side's end, over TLS. A proxy makes that pause. */
const NOT_IN_NODE =
  /^through .* over TLS, a write to a connection that is gone|^through TLS, a write to a connection that is gone/

describe("a socket dialled on Bun's node:net", () => {
  for (const { name, run } of dialCases(dialNode)) if (name !== NOT_IN_BUN) test(name, run)
})

describe('a socket dialled on Node', () => {
  const folder = mkdtempSync(join(tmpdir(), 'localtunnels-'))
  const outcomes = new Map<string, string>()

  beforeAll(async () => {
    const entrypoint = join(import.meta.dir, '../support/node-sockets.ts')
    const built = await Bun.build({ entrypoints: [entrypoint], target: 'node', outdir: folder })
    const node = Bun.spawn(['node', built.outputs[0]!.path, NOT_IN_NODE.source], {
      stdout: 'pipe',
      stderr: 'inherit',
    })
    for (const line of (await new Response(node.stdout).text()).trim().split('\n')) {
      // What node-sockets.ts prints.
      const { name, outcome } = JSON.parse(line) as { name: string; outcome: string }
      outcomes.set(name, outcome)
    }
    expect(await node.exited).toBe(0)
  }, 120_000)
  afterAll(() => rmSync(folder, { recursive: true }))

  for (const { name } of [...dialCases(dial), ...viaCases(dial), ...datagramCases(associate)])
    if (!NOT_IN_NODE.test(name)) test(name, () => expect(outcomes.get(name)).toBe('passed'))
})
