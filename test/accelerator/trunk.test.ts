// Trunks on real sockets, without their thread: every frame reaches its lane, and whoever makes things up is cut off.

import { afterAll, describe, expect, test } from 'bun:test'
import type { Room } from '../../src/accelerator/kernel.ts'
import { MAX_LANES } from '../../src/accelerator/shared-slots.ts'
import { canSplice } from '../../src/accelerator/threads.ts'
import { IN_BYTES, LaneEndpoint, MAX_LANE_FRAME_BYTES, Trunk } from '../../src/accelerator/trunk.ts'
import { eventually } from '../support/events.ts'
import { reset } from '../support/peer.ts'
import { FUZZ, Random } from '../support/random.ts'
import { patternAt } from '../support/relay.ts'
import {
  arrived,
  FrameReader,
  fill,
  Guest,
  type Joined,
  joined,
  laneFrame,
  pair,
  readAll,
  roomOf,
  testKernel,
  Watch,
} from '../support/trunk.ts'

const ANSWER_MS = 5_000
const KB = 1_024
const latin1 = (bytes: Uint8Array) => Buffer.from(bytes).toString('latin1')

describe.skipIf(!canSplice())('a trunk', () => {
  const closing: (() => void)[] = []
  afterAll(() => {
    for (const close of closing) close()
  })

  async function connection(): Promise<Joined> {
    const both = await joined()
    closing.push(both.close)
    return both
  }

  const trunkOn = (descriptor: number, mayBeEarly: boolean) =>
    new Trunk(testKernel(), descriptor, testKernel().room(IN_BYTES), mayBeEarly)

  /** A trunk with its far end: what that sends is read as it comes. */
  async function open(mayBeEarly: boolean) {
    const { near, far } = await connection()
    const trunk = trunkOn(near, mayBeEarly)
    return { near, far, trunk, tell: teller(far, near, trunk) }
  }

  /** Sends bytes to the trunk in pieces, and has it read each of them when the thread would. */
  function teller(far: number, near: number, trunk: Trunk): (...pieces: Uint8Array[]) => void {
    return (...pieces) => {
      const watch = new Watch(near)
      watch.changed()
      for (const piece of pieces) {
        const room = roomOf(piece)
        for (let at = 0; at < piece.length && !trunk.isBroken; ) {
          at += Math.max(0, testKernel().send(far, room, piece.length - at, at))
          if (!watch.changed(ANSWER_MS)) throw new Error('the kernel told of no change')
          trunk.changed(false)
        }
      }
      // What the kernel tells a moment later.
      while (!trunk.isBroken && watch.changed()) trunk.changed(false)
      watch.close()
    }
  }

  describe('receiving', () => {
    test('what one lane throws ends that lane, and no other', async () => {
      const { trunk, tell } = await open(false)
      const clumsy = new Guest(trunk, 1)
      clumsy.received = () => {
        throw new Error('clumsy')
      }
      const other = new Guest(trunk, 2)
      tell(Buffer.concat([laneFrame(2, 'before'), laneFrame(1, 'x'), laneFrame(2, 'after')]))
      expect([clumsy.hasLeft, other.hasLeft, trunk.isBroken]).toEqual([true, false, false])
      expect(other.log).toEqual(['before', 'after'])
      tell(laneFrame(1))
      expect(clumsy.log).toEqual(['«done»'])
    })

    test('frames that are cut anywhere arrive whole, at their lanes and in order', async () => {
      const { near, far } = await connection()
      const frames = Buffer.concat([
        laneFrame(1, 'one'),
        laneFrame(0x0203_0405, 'a lane with a large number'),
        laneFrame(1, 'x'),
        laneFrame(2),
        laneFrame(1, 'y'.repeat(300)),
        laneFrame(1),
      ])
      for (let cut = 0; cut < frames.length; cut++) {
        const trunk = trunkOn(near, false)
        const [one, two, large] = [1, 2, 0x0203_0405].map(lane => new Guest(trunk, lane))
        // At 0: every byte comes by itself.
        const pieces = cut === 0 ? [...frames].map(byte => Uint8Array.of(byte)) : halves(frames, cut)
        teller(far, near, trunk)(...pieces)
        expect([cut, one?.log]).toEqual([cut, ['one', 'x', 'y'.repeat(300), '«peer left»', '«done»']])
        expect([cut, two?.log]).toEqual([cut, ['«peer left»', '«done»']])
        expect([cut, large?.log]).toEqual([cut, ['a lane with a large number']])
        expect(trunk.isBroken).toBe(false)
      }
    })

    test(
      'random frames in random pieces',
      async () => {
        for (let seed = 1; seed <= 15 * FUZZ; seed++) {
          const random = new Random(seed)
          const { near, far, close } = await joined()
          const trunk = trunkOn(near, false)
          const guests = Array.from({ length: 1 + random.below(6) }, (_, lane) => new Guest(trunk, lane))
          const sent: string[][] = guests.map(() => [])
          const frames: Buffer[] = []
          for (let count = random.below(60); count >= 0; count--) {
            const lane = random.below(guests.length)
            const largest = random.chance(0.1) ? MAX_LANE_FRAME_BYTES : 2_000
            const bytes = random.chance(0.05)
              ? random.bytes(MAX_LANE_FRAME_BYTES)
              : random.bytes(1 + random.below(largest))
            frames.push(laneFrame(lane, bytes))
            sent[lane]?.push(latin1(bytes))
          }
          const pieces = random.slices(Buffer.concat(frames), random.pick([200, 5_000, 300_000]))
          teller(far, near, trunk)(...pieces)
          const isSame = guests.every(({ log }, lane) => Bun.deepEquals(log, sent[lane]))
          expect([seed, isSame, trunk.isBroken]).toEqual([seed, true, false])
          close()
        }
      },
      60_000 * FUZZ,
    )

    test('a frame of as much as there may be is fine', async () => {
      const { trunk, tell } = await open(false)
      const guest = new Guest(trunk, 1)
      tell(laneFrame(1, 'x'.repeat(MAX_LANE_FRAME_BYTES)))
      expect(guest.log.map(({ length }) => length)).toEqual([MAX_LANE_FRAME_BYTES])
      expect(trunk.isBroken).toBe(false)
    })

    test('one that says it has more breaks it at once', async () => {
      const { trunk, tell } = await open(false)
      const guest = new Guest(trunk, 1)
      tell(laneFrame(1, 'x'.repeat(MAX_LANE_FRAME_BYTES + 1)).subarray(0, 8))
      expect(trunk.isBroken).toBe(true)
      expect(guest.log).toEqual([])
    })

    test('one that has more, and is there as a whole, reaches nobody', async () => {
      const { near, far, trunk, tell } = await open(false)
      const guest = new Guest(trunk, 1)
      // The kernel holds so much only for somebody who has read a lot.
      while (guest.log.length < 200) tell(laneFrame(1, 'x'.repeat(MAX_LANE_FRAME_BYTES)))
      guest.log.length = 0
      const frame = roomOf(laneFrame(1, 'x'.repeat(MAX_LANE_FRAME_BYTES + 1)))
      expect(testKernel().send(far, frame, frame.bytes.length)).toBe(frame.bytes.length)
      await eventually(() => arrived(near) === 'bytes', 'the frame')
      trunk.changed(false)
      expect(trunk.isBroken).toBe(true)
      expect(guest.log).toEqual([])
    })

    test('what comes in front of a broken frame arrives, and what is behind it does not', async () => {
      const { trunk, tell } = await open(false)
      const guest = new Guest(trunk, 1)
      tell(Buffer.concat([laneFrame(1, 'one'), laneFrame(2, 'whose?'), laneFrame(1, 'two')]))
      expect(trunk.isBroken).toBe(true)
      expect(guest.log).toEqual(['one'])
    })
  })

  describe('frames of a lane that is not here', () => {
    test('break it where lanes are begun', async () => {
      for (const content of ['bytes', '']) {
        const { trunk, tell } = await open(false)
        tell(laneFrame(1, content))
        expect(trunk.isBroken).toBe(true)
      }
    })

    test('break it where lanes are begun, also if the lane was here', async () => {
      const { trunk, tell } = await open(false)
      const guest = new Guest(trunk, 1)
      guest.leave()
      tell(laneFrame(1, 'on its way'), laneFrame(1))
      expect(guest.log).toEqual(['on its way', '«done»'])
      expect(trunk.isBroken).toBe(false)
      tell(laneFrame(1))
      expect(trunk.isBroken).toBe(true)
    })

    test('wait for it at the other end', async () => {
      const { trunk, tell } = await open(true)
      tell(laneFrame(1, 'request'), laneFrame(2, 'another'), laneFrame(1), laneFrame(3))
      const [one, two, three, four] = [1, 2, 3, 4].map(lane => new Guest(trunk, lane))
      expect(one?.log).toEqual([])
      for (const guest of [four, three, two, one]) if (guest !== undefined) trunk.begin(guest)
      expect(one?.log).toEqual(['request', '«peer left»', '«done»'])
      expect(two?.log).toEqual(['another'])
      expect(three?.log).toEqual(['«peer left»', '«done»'])
      expect(four?.log).toEqual([])
      tell(laneFrame(2, 'more'))
      expect(two?.log).toEqual(['another', 'more'])
      expect(trunk.isBroken).toBe(false)
    })

    test('are told once', async () => {
      const { trunk, tell } = await open(true)
      tell(laneFrame(1, 'request'), laneFrame(1))
      const guest = new Guest(trunk, 1)
      trunk.begin(guest)
      expect(guest.log.at(-1)).toBe('«done»')
      const again = new Guest(trunk, 1)
      trunk.begin(again)
      expect(again.log).toEqual([])
    })

    test('may be a request and a last word, and no more', async () => {
      const { trunk, tell } = await open(true)
      tell(laneFrame(1, 'request'), laneFrame(1))
      expect(trunk.isBroken).toBe(false)
      tell(laneFrame(1, 'another'))
      expect(trunk.isBroken).toBe(true)
    })

    test('may be of 1 MB, and no more: what lanes have got meanwhile does not count', async () => {
      const { trunk, tell } = await open(true)
      const large = 'x'.repeat(MAX_LANE_FRAME_BYTES)
      for (let lane = 0; lane < 16; lane++) tell(laneFrame(lane, large))
      const guest = new Guest(trunk, 0)
      trunk.begin(guest)
      expect(guest.log.map(({ length }) => length)).toEqual([large.length])
      tell(laneFrame(16, large))
      expect(trunk.isBroken).toBe(false)
      tell(laneFrame(17, 'x'))
      expect(trunk.isBroken).toBe(true)
    })

    test('may be of as many lanes as there can be, and no more', async () => {
      const { trunk, tell } = await open(true)
      tell(Buffer.concat(Array.from({ length: MAX_LANES }, (_, lane) => laneFrame(lane, 'x'))))
      expect(trunk.isBroken).toBe(false)
      tell(laneFrame(MAX_LANES, 'x'))
      expect(trunk.isBroken).toBe(true)
    })
  })

  describe('sending', () => {
    test('what lanes say in a turn leaves in one write', async () => {
      const { far, trunk } = await open(false)
      const guests = [1, 0x0203_0405, 3].map(lane => new Guest(trunk, lane))
      for (const guest of guests) expect(guest.say(`of ${guest.lane}`)).toBe(true)
      guests[2]?.leave()
      expect(arrived(far)).toBe('nothing')
      trunk.flush()
      await eventually(() => arrived(far) === 'bytes', 'the frames')
      const frames = [laneFrame(1, 'of 1'), laneFrame(0x0203_0405, 'of 33752069'), laneFrame(3, 'of 3')]
      expect(readAll(far)).toEqual(Buffer.concat([...frames, laneFrame(3)]))
    })

    test('one that is stuck says who waits that there is room, and keeps what it took', async () => {
      const { near, far, trunk } = await open(false)
      const watch = new Watch(near)
      closing.push(() => watch.close())
      watch.changed()
      fill(trunk, 1)
      const [guest, gone] = [new Guest(trunk, 2), new Guest(trunk, 3)]
      expect([guest.say('x'), gone.say('x')]).toEqual([false, false])
      gone.leave()
      const reader = new FrameReader()
      const until = (condition: () => boolean, what: string) =>
        eventually(() => {
          reader.read(readAll(far))
          if (watch.changed()) trunk.changed(false)
          return condition()
        }, what)
      await until(() => guest.log.length > 0, 'room')
      expect(guest.log).toEqual(['«room»'])
      expect(gone.log).toEqual([])
      expect(guest.say('at last')).toBe(true)
      trunk.flush()
      await until(() => reader.of(2) !== '', 'what was said at last')
      expect(reader.of(2)).toBe('|at last')
      expect(reader.of(3)).toBe('|')
      const sizes = reader.frames.filter(({ lane }) => lane === 1).map(({ bytes }) => bytes.length)
      expect(new Set(sizes)).toEqual(new Set([MAX_LANE_FRAME_BYTES, 1]))
      // Stuck once more, while it does not wait.
      fill(trunk, 4)
      const other = new Guest(trunk, 5)
      expect(other.say('x')).toBe(false)
      await until(() => other.log.length > 0, 'room')
      expect(guest.log).toEqual(['«room»'])
    })

    test('last words find room when nothing else does', async () => {
      const { far, trunk } = await open(false)
      fill(trunk, 1)
      const lanes = Array.from({ length: 5_000 }, (_, index) => 2 + index)
      for (const lane of lanes) new Guest(trunk, lane).leave()
      expect(trunk.isBroken).toBe(false)
      const reader = new FrameReader()
      await eventually(() => {
        reader.read(readAll(far))
        trunk.changed(false)
        return reader.frames.at(-1)?.lane === lanes.at(-1)
      }, 'the last of them')
      expect(reader.frames.flatMap(({ lane, bytes }) => (bytes.length === 0 ? [lane] : []))).toEqual(lanes)
    })

    test('more last words than it has room for break it', async () => {
      const { trunk } = await open(false)
      fill(trunk, 1)
      let count = 0
      while (!trunk.isBroken && count < 10_000) new Guest(trunk, 2 + count++).leave()
      expect(trunk.isBroken).toBe(true)
      // 64 KB are for nothing else.
      expect(count).toBeGreaterThan((64 * KB) / 8)
    })
  })

  describe('that is gone', () => {
    async function onPeer() {
      const { peer, descriptor, close } = await pair()
      closing.push(close)
      const trunk = trunkOn(descriptor, false)
      const [here, leaving, left] = [1, 2, 3].map(lane => new Guest(trunk, lane))
      leaving?.leave()
      peer.write(Buffer.concat([laneFrame(1, 'one'), laneFrame(3)]))
      await eventually(() => {
        trunk.changed(false)
        return left?.log.length === 2
      }, 'the frames')
      return { peer, trunk, descriptor, here, leaving, left }
    }

    for (const how of ['closes', 'resets'] as const)
      test(`because the far end ${how}: every lane ends, with what is missing told`, async () => {
        const { peer, trunk, here, leaving, left } = await onPeer()
        if (how === 'closes') peer.end()
        else reset(peer)
        await eventually(() => {
          trunk.changed(false)
          return trunk.isBroken
        }, 'the end')
        expect(here?.log).toEqual(['one'])
        trunk.close()
        expect(here?.log).toEqual(['one', '«peer left»', '«torn»'])
        expect(leaving?.log).toEqual(['«torn»'])
        // It had ended on both sides.
        expect(left?.log).toEqual(['«peer left»', '«done»'])
        expect(trunk.endpoints.size).toBe(0)
        trunk.close()
        expect(here?.log.length).toBe(3)
      })

    test('finds that out also when it sends', async () => {
      const { peer, trunk, descriptor, here } = await onPeer()
      reset(peer)
      await eventually(() => !testKernel().isConnected(descriptor), 'the reset')
      here?.say('x')
      trunk.flush()
      expect(trunk.isBroken).toBe(true)
    })

    test('half a frame and the end: nobody gets it', async () => {
      const { peer, trunk, here } = await onPeer()
      peer.end(laneFrame(1, 'half').subarray(0, 10))
      await eventually(() => {
        trunk.changed(false)
        return trunk.isBroken
      }, 'the end')
      expect(here?.log).toEqual(['one'])
    })

    test('a last frame and the end, with one change for both: it is gone', async () => {
      const { peer, trunk, descriptor, here } = await onPeer()
      peer.end(laneFrame(1, 'two'))
      await eventually(() => arrived(descriptor) === 'the last', 'frame and end')
      trunk.changed(true)
      expect(here?.log).toEqual(['one', 'two'])
      expect(trunk.isBroken).toBe(true)
    })

    test('closed from here, nothing more is sent or read', async () => {
      const { peer, trunk, descriptor, here } = await onPeer()
      let atPeer = ''
      peer.on('data', (bytes: Buffer) => (atPeer += bytes.toString('latin1')))
      here?.say('x')
      trunk.close()
      trunk.flush()
      testKernel().send(descriptor, roomOf(Buffer.from('behind')), 6)
      await eventually(() => atPeer.endsWith('behind'), 'what is sent otherwise')
      expect(atPeer).toBe('behind')
      peer.write(laneFrame(1, 'two'))
      await eventually(() => arrived(descriptor) === 'bytes', 'a frame')
      trunk.changed(false)
      expect(arrived(descriptor)).toBe('bytes')
      expect(here?.log).toEqual(['one', '«peer left»', '«torn»'])
    })
  })

  test(
    'bytes that mean nothing: it breaks or waits, and keeps no more than it may',
    async () => {
      const ends = { broken: 0, waiting: 0 }
      for (let seed = 1; seed <= 60 * FUZZ; seed++) {
        const random = new Random(seed)
        const { near, far, close } = await joined()
        const trunk = trunkOn(near, random.chance(0.7))
        const guests = Array.from({ length: 1 + random.below(4) }, (_, lane) => new Guest(trunk, lane))
        const wildness = random.pick([0, 0.001, 0.01, 0.1, 1])
        const tell = teller(far, near, trunk)
        let [frameCount, saidBytes] = [0, 0]
        for (let count = 0; count < 30 && !trunk.isBroken; count++) {
          const frames = garbage(random, guests.length, wildness)
          const bytes = Buffer.concat(frames)
          frameCount += frames.length
          saidBytes += bytes.length
          tell(...random.slices(bytes, 100_000))
          const heardBytes = guests.flatMap(({ log }) => log).join('').length
          // What is early, and a frame that is not whole.
          const mostBytes = 1_024 * KB + 64 * KB + 8
          if (!trunk.isBroken) expect(saidBytes - 8 * frameCount - heardBytes).toBeLessThanOrEqual(mostBytes)
        }
        ends[trunk.isBroken ? 'broken' : 'waiting']++
        trunk.close()
        expect(trunk.endpoints.size).toBe(0)
        close()
      }
      // Both are tried.
      expect(Math.min(ends.broken, ends.waiting)).toBeGreaterThan(5 * FUZZ)
    },
    60_000 * FUZZ,
  )

  test(
    'two ends with lanes that do anything: every byte arrives once, in order, at its lane',
    async () => {
      let waits = 0
      for (let seed = 1; seed <= 30 * FUZZ; seed++) waits += await runModel(seed)
      // They were stuck now and then.
      expect(waits).toBeGreaterThan(10 * FUZZ)
    },
    60_000 * FUZZ,
  )

  /** Returns how often a lane had to wait. */
  async function runModel(seed: number): Promise<number> {
    const random = new Random(seed)
    const { near, far, close } = await joined()
    // One room, as in a thread.
    const inRoom = testKernel().room(IN_BYTES)
    const server = new ModelEnd(new Trunk(testKernel(), near, inRoom, false), near)
    const client = new ModelEnd(new Trunk(testKernel(), far, inRoom, true), far)
    const ends = [server, client]
    const largest = random.pick([3_000, MAX_LANE_FRAME_BYTES])
    /** How often each end looks at what came. */
    const diligence = ends.map(() => random.pick([0.001, 0.05, 1]))
    /** Of lanes that the client has not heard of. */
    const coming: number[] = []
    for (let step = 0; step < 1_500; step++) {
      const which = random.below(2)
      const end = ends[which]!
      const action = random.below(20)
      const lane = end.pick(random)
      if (action === 0 && server.lanes.length < MODEL_LANES) coming.push(server.begin(server.lanes.length))
      else if (action < 3 && coming.length > 0) {
        client.begin(coming.splice(random.below(coming.length), 1)[0]!)
      } else if (action === 3 && random.chance(0.2)) lane?.leave()
      else if (action < 12 && lane !== undefined) {
        if (!coming.includes(lane.lane)) lane.say(1 + random.below(largest))
        // A request, and no more before there is an answer.
        else if (lane.sentBytes === 0) lane.say(1 + random.below(16_384))
      } else end.turn(random.chance(diligence[which]!))
    }
    for (const lane of coming) client.begin(lane)
    for (const { lanes } of ends) for (const lane of lanes) lane.leave()
    await eventually(() => {
      for (const end of ends) end.turn()
      return ends.every(({ trunk }) => trunk.endpoints.size === 0 || trunk.isBroken)
    }, `the end of all lanes of seed ${seed}`)
    for (const lane of server.lanes) {
      const other = client.lanes.find(one => one.lane === lane.lane)!
      const fates = [lane, other].map(({ receivedBytes, isRight, log }) => ({ receivedBytes, isRight, log }))
      expect([seed, lane.lane, ...fates]).toEqual([
        seed,
        lane.lane,
        { receivedBytes: other.sentBytes, isRight: true, log: ['done'] },
        { receivedBytes: lane.sentBytes, isRight: true, log: ['done'] },
      ])
    }
    expect([server.trunk.isBroken, client.trunk.isBroken]).toEqual([false, false])
    expect(client.lanes.length).toBe(server.lanes.length)
    for (const end of ends) end.close()
    close()
    return ends.flatMap(({ lanes }) => lanes).reduce((sum, { waits }) => sum + waits, 0)
  }
})

