// UDP sockets keep the contract on Bun (in Node they do so in node.test.ts), and a flood leaves the event loop to others.

import { describe, expect, test } from 'bun:test'
import { createSocket } from 'node:dgram'
import { associate } from '../../src/sockets/associate.ts'
import { bindBun } from '../../src/sockets/bun-datagrams.ts'
import { datagramCases } from '../suites/datagrams.ts'
import { freePort } from '../support/ports.ts'

describe('a UDP socket of Bun', () => {
  for (const { name, run } of datagramCases(associate)) test(name, run)
})

// The kernel is told to drop what is too much on Linux only.
test.skipIf(process.platform !== 'linux')(
  'a flood that never ends leaves the event loop to others',
  async () => {
    const hostname = '127.0.0.1'
    const port = freePort()
    /** A loop that is never left must end the test in spite of it. */
    const most = 200_000
    let heard = 0
    const bound = await bindBun({
      hostname,
      port,
      // Each datagram begets two before it is done: there is always one more to read.
      received(datagram) {
        heard++
        if (heard < most) bound.send([datagram, datagram], port, hostname)
      },
      drained() {},
      failed: error => expect(error).toBeUndefined(),
    })
    bound.send([new Uint8Array(100)], port, hostname)
    for (let turns = 0; turns < 5; turns++) await new Promise(resolve => setTimeout(resolve, 1))
    expect(heard).toBeGreaterThan(512)
    expect(heard).toBeLessThan(most)
    heard = most
    // Nothing is queued any more, and the port is open again.
    await new Promise(resolve => setTimeout(resolve, 1))
    const before = heard
    const visitor = createSocket('udp4')
    while (heard === before) {
      visitor.send('is it open?', port, hostname)
      await new Promise(resolve => setImmediate(resolve))
    }
    visitor.close()
    bound.close()
  },
)
