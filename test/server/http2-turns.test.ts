// Many requests on many HTTP/2 connections in one turn of the event loop, on a clock of the test.

import { expect, test } from 'bun:test'
import { acceptHttp2 } from '../../src/parts/http2/connection.ts'
import type { ServerContext } from '../../src/server/context/server-context.ts'
import { HttpFront } from '../../src/server/fronts/http.ts'
import { Deadlines } from '../../src/server/limits/deadlines.ts'
import { Turns } from '../../src/session/turns.ts'
import type { Socket } from '../../src/socket.ts'
import { DEFAULT_BOUNDS } from '../support/bounded-server.ts'
import { Clock } from '../support/clock.ts'
import { frame, PREFACE, SETTINGS } from '../support/h2-frames.ts'

/** What one request costs the server, milliseconds. */
const COST_MS = 0.1
const CONNECTIONS = 200
const REQUESTS = 16

const SOCKET: Omit<Socket, 'remoteAddress'> = {
  write: (bytes, start = 0, end = bytes.length) => end - start,
  end() {},
  terminate() {},
  pause() {},
  resume() {},
  endpoints: () => undefined,
}

test('of connections that each send many requests at once, one of each is begun at once, the others in turns', () => {
  const clock = new Clock()
  const failures: Error[] = []
  const failed = (error: Error): void => void failures.push(error)
  let begun = 0
  // Each request is one for a tunnel whose guard is being asked: it waits.
  const booked = { kind: 'holding', hold: () => () => {} }
  const router = {
    accept() {
      clock.pass(COST_MS)
      begun++
      return { route: booked, finished() {}, shapes: undefined }
    },
  }
  const context = {
    deadlines: new Deadlines(failed),
    turns: new Turns(clock, failed),
    limits: DEFAULT_BOUNDS,
    isShut: false,
  }
  const visitors = { add() {}, left() {}, settled() {} }
  // What requests that wait need of it, and nothing else.
  const front = new HttpFront(
    context as unknown as ServerContext,
    router as never,
    {} as never,
    visitors as never,
  )
  const entrance = { proto: 'https', isTrusted: () => false, hstsLine: () => undefined } as const
  // GET, https, / and a name, as HPACK's static table has them.
  const block = [0x82, 0x87, 0x84, 0x41, 5, ...Buffer.from('a.dev')]
  const requests = Array.from({ length: REQUESTS }, (_, index) => frame(1, 5, 1 + 2 * index, block)).flat()
  const opened = Array.from({ length: CONNECTIONS }, () => {
    const connection = acceptHttp2(front, { ...SOCKET, remoteAddress: '192.0.2.1' }, entrance, undefined)
    connection.received(new Uint8Array([...PREFACE, ...SETTINGS]))
    return connection
  })
  while (clock.hasSoon) clock.tick()
  for (const connection of opened) connection.received(new Uint8Array(requests))
  // The 2 ms of the turn, and one request of each connection.
  expect(begun).toBeLessThanOrEqual(CONNECTIONS + 2 / COST_MS)
  expect(begun).toBeGreaterThanOrEqual(CONNECTIONS)
  while (clock.hasSoon) {
    const before = clock.now()
    clock.tick()
    expect(clock.now() - before).toBeLessThanOrEqual(2 + REQUESTS * COST_MS)
  }
  expect(failures).toEqual([])
  expect(begun).toBe(CONNECTIONS * REQUESTS)
})