const MODEL_LANES = 40

/** Says the pattern from a place of its own on, and compares what it hears with what the other side says there. */
class ModelLane extends LaneEndpoint {
  readonly #place: number
  sentBytes = 0
  receivedBytes = 0
  isRight = true
  waits = 0
  readonly log: string[] = []
  /** What there was no room for. */
  #waitingBytes = 0

  constructor(trunk: Trunk, lane: number) {
    super(trunk, lane)
    this.#place = lane * 24_001
  }

  say(count: number): void {
    if (this.#waitingBytes > 0) return
    // More than it takes in the end, as lanes reserve.
    let at = this.trunk.reserve(this, count + 10)
    if (at === -1) {
      this.waits++
      this.#waitingBytes = count
      return
    }
    const start = at
    for (const piece of pieces(this.#place + this.sentBytes, count)) {
      this.trunk.out.bytes.set(piece, at)
      at += piece.length
    }
    this.trunk.commit(this.lane, at - start)
    this.sentBytes += count
  }

  received(room: Room, start: number, end: number): void {
    let at = start
    for (const piece of pieces(this.#place + this.receivedBytes, end - start)) {
      this.isRight &&= Buffer.compare(piece, room.bytes.subarray(at, at + piece.length)) === 0
      at += piece.length
    }
    this.isRight &&= this.log.length === 0
    this.receivedBytes += end - start
  }

  roomAgain(): void {
    const count = this.#waitingBytes
    this.#waitingBytes = 0
    if (count > 0) this.say(count)
  }

  protected peerIsLeaving(): void {
    this.leave()
  }

  protected done(isTorn: boolean): void {
    this.log.push(isTorn ? 'torn' : 'done')
  }
}

function pieces(from: number, count: number): Uint8Array[] {
  const found: Uint8Array[] = []
  for (let at = 0; at < count; at += found.at(-1)!.length) found.push(patternAt(from + at, count - at))
  return found
}

/** One end, with its turns as in the thread: it looks only at what changed. */
class ModelEnd {
  readonly trunk: Trunk
  readonly lanes: ModelLane[] = []
  readonly #watch: Watch

  constructor(trunk: Trunk, descriptor: number) {
    this.trunk = trunk
    this.#watch = new Watch(descriptor)
  }

  begin(number: number): number {
    const lane = new ModelLane(this.trunk, number)
    this.lanes.push(lane)
    this.trunk.begin(lane)
    return number
  }

  pick(random: Random): ModelLane | undefined {
    const here = this.lanes.filter(({ hasLeft }) => !hasLeft)
    return here.length === 0 ? undefined : random.pick(here)
  }

  turn(looks = true): void {
    if (looks && this.#watch.changed()) this.trunk.changed(false)
    this.trunk.flush()
  }

  close(): void {
    this.#watch.close()
  }
}

const halves = (bytes: Uint8Array, cut: number) => [bytes.subarray(0, cut), bytes.subarray(cut)]

/** Frames of lanes that are here, and in their midst whatever else. */
function garbage(random: Random, lanes: number, wildness: number): Uint8Array[] {
  return Array.from({ length: 1 + random.below(60) }, () => {
    const size = 1 + random.below(random.chance(0.05) ? MAX_LANE_FRAME_BYTES : 50)
    // So many lanes that nobody has heard of.
    if (wildness === 1) return laneFrame(random.bits(), random.bytes(random.below(MAX_LANE_FRAME_BYTES)))
    if (!random.chance(wildness)) return laneFrame(random.below(lanes), random.bytes(size))
    return random.pick([
      () => random.bytes(1 + random.below(100)),
      () => laneFrame(random.below(lanes)),
      () => laneFrame(random.below(2_000), random.bytes(size)),
      () => laneFrame(random.bits(), random.bytes(size)),
    ])()
  })
}
