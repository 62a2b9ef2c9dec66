// A session may end anywhere: inside every callback, and after every frame. Nothing throws, hangs or is remembered.

import { describe, expect, test } from 'bun:test'
import type { Session } from '../../src/session/session.ts'
import { Books } from '../support/books.ts'
import { Random } from '../support/random.ts'
import { Pair, type StreamLog } from '../support/sessions.ts'

const bytesOf = (text: string) => new TextEncoder().encode(text)

/** A little of everything: both ways, backpressure, half-close, reset, control, ping, refusal. */
function playAll(both: Pair): void {
  const streams: StreamLog[] = []
  const open = () => {
    if (both.server.isClosed) return undefined
    const log = both.open()
    streams.push(log)
    return log.stream
  }
  const far = (index: number) => both.clientLog.streams[index]?.stream
  const bulk = open()
  const half = open()
  const doomed = open()
  open()
  bulk?.write(new Uint8Array(600_000))
  half?.write(bytesOf('request'))
  half?.end()
  both.step()
  both.server.sendControl(bytesOf('{}'))
  both.client.sendControl(bytesOf('{}'))
  both.server.ping()
  both.step()
  far(0)?.write(new Uint8Array(300_000))
  far(1)?.write(bytesOf('answer'))
  far(1)?.end()
  far(2)?.reset('ORIGIN_REFUSED')
  far(3)?.reset('ORIGIN_REFUSED')
  both.step()
  doomed?.reset('CANCELLED')
  open()?.reset('CANCELLED')
  both.client.leave('SERVER_DRAINING')
  for (let step = 0; step < 10; step++) both.step()
  bulk?.end()
  far(0)?.end()
  both.settle()
}

function newPair(books = new Books()): Pair {
  return new Pair({ observer: books, roomBytes: 50_000, largestPiece: 20_000, random: new Random(2) })
}

/** Every stream that is known heard of its end: by a reset, or by the END of the other side after its own. */
function expectAllTold(both: Pair): void {
  for (const log of [...both.opened, ...both.clientLog.streams]) {
    expect(log.stream?.isClosed).toBe(true)
    expect(log.stream?.queue.length).toBe(0)
  }
}

