// Resets at random moments are reported as errors: dialled and accepted, on Bun and on Node. LT_FUZZ=10 makes 20,000 of them.

import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { Socket } from '../../src/socket.ts'
import { listenBun } from '../../src/sockets/bun.ts'
import { dial } from '../../src/sockets/dial.ts'
import { dialNode } from '../../src/sockets/node.ts'
import { dialledPairs, mistakenResets, type OpenPair } from '../suites/resets.ts'
import { peerClient } from '../support/peer.ts'
import { FUZZ } from '../support/random.ts'
import { TEST_CERT, TEST_KEY } from '../support/tls.ts'
import { within } from '../support/within.ts'

const COUNT = 250 * FUZZ
const TIMEOUT_MS = 30_000 * FUZZ

const accepted: OpenPair = async (tls, handler) => {
  const { promise, resolve } = Promise.withResolvers<Socket>()
  const listening = listenBun({
    hostname: '127.0.0.1',
    ...(tls && { tls: { cert: TEST_CERT, key: TEST_KEY } }),
    accept(socket) {
      resolve(socket)
      return handler
    },
  })
  const far = await peerClient(listening.port, tls)
  const near = await within(promise, 'accept')
  return {
    near,
    far,
    close() {
      far.destroy()
      listening.stop(true)
    },
  }
}

for (const tls of [false, true]) {
  const over = tls ? 'over TLS' : 'over TCP'

  describe(`a reset ${over} is an error, and never an end`, () => {
    test(
      'dialled on Bun',
      async () => {
        expect(await mistakenResets(dialledPairs(dial), tls, COUNT, 1)).toEqual([])
      },
      TIMEOUT_MS,
    )

    test(
      'accepted on Bun',
      async () => {
        expect(await mistakenResets(accepted, tls, COUNT, 1)).toEqual([])
      },
      TIMEOUT_MS,
    )

    test(
      "dialled on Bun's node:net",
      async () => {
        expect(await mistakenResets(dialledPairs(dialNode), tls, COUNT, 1)).toEqual([])
      },
      TIMEOUT_MS,
    )

    test(
      'dialled on Node',
      async () => {
        const entrypoints = [join(import.meta.dir, '../support/node-resets.ts')]
        const built = await Bun.build({ entrypoints, target: 'node' })
        const node = Bun.spawn(['node', '--input-type=module', '-', `${tls}`, `${COUNT}`], {
          stdin: built.outputs[0]!,
          stdout: 'pipe',
          stderr: 'inherit',
        })
        expect(await new Response(node.stdout).json()).toEqual([])
        expect(await node.exited).toBe(0)
      },
      TIMEOUT_MS,
    )
  })
}
