// The hand-framed carrier over a socket with room that runs out, where every short write can be placed.

import { expect, test } from 'bun:test'
import { TunnelError } from '../../../src/errors.ts'
import { WebSocketCarrier } from '../../../src/session/carriers/websocket.ts'
import { Turns } from '../../../src/session/turns.ts'
import type { Socket } from '../../../src/socket.ts'
import { BINARY, CLOSE, PING, PONG, TEXT, WebSocketParser } from '../../../src/wire/websocket.ts'
import { CarrierRecorder } from '../../support/carrier-recorder.ts'
import { FUZZ, Random } from '../../support/random.ts'
import { bytesOf, joined, ParserLog, type PlainFrame, plainFrame } from '../../support/websocket.ts'

const MASK = [1, 2, 3, 4] as const

/** A socket that takes what it has room for. */
class NarrowSocket implements Socket {
  room = 0
  readonly written: Uint8Array[] = []
  readonly calls: string[] = []
  readonly remoteAddress = ''

  endpoints(): undefined {}

  write(bytes: Uint8Array, start = 0, end: number = bytes.length): number {
    const taken = Math.min(this.room, end - start)
    this.room -= taken
    if (taken > 0) this.written.push(bytes.slice(start, start + taken))
    return taken
  }
  end(): void {
    this.calls.push('end')
  }
  terminate(): void {
    this.calls.push('terminate')
  }
  pause(): void {}
  resume(): void {}

  /** What the far side reads. */
  read(role: 'server' | 'client'): ParserLog {
    const log = new ParserLog()
    new WebSocketParser({ role, maxTextBytes: 1000 }, log).receive(joined(this.written))
    return log
  }
}

function setUp(role: 'server' | 'client' = 'server') {
  const socket = new NarrowSocket()
  const events = new CarrierRecorder()
  const timers: (() => void)[] = []
  const carrier = new WebSocketCarrier(socket, {
    role,
    scheduler: {
      soon: task => task(),
      after(_ms, task) {
        timers.push(task)
        return () => timers.splice(timers.indexOf(task), 1)
      },
      now: () => 0,
    },
    ...(role === 'client' && { maskKey: () => 0x89abcdef }),
  })
  carrier.handler = events
  const receive = (frame: PlainFrame) =>
    carrier.socketHandler.received(plainFrame(role === 'server' ? { ...frame, mask: MASK } : frame))
  const makeRoom = (bytes: number) => {
    socket.room += bytes
    carrier.socketHandler.drained()
  }
  const send = (bytes: Uint8Array) => {
    const batch = new Uint8Array(carrier.headroom + bytes.length)
    batch.set(bytes, carrier.headroom)
    return carrier.send(batch, carrier.headroom, batch.length)
  }
  return { socket, events, timers, carrier, receive, makeRoom, send }
}

for (const role of ['server', 'client'] as const) {
  test(`a ${role} loses nothing however little room there is`, () => {
    for (let seed = 1; seed <= 50 * FUZZ; seed++) {
      const random = new Random(seed)
      const { socket, events, makeRoom, send, carrier } = setUp(role)
      const sent: Uint8Array[] = []
      for (let n = 0; n < 20; n++) {
        const bytes = random.bytes(1 + random.below(300))
        sent.push(bytes)
        socket.room += random.below(200)
        const before = events.count('drained')
        if (send(bytes)) continue
        if (random.chance(0.3)) {
          sent.push(bytesOf('urgent'))
          expect(send(bytesOf('urgent'))).toBe(false)
        }
        while (events.count('drained') === before) makeRoom(random.below(50))
        expect(carrier.unsentBytes).toBe(0)
      }
      const log = socket.read(role === 'server' ? 'client' : 'server')
      expect(log.entries).toEqual([])
      if (Buffer.compare(log.bytes, joined(sent)) !== 0) throw new Error(`seed ${seed}`)
    }
  })
}