describe('ending the session', () => {
  const places = [
    'server received',
    'server writable',
    'server ended',
    'server reset',
    'server control',
    'server leaving',
    'server answered',
    'client received',
    'client ended',
    'client reset',
    'client control',
    'client opened',
  ] as const
  for (const place of places) {
    for (const how of ['close', 'terminate'] as const) {
      test(`by ${how} from within ${place} neither throws nor leaks`, () => {
        const both = newPair()
        let hits = 0
        const end = (session: Session) => {
          hits++
          const before = session.streamCount
          session[how]('SERVER_DRAINING')
          // Again, and everything else that a handler may try: nothing of it has an effect.
          session[how]('INTERNAL')
          session.sendControl(bytesOf('{}'))
          session.ping()
          session.leave('INTERNAL')
          expect(session.streamCount).toBe(0)
          expect(before).toBeGreaterThanOrEqual(0)
          for (const { stream } of [...both.opened, ...both.clientLog.streams]) {
            stream?.consumed(1)
            if (stream?.isClosed) {
              stream.write(new Uint8Array(300_000))
              stream.end()
              stream.reset('INTERNAL')
            }
          }
        }
        const [side, event] = place.split(' ')
        const session = side === 'server' ? both.server : both.client
        const watch = (log: StreamLog) => {
          log.onEvent = happened => {
            if (happened === event) end(session)
          }
        }
        both.clientLog.onOpened = log => {
          if (place === 'client opened') end(both.client)
          if (side === 'client') watch(log)
          return log
        }
        const log = side === 'server' ? both.serverLog : both.clientLog
        if (event === 'control') log.onControl = () => end(session)
        if (event === 'leaving') log.onLeaving = () => end(session)
        if (event === 'answered') session.ping(() => end(session))
        const open = both.open.bind(both)
        both.open = tunnel => {
          const opened = open(tunnel)
          if (side === 'server') watch(opened)
          return opened
        }
        playAll(both)
        expect(hits).toBeGreaterThan(0)
        both.settle()
        expectAllTold(both)
        both.expectNothingLeft()
        expect(log.closes[0]?.code).toBe('SERVER_DRAINING')
      })
    }
  }

  test('while a stream is being opened still tells the handler of that stream', () => {
    const both = newPair()
    both.clientLog.onOpened = log => {
      both.client.close('SERVER_DRAINING')
      return log
    }
    both.open()
    both.settle()
    expect(both.clientLog.streams[0]?.resetWith).toBe('SERVER_DRAINING')
  })

  test('from within a reset lets the other streams reset each other, once each', () => {
    const both = newPair()
    const { near: first } = both.join()
    const { near: second } = both.join()
    first.onEvent = () => {
      second.stream?.write(new Uint8Array(400_000))
      second.stream?.reset('CANCELLED')
    }
    both.link.cut()
    // StreamLog fails a second reset by itself.
    expect([first.resetWith, second.resetWith]).toEqual(['CARRIER_LOST', 'CARRIER_LOST'])
    both.expectNothingLeft()
  })

  test('by an error that a handler throws closes this session with the error, and no other', () => {
    const both = newPair()
    const { near, far } = both.join()
    near.onEvent = event => {
      if (event === 'received') throw new Error('a bug of ours')
    }
    far.stream?.write(bytesOf('x'))
    both.settle()
    expect(both.serverLog.closes).toEqual([{ code: 'INTERNAL', error: new Error('a bug of ours') }])
    both.expectNothingLeft()
  })

  test('by a carrier that tells its end from within send loses nothing', () => {
    const both = newPair()
    const { near } = both.join()
    both.link.server.send = () => {
      both.link.cut()
      return true
    }
    expect(near.stream?.write(new Uint8Array(260_000))).toBe(true)
    near.stream?.write(new Uint8Array(260_000))
    both.settle()
    expect(near.resetWith).toBe('CARRIER_LOST')
    both.expectNothingLeft()
  })
})

describe('a cut', () => {
  /** What arrives at each end when nothing is cut. */
  const whole = (() => {
    const both = newPair()
    playAll(both)
    return { server: both.link.server.arrivedBytes, client: both.link.client.arrivedBytes }
  })()

  for (const end of ['client', 'server'] as const) {
    test(`after every frame and in the middle of frames on the way to the ${end}: all are told once, nothing is left`, () => {
      // Every place near the start, where the frames are small, and then places all over.
      const places = new Set<number>()
      for (let bytes = 1; bytes < Math.min(120, whole[end]); bytes++) places.add(bytes)
      for (let bytes = 120; bytes < whole[end]; bytes += 4093) places.add(bytes)
      for (const frameEnd of frameEnds(end)) places.add(frameEnd)
      for (const bytes of places) {
        const both = newPair()
        both.link.cutAfter = { end, bytes }
        playAll(both)
        both.settle()
        expect(both.link.server.isOpen).toBe(false)
        expectAllTold(both)
        both.expectNothingLeft()
      }
    })
  }

  /** Bytes after each frame on the way to one end. */
  function frameEnds(end: 'client' | 'server'): number[] {
    const from = end === 'client' ? 'server' : 'client'
    const ends: number[] = []
    let total = 0
    let frameStart = 0
    let header: number[] = []
    const both = newPair(
      Object.assign(new Books(), {
        sent(name: string, bytes: Uint8Array) {
          if (name !== from) return
          for (const byte of bytes) {
            total++
            if (header.length < 8) header.push(byte)
            const length = ((header[0] ?? 0) << 16) | ((header[1] ?? 0) << 8) | (header[2] ?? 0)
            if (header.length === 8 && total - frameStart === 8 + length) {
              ends.push(total)
              frameStart = total
              header = []
            }
          }
        },
      }),
    )
    playAll(both)
    return ends
  }
})
