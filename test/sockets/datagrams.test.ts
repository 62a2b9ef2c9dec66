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
      dropped() {
        heard++
      },
      drained() {},
      failed: error => expect(error).toBeUndefined(),
    })
    bound.send([new Uint8Array(100)], port, hostname)
    for (let turns = 0; turns < 5; turns++) await new Promise(resolve => setTimeout(resolve, 1))
    expect(heard).toBeGreaterThan(256)
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

test.skipIf(process.platform !== 'linux')(
  'sockets that are flooded at once share what one turn of the event loop reads',
  async () => {
    const hostname = '127.0.0.1'
    /** Datagrams of this turn of the event loop, of all sockets. */
    let count = 0
    let most = 0
    let dropped = 0
    const counts = new Map<number, number>()
    const ports = Array.from({ length: 16 }, () => freePort())
    const bounds = await Promise.all(
      ports.map(port =>
        bindBun({
          hostname,
          port,
          received() {
            count++
            counts.set(port, (counts.get(port) ?? 0) + 1)
          },
          dropped() {
            dropped++
          },
          drained() {},
          failed: error => expect(error).toBeUndefined(),
        }),
      ),
    )
    const datagrams = Array.from({ length: 200 }, () => new Uint8Array(10))
    const [sender] = bounds
    for (let turns = 0; turns < 30; turns++) {
      count = 0
      for (const port of ports) sender!.send(datagrams, port, hostname)
      await new Promise(resolve => setTimeout(resolve, 1))
      // The first turn does not know yet how many there are.
      if (turns > 2) most = Math.max(most, count)
    }
    // Of 3,200 that were sent in each. Two turns of the event loop may be between two timers.
    expect(most).toBeGreaterThan(0)
    expect(most).toBeLessThanOrEqual(2 * 2 * 256)
    expect(dropped).toBeGreaterThan(0)
    // Each of them is heard, not only those that the kernel names first.
    expect(counts.size).toBe(16)
    const all = [...counts.values()]
    expect(Math.min(...all) * 20).toBeGreaterThan(Math.max(...all))
    for (const bound of bounds) bound.close()
  },
)
