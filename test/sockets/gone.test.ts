// A far side that is gone is noticed by a write as well, and not only by a read.

import { expect } from 'bun:test'
import { readFileSync } from 'node:fs'
import type { Endpoints, Socket } from '../../src/socket.ts'
import { listenBun } from '../../src/sockets/bun.ts'
import { testWith } from '../support/needs.ts'
import { Recorder } from '../support/recorder.ts'

const HEX = 16

/** Blocks the event loop until the kernel has this connection no more. */
function blockUntilReset({ source, destination }: Endpoints): void {
  const hex = (port: number) => port.toString(HEX).toUpperCase().padStart(4, '0')
  const ours = `0100007F:${hex(destination.port)} 0100007F:${hex(source.port)} `
  const deadline = Date.now() + 10_000
  while (readFileSync('/proc/net/tcp', 'latin1').includes(ours)) {
    if (Date.now() > deadline) throw new Error('waited in vain for the reset')
  }
}

/** Sends two bytes, and resets as soon as the second one has left. */
const PEER = `
  const socket = require('node:net').connect(Number(process.argv[1]), '127.0.0.1', () => socket.write('ab', () => socket.resetAndDestroy()))`

// The table of connections is Linux's.
if (process.platform === 'linux')
  testWith(['node'], 'a paused connection whose write fails is closed', async () => {
    const near = new Recorder()
    const written: number[] = []
    const listening = listenBun({
      hostname: '127.0.0.1',
      accept(socket: Socket) {
        near.received = () => {
          socket.pause()
          const ends = socket.endpoints()
          if (ends !== undefined) blockUntilReset(ends)
          written.push(socket.write(new Uint8Array(100)))
          socket.pause()
        }
        return near
      },
    })
    const peer = Bun.spawn(['node', '-e', PEER, `${listening.port}`])
    await near.happened('closed')
    expect(written).toEqual([0])
    expect(near.error).toBeInstanceOf(Error)
    await peer.exited
    listening.stop(true)
  })
