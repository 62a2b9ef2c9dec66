// A stream joined to an app while its bytes travel on a lane, and around that.

import { describe, expect, test } from 'bun:test'
import type { Lane, LaneEnd, LaneHandler, Trunk } from '../../src/accelerator.ts'
import { Join } from '../../src/join.ts'
import { JoinLane } from '../../src/parts/lanes/client/session-trunk.ts'
import type { Stream } from '../../src/session/stream.ts'
import type { Socket } from '../../src/socket.ts'
import { Pair, type StreamLog } from '../support/sessions.ts'
import { WireEnd } from '../support/wires.ts'

const bytesOf = (text: string) => new TextEncoder().encode(text)

/** Writes down which lanes it was given, and who waits for their ends. */
class Lanes implements Trunk {
  readonly isOpen = true
  readonly entered: number[] = []
  readonly refused: number[] = []
  readonly handlers: LaneHandler[] = []

  nextLane(): number {
    throw new Error('lanes begin at the other side')
  }

  enter(socket: Socket, lane: number, terms: unknown, handler: LaneHandler): Lane | undefined {
    if (!(socket instanceof AppSocket)) throw new Error('a socket of this test')
    expect([socket.isPaused, terms]).toEqual([true, undefined])
    if (socket.isBusy) return undefined
    this.entered.push(lane)
    this.handlers.push(handler)
    return { counts: NONE, stop() {} }
  }

  refuse(lane: number, handler: LaneHandler): void {
    this.refused.push(lane)
    this.handlers.push(handler)
  }

  get handler(): LaneHandler {
    const handler = this.handlers.at(-1)
    if (handler === undefined) throw new Error('no lane yet')
    return handler
  }
}

const NONE = {
  requests: 0,
  bytesIn: 0,
  bytesOut: 0,
  unreported: { requests: 0, errors: 0, bytes: 0 },
}
const END: LaneEnd = {
  counts: NONE,
  sentBytes: 0,
  receivedBytes: 0,
  request: undefined,
  isAsked: false,
  isTorn: false,
  unsent: undefined,
}

/** An app's socket in memory. What it takes stays on the wire. */
class AppSocket extends WireEnd {
  isLendable: boolean | undefined = true
  /** It looked as if it could, and cannot after all. */
  isBusy = false
  isFull = false

  override write(bytes: Uint8Array, start?: number, end?: number): number {
    return this.isFull ? 0 : super.write(bytes, start, end)
  }

  get taken(): string {
    return new TextDecoder().decode(this.onWire)
  }
}

interface Joined {
  readonly pair: Pair
  readonly trunk: Lanes
  readonly join: Join
  readonly lane: JoinLane
  readonly app: AppSocket
  readonly stream: Stream
  /** The server's end of the stream. */
  readonly server: StreamLog
}

/** A client's stream that is joined to an app, or is still to be. */
function joined(hasSocket = true): Joined {
  const pair = new Pair()
  const join = new Join('ORIGIN_CLOSED', false)
  pair.clientLog.onOpened = (_, stream) => {
    join.useStream(stream)
    return join
  }
  const { near: server, far } = pair.join()
  const app = new AppSocket(1_000_000)
  app.handler = join.socketHandler
  if (hasSocket) join.useSocket(app)
  if (far.stream === undefined) throw new Error('the stream is not there')
  return { pair, trunk: new Lanes(), join, lane: new JoinLane(join), app, stream: far.stream, server }
}

/** As `joined`, and in lane 5. */
async function inLane(): Promise<Joined> {
  const all = joined()
  all.lane.begin(all.trunk, 5)
  await turn()
  expect([all.trunk.entered, all.trunk.refused]).toEqual([[5], []])
  return all
}

/** What was planned for the end of this turn of the event loop has happened. */
const turn = () => new Promise(resolve => setImmediate(resolve))

function say({ pair, server }: Joined, text: string): void {
  server.stream?.write(bytesOf(text))
  pair.settle()
}

function answer({ pair, join }: Joined, text: string): void {
  join.socketHandler.received(bytesOf(text))
  pair.settle()
}