test('one batch is one write', () => {
  const { socket, send } = setUp('client')
  socket.room = 1000
  expect(send(new Uint8Array(500))).toBe(true)
  expect(socket.written.length).toBe(1)
})

test('close() waits for what was sent, then ends', () => {
  const { socket, carrier, makeRoom, send } = setUp()
  expect(send(bytesOf('last words'))).toBe(false)
  carrier.close()
  expect(send(bytesOf('too late'))).toBe(true)
  makeRoom(5)
  expect(socket.calls).toEqual([])
  makeRoom(100)
  expect(socket.calls).toEqual(['end'])
  const log = socket.read('client')
  expect(Buffer.from(log.bytes).toString()).toBe('last words')
  expect(log.entries).toEqual(['closed 1000 '])
})

test('a far side that does not close in time is cut', () => {
  const { socket, carrier, timers, events } = setUp()
  socket.room = 100
  carrier.close()
  expect(timers.length).toBe(1)
  timers[0]?.()
  expect(socket.calls).toEqual(['end', 'terminate'])
  carrier.socketHandler.closed(new Error('cut'))
  expect(timers.length).toBe(0)
  expect(events.error?.message).toBe('cut')
})

test('a close is answered with its code', () => {
  for (const [payload, said] of [
    [undefined, 'closed 1005 '],
    [Uint8Array.of(3, 233), 'closed 1001 '],
  ] as const) {
    const { socket, receive, events } = setUp()
    socket.room = 100
    receive({ opcode: CLOSE, ...(payload && { payload }) })
    expect(socket.read('client').entries).toEqual([said])
    expect(socket.calls).toEqual(['end'])
    expect(events.events).toEqual(['closed'])
  }
})

test('pings are answered; while the socket is full only the last one', () => {
  const { socket, receive, makeRoom, send, events } = setUp()
  socket.room = 9
  receive({ opcode: PING, payload: 'first' })
  expect(send(bytesOf('full'))).toBe(false)
  for (let n = 0; n < 49; n++) receive({ opcode: PING, payload: `ping ${n}` })
  makeRoom(1000)
  const pong = (text: string) => `pong ${Buffer.from(text).toString('hex')}`
  expect(socket.read('client').entries).toEqual([pong('first'), pong('ping 48')])
  expect(events.events).toEqual(['drained'])
})

test('of the pings of one read only the last is answered', () => {
  const { socket, carrier } = setUp()
  socket.room = 1000
  const ping = (payload: string) => plainFrame({ opcode: PING, payload, mask: MASK })
  carrier.socketHandler.received(joined([ping('one'), ping('two'), ping('three')]))
  expect(socket.read('client').entries).toEqual([`pong ${Buffer.from('three').toString('hex')}`])
})

test.each([PING, PONG])('a flood of control frames with opcode %d ends the connection', opcode => {
  const { socket, carrier, events, receive } = setUp()
  socket.room = 100_000
  for (let n = 0; n < 50; n++) receive({ opcode })
  expect(events.events).toEqual([])
  const more = joined(Array.from({ length: 1000 }, () => plainFrame({ opcode, mask: MASK })))
  carrier.socketHandler.received(more)
  expect(events.events).toEqual(['closed'])
  expect(events.error).toMatchObject({ code: 'FLOOD' })
  expect(socket.calls).toEqual(['terminate'])
  expect(socket.read('client').entries.length).toBeLessThanOrEqual(50)
})

test('a pong fills the socket without a drained that nobody waits for', () => {
  const { receive, makeRoom, events } = setUp()
  receive({ opcode: PING, payload: 'p' })
  makeRoom(100)
  expect(events.events).toEqual([])
  receive({ opcode: PONG, payload: 'p' })
  expect(events.events).toEqual([])
})

