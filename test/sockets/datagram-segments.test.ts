// Several datagrams by one system call: which may go together, and what becomes of them.

import { expect, test } from 'bun:test'
import { endOfRun, loadSendSegments } from '../../src/sockets/bun-datagram-segments.ts'
import { datagramApp } from '../support/datagrams.ts'
import { freePort } from '../support/ports.ts'

const of = (...sizes: number[]) => sizes.map(size => new Uint8Array(size))

test.each([
  ['four of one size', [9, 9, 9, 9], 0, 4],
  ['three are not worth it', [9, 9, 9], 0, 0],
  ['a shorter one ends the run and belongs to it', [9, 9, 9, 4, 9], 0, 4],
  ['a longer one does not', [9, 9, 9, 9, 10, 10], 0, 4],
  ['nor does an empty one', [9, 9, 9, 9, 0], 0, 4],
  ['it begins where it is told to', [1, 9, 9, 9, 9], 1, 5],
  ['empty ones are none', [0, 0, 0, 0, 0], 0, 0],
  ['the kernel takes 64 of them', Array.from({ length: 100 }, () => 9), 0, 64],
  ['and one message of bytes', Array.from({ length: 20 }, () => 16_000), 0, 4],
  ['large ones go alone', [30_000, 30_000, 30_000, 30_000], 0, 0],
] as const)('%s', (_, sizes, from, to) => {
  expect(endOfRun(of(...sizes), from)).toBe(to)
})

test.skipIf(process.platform !== 'linux')('the kernel cuts them apart again', async () => {
  await using app = await datagramApp()
  const { promise, resolve } = Promise.withResolvers<void>()
  const answers: string[] = []
  const socket = await Bun.udpSocket({
    connect: { hostname: '127.0.0.1', port: app.port },
    socket: {
      data(_, datagram) {
        answers.push(datagram.toString())
        if (answers.length === 5) resolve()
      },
    },
  })
  const sendSegments = await loadSendSegments()
  const datagrams = ['not me', 'one!', 'two!', 'tre!', 'for!', 'end'].map(text => Buffer.from(text))
  const { fd } = socket as unknown as { fd: number } // Bun's types leave it out
  expect(sendSegments?.(fd, datagrams, 1, 6)).toBeUndefined()
  await promise
  expect(answers).toEqual(['one!', 'two!', 'tre!', 'for!', 'end'])
  socket.close()
})

test.skipIf(process.platform !== 'linux')('what the kernel says is told', async () => {
  const socket = await Bun.udpSocket({ connect: { hostname: '127.0.0.1', port: freePort() } })
  const sendSegments = await loadSendSegments()
  const { fd } = socket as unknown as { fd: number } // as above
  // The first finds out that nobody listens, the second is told.
  expect(sendSegments?.(fd, of(5, 5), 0, 2)).toBeUndefined()
  expect(sendSegments?.(fd, of(5, 5), 0, 2)).toBe('refused')
  // A descriptor that is none.
  expect(sendSegments?.(-1, of(5, 5), 0, 2)).toBe('impossible')
  socket.close()
})