describe('a lane is refused', () => {
  const reasons: readonly [string, (all: Joined) => void][] = [
    ['for a socket of a kind that is never lent', ({ app }) => Object.assign(app, { isLendable: undefined })],
    ['for a socket that is not lent now', ({ app }) => Object.assign(app, { isLendable: false })],
    ['for a socket that could not enter it after all', ({ app }) => Object.assign(app, { isBusy: true })],
    [
      'for a socket that has not taken all yet',
      all => {
        all.app.isFull = true
        say(all, 'before')
      },
    ],
    [
      'on a stream that waits for credit',
      ({ join }) => {
        join.socketHandler.received(new Uint8Array(262_144))
        join.socketHandler.received(bytesOf('and more'))
      },
    ],
  ]
  for (const [reason, prepare] of reasons) {
    test(`${reason}, and both go on as before, behind what it brought`, async () => {
      const all = joined()
      const { join, lane, trunk, app, pair, server } = all
      prepare(all)
      lane.begin(trunk, 5)
      await turn()
      expect([trunk.entered, trunk.refused]).toEqual([[], [5]])
      app.isFull = false
      join.socketHandler.drained()
      const before = app.taken
      say(all, ' carried')
      trunk.handler.over(END)
      trunk.handler.more(bytesOf(' lane'))
      expect([app.taken, app.isPaused]).toEqual([`${before} lane`, false])
      trunk.handler.back(false)
      say(all, ' later')
      expect(app.taken).toBe(`${before} lane carried later`)
      const { receivedBytes } = server
      answer(all, 'answer')
      expect([server.receivedBytes, pair.clientLog.closes]).toEqual([receivedBytes + 6, []])
    })
  }

  test('for a socket that said too much in the same turn of the event loop', async () => {
    const { join, lane, trunk } = joined()
    lane.begin(trunk, 5)
    expect(trunk.refused).toEqual([])
    join.socketHandler.received(new Uint8Array(262_144))
    join.socketHandler.received(bytesOf('and more'))
    await turn()
    expect([trunk.entered, trunk.refused]).toEqual([[], [5]])
  })

  test('on a stream that waits for credit, and the app waits as well', async () => {
    const { join, lane, trunk, app, server, stream, pair } = joined()
    server.isReading = false
    join.socketHandler.received(new Uint8Array(262_144))
    join.socketHandler.received(bytesOf('and more'))
    pair.settle()
    expect([stream.isBackedUp, app.isPaused]).toEqual([true, true])
    lane.begin(trunk, 5)
    trunk.handler.over(END)
    trunk.handler.back(false)
    expect([stream.isBackedUp, app.isPaused]).toEqual([true, true])
    server.stream?.consumed(server.receivedBytes)
    pair.settle()
    expect([stream.isBackedUp, app.isPaused]).toEqual([false, false])
  })

  test('while there is no socket yet, which gets all of it in order', async () => {
    const all = joined(false)
    all.lane.begin(all.trunk, 5)
    await turn()
    expect(all.trunk.refused).toEqual([5])
    say(all, ' carried')
    all.trunk.handler.over(END)
    all.trunk.handler.more(bytesOf('lane'))
    all.trunk.handler.back(false)
    all.join.useSocket(all.app)
    expect([all.app.taken, all.app.isPaused]).toEqual(['lane carried', false])
  })

  test('when its stream is over before the end of the turn', async () => {
    const ends: readonly ((all: Joined) => void)[] = [
      ({ join }) => join.fail('CANCELLED'),
      ({ join }) => join.socketHandler.closed(new Error('reset')),
      ({ pair }) => pair.client.close('CANCELLED'),
    ]
    for (const end of ends) {
      const all = joined()
      all.lane.begin(all.trunk, 5)
      end(all)
      await turn()
      expect([all.trunk.entered, all.trunk.refused]).toEqual([[], [5]])
      all.trunk.handler.over(END)
      all.trunk.handler.more(bytesOf('late'))
      all.trunk.handler.back(false)
      expect([all.app.taken, all.stream.isClosed]).toEqual(['', true])
    }
  })
})

describe('in a lane', () => {
  test('data for the app waits, and comes behind what the lane brought', async () => {
    const all = await inLane()
    const { app, trunk, pair, server, stream } = all
    say(all, ' carried')
    server.stream?.end()
    pair.settle()
    expect([app.taken, app.isPaused]).toEqual(['', true])
    trunk.handler.over({ ...END, sentBytes: 10, receivedBytes: 20 })
    expect([stream.sentBytes, stream.deliveredBytes, app.isPaused]).toEqual([10, 20, false])
    trunk.handler.more(bytesOf('lane'))
    expect(app.taken).toBe('lane')
    const atEnd: string[] = []
    Object.assign(app, { end: () => atEnd.push(app.taken) })
    trunk.handler.back(false)
    expect([app.taken, atEnd]).toEqual(['lane carried', ['lane carried']])
  })

  test('the app may answer as soon as it is over', async () => {
    const all = await inLane()
    const { trunk, server } = all
    trunk.handler.over(END)
    answer(all, 'at once')
    expect(server.receivedBytes).toBe(7)
    trunk.handler.back(false)
    answer(all, ' and later')
    expect(new TextDecoder().decode(server.bytes)).toBe('at once and later')
  })

  test('the next one begins once it is back, and not before', async () => {
    const all = await inLane()
    const { lane, trunk, app } = all
    const [first] = trunk.handlers
    first?.over(END)
    lane.begin(trunk, 6)
    await turn()
    expect([trunk.entered, app.isPaused]).toEqual([[5], false])
    first?.more(bytesOf('of the first'))
    first?.back(false)
    say(all, ' carried')
    await turn()
    expect([trunk.entered, app.isPaused]).toEqual([[5, 6], true])
    // Behind what the first one had, and still waiting.
    expect(app.taken).toBe('of the first')
    const [, second] = trunk.handlers
    second?.over(END)
    second?.back(false)
    expect([app.taken, app.isPaused]).toEqual(['of the first carried', false])
    await turn()
    expect([trunk.entered, trunk.refused]).toEqual([[5, 6], []])
  })

  test('what fails ends the socket and the stream, and nothing comes of the lane any more', async () => {
    const all = await inLane()
    const { join, trunk, app, pair, server, stream } = all
    say(all, 'carried')
    join.fail('CANCELLED')
    expect([app.isOpen, stream.isClosed]).toEqual([false, true])
    trunk.handler.over({ ...END, sentBytes: 1, receivedBytes: 1 })
    trunk.handler.more(bytesOf('late'))
    trunk.handler.back(false)
    pair.settle()
    expect([app.taken, server.resetWith]).toEqual(['', 'CANCELLED'])
    expect([pair.clientLog.closes, pair.serverLog.closes]).toEqual([[], []])
  })

  test('what loses its trunk loses its stream, and the app its connection', async () => {
    const all = await inLane()
    const { trunk, app, pair, server } = all
    say(all, 'behind a hole')
    trunk.handler.over({ ...END, isTorn: true })
    trunk.handler.back(true)
    pair.settle()
    expect([app.taken, app.isOpen, server.resetWith]).toEqual(['', false, 'CARRIER_LOST'])
    expect([pair.clientLog.closes, pair.serverLog.closes]).toEqual([[], []])
  })
})