test('a broken frame closes with its code and is told at once', () => {
  const { socket, receive, events, carrier } = setUp()
  socket.room = 100
  receive({ opcode: BINARY, payload: 'good' })
  receive({ opcode: 5 })
  receive({ opcode: BINARY, payload: 'not looked at' })
  expect(events.events).toEqual(['received', 'closed'])
  expect(events.error).toBeInstanceOf(TunnelError)
  expect(events.errorCode).toBe('PROTOCOL_ERROR')
  expect(socket.read('client').entries).toEqual(['closed 1002 unknown opcode'])
  carrier.socketHandler.closed()
  expect(events.count('closed')).toBe(1)
})

test('text where none is taken closes with 1003', () => {
  const { socket, receive } = setUp()
  socket.room = 100
  receive({ opcode: TEXT, payload: '{}' })
  expect(socket.read('client').entries[0]).toStartWith('closed 1003')
})

test('FIN without a close frame is a loss, and the connection is cut', () => {
  const { socket, carrier, events } = setUp()
  carrier.socketHandler.ended()
  expect(socket.calls).toEqual(['terminate'])
  expect(events.errorCode).toBe('CARRIER_LOST')
  carrier.socketHandler.closed(new Error('later'))
  expect(events.count('closed')).toBe(1)
})

test('FIN while closing does not overtake what still waits', () => {
  const { socket, carrier, makeRoom, send } = setUp()
  send(bytesOf('last words'))
  carrier.close()
  carrier.socketHandler.ended()
  expect(socket.calls).toEqual([])
  makeRoom(100)
  expect(socket.calls).toEqual(['end'])
})

test('nothing goes out and no timer starts after the socket closed', () => {
  const { socket, carrier, timers, events, send } = setUp()
  socket.room = 100
  carrier.socketHandler.closed()
  carrier.close()
  expect(send(bytesOf('late'))).toBe(true)
  expect(timers.length).toBe(0)
  expect(socket.written.length).toBe(0)
  expect(events.events).toEqual(['closed'])
})

test('what comes faster than it is taken arrives in order, its end included, while nothing is read', () => {
  for (let seed = 1; seed <= FUZZ * 30; seed++) {
    const random = new Random(seed)
    const soon: (() => void)[] = []
    const socket = new NarrowSocket()
    let isRead = true
    socket.pause = () => {
      isRead = false
    }
    socket.resume = () => {
      isRead = true
    }
    // Time passes with each look at the clock: there is hardly any for more than one portion.
    let ms = 0
    const scheduler = {
      soon: (task: () => void) => void soon.push(task),
      after: () => () => {},
      now: () => ms++,
    }
    const heard: string[] = []
    const carrier = new WebSocketCarrier(socket, {
      role: 'server',
      scheduler,
      turns: new Turns(scheduler, error => heard.push(error.message)),
      maxTextBytes: 100,
      text: message => {
        heard.push(message)
        if (random.below(3) > 0) return
        carrier.pause()
        soon.push(() => carrier.resume())
      },
    })
    carrier.handler = {
      received: (bytes, start, end) => void heard.push(Buffer.from(bytes.subarray(start, end)).toString()),
      drained() {},
      closed: () => void heard.push('closed'),
    }
    const expected = Array.from({ length: 3_000 }, (_, n) => `${n}`)
    const frames = expected.map((payload, n) =>
      plainFrame({ opcode: n % 5 === 0 ? TEXT : BINARY, payload, mask: MASK }),
    )
    const bytes = joined(frames)
    for (let at = 0; at < bytes.length; ) {
      const end = Math.min(bytes.length, at + 1 + random.below(20_000))
      // What the runtime had read already comes although reading has stopped.
      if (!isRead && random.below(4) > 0) for (const task of soon.splice(0)) task()
      else {
        carrier.socketHandler.received(bytes.slice(at, end))
        at = end
      }
    }
    carrier.socketHandler.closed()
    while (soon.length > 0) for (const task of soon.splice(0)) task()
    // Pieces of one message may come one by one.
    expect({ seed, heard: heard.join('') }).toEqual({ seed, heard: `${expected.join('')}closed` })
  }
})
