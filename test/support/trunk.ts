// What lanes and trunks need without their thread: connections by descriptor, far ends that know frames, and who listens.

import { createServer, type Socket as PeerSocket } from 'node:net'
import type { Socket as BunSocket } from 'bun'
import { Changes, EPOLLIN, EPOLLOUT, EPOLLRDHUP, Kernel, type Room } from '../../src/accelerator/kernel.ts'
import type { LaneEvents, LaneOver } from '../../src/accelerator/lane.ts'
import type { ServedLine } from '../../src/accelerator/line-room.ts'
import { LaneEndpoint, MAX_LANE_FRAME_BYTES, type Trunk } from '../../src/accelerator/trunk.ts'
import type { LaneExchange, LaneLog } from '../../src/accelerator.ts'
import { descriptorOf } from '../../src/sockets/descriptor.ts'
import { eventually } from './events.ts'

let shared: Kernel | undefined

/** Not before a test asks: elsewhere than on Linux there is none. */
export function testKernel(): Kernel {
  shared ??= new Kernel()
  return shared
}

// ── Connections ──────────────────────────────────────────────────────────────────────────────────────────────────

export interface Pair {
  /** A copy, as a thread has one: it stays what it is when the runtime closes its own. */
  readonly descriptor: number
  readonly peer: PeerSocket
  close(this: void): void
}

/** A connection: one end for a lane, by its descriptor, which nobody else reads; the other in the test's hands. */
export async function pair(): Promise<Pair> {
  const accepted = Promise.withResolvers<PeerSocket>()
  const server = createServer({ noDelay: true, allowHalfOpen: true }, accepted.resolve).listen(0, '127.0.0.1')
  await new Promise(resolve => server.once('listening', resolve))
  const address = server.address()
  const port = typeof address === 'object' && address !== null ? address.port : 0
  const held = await Bun.connect({ hostname: '127.0.0.1', port, socket: UNREAD })
  const peer = await accepted.promise
  peer.on('error', () => {}) // looked at by the test, if it cares
  const descriptor = copied(held)
  return {
    descriptor,
    peer,
    close() {
      testKernel().close(descriptor)
      held.terminate()
      peer.destroy()
      server.close()
    },
  }
}

export interface Joined {
  readonly near: number
  readonly far: number
  close(this: void): void
}

/** A connection of which nobody reads either end. */
export async function joined(): Promise<Joined> {
  const accepted = Promise.withResolvers<BunSocket<undefined>>()
  const server = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      ...UNREAD,
      open(socket) {
        socket.pause()
        accepted.resolve(socket)
      },
    },
  })
  const held = await Bun.connect({ hostname: '127.0.0.1', port: server.port, socket: UNREAD })
  const other = await accepted.promise
  const [near, far] = [copied(held), copied(other)]
  return {
    near,
    far,
    close() {
      for (const one of [near, far]) testKernel().close(one)
      held.terminate()
      other.terminate()
      server.stop(true)
    },
  }
}

const UNREAD = {
  open(socket: BunSocket<undefined>) {
    socket.pause()
  },
  data() {},
}

function copied(socket: BunSocket<undefined>): number {
  socket.setNoDelay(true)
  const [copy] = testKernel().duplicates([descriptorOf(socket) ?? -1]) ?? []
  if (copy === undefined) throw new Error('no descriptor')
  return copy
}

/** Changes of one connection, told as the thread hears of them: each once. */
export class Watch {
  readonly #poll = testKernel().poll()
  readonly #changes = new Changes(1)

  constructor(descriptor: number) {
    testKernel().watch(this.#poll, descriptor, EPOLLIN | EPOLLOUT | EPOLLRDHUP, 0)
  }

  /** Whether there was a change since it was asked last; waits for one. */
  changed(waitMs = 0): boolean {
    return testKernel().wait(this.#poll, this.#changes, waitMs) > 0
  }

  close(): void {
    testKernel().close(this.#poll)
  }
}

/** What the kernel has of the connection for whoever reads it. */
export function arrived(descriptor: number): 'nothing' | 'bytes' | 'the last' {
  const kernel = testKernel()
  const poll = kernel.poll()
  const changes = new Changes(1)
  kernel.watch(poll, descriptor, EPOLLIN | EPOLLRDHUP, 0)
  const count = kernel.wait(poll, changes, 0)
  kernel.close(poll)
  return count === 0 ? 'nothing' : changes.isLast(0) ? 'the last' : 'bytes'
}

/** All that the kernel has. */
export function readAll(descriptor: number): Buffer {
  const room = testKernel().room(1_048_576)
  const pieces: Buffer[] = []
  for (;;) {
    const count = testKernel().receive(descriptor, room)
    if (count <= 0) return Buffer.concat(pieces)
    pieces.push(Buffer.from(room.bytes.slice(0, count)))
  }
}

export function roomOf(bytes: Uint8Array): Room {
  const room = testKernel().room(bytes.length)
  room.bytes.set(bytes)
  return room
}

// ── Frames ───────────────────────────────────────────────────────────────────────────────────────────────────────

/** Byte by byte from the drawing in `trunk.ts`. Without bytes: the last word. */
export function laneFrame(lane: number, content: string | Uint8Array = ''): Buffer {
  const bytes = typeof content === 'string' ? Buffer.from(content, 'latin1') : content
  const head = Buffer.alloc(8)
  head.writeUInt32BE(lane, 0)
  head.writeUInt32BE(bytes.length, 4)
  return Buffer.concat([head, bytes])
}

/** Reads frames naively. */
export class FrameReader {
  #bytes = Buffer.alloc(0)
  readonly frames: { lane: number; bytes: Buffer }[] = []

  read(bytes: Uint8Array): void {
    this.#bytes = Buffer.concat([this.#bytes, bytes])
    while (this.#bytes.length >= 8) {
      const end = 8 + this.#bytes.readUInt32BE(4)
      if (this.#bytes.length < end) break
      this.frames.push({ lane: this.#bytes.readUInt32BE(0), bytes: this.#bytes.subarray(8, end) })
      this.#bytes = this.#bytes.subarray(end)
    }
  }

  /** What was said for a lane, with `|` in front of each frame. */
  of(lane: number): string {
    const ofLane = this.frames.filter(frame => frame.lane === lane)
    return ofLane.map(({ bytes }) => `|${bytes.toString('latin1')}`).join('')
  }
}

/** The other end of a trunk. */
export class FarEnd extends FrameReader {
  readonly peer: PeerSocket

  constructor(peer: PeerSocket) {
    super()
    this.peer = peer
    peer.on('data', (bytes: Buffer) => this.read(bytes))
  }

  /** In one write. */
  say(lane: number, ...contents: string[]): void {
    this.peer.write(Buffer.concat(contents.map(content => laneFrame(lane, content))))
  }

  leave(lane: number): void {
    this.peer.write(laneFrame(lane))
  }
}

// ── Who listens ──────────────────────────────────────────────────────────────────────────────────────────────────

const latin1 = (bytes: Uint8Array) => Buffer.from(bytes).toString('latin1')

/** Waits as `eventually` does, with a turn of the thread before each look. */
export function turning(turn: () => void): (condition: () => boolean, what: string) => Promise<void> {
  return (condition, what) =>
    eventually(() => {
      turn()
      return condition()
    }, what)
}

/** As `turning`, of the trunk alone: nothing tells a lane of its own connection once more. */
export function turningAlone(trunk: Trunk): ReturnType<typeof turning> {
  return turning(() => {
    trunk.changed(false)
    trunk.flush()
  })
}

/** What a lane told. */
export class Heard implements LaneEvents {
  /** `over`, `more …`, `back` or `back torn`. */
  readonly log: string[] = []
  readonly exchanges: LaneExchange[] = []
  readonly lines: ServedLine[] = []
  end: LaneOver | undefined

  exchanged(_lane: LaneEndpoint, exchange: LaneExchange): void {
    this.exchanges.push(exchange)
  }

  logged(_lane: LaneEndpoint, _log: LaneLog, line: ServedLine): void {
    this.lines.push(line)
  }

  thrown(error: unknown): void {
    this.log.push(`thrown ${error instanceof Error ? error.message : String(error)}`)
  }

  over(_lane: LaneEndpoint, over: LaneOver): void {
    this.log.push('over')
    this.end = over
  }

  more(_lane: LaneEndpoint, bytes: Uint8Array<ArrayBuffer>): void {
    this.log.push(`more ${latin1(bytes)}`)
  }

  back(_lane: LaneEndpoint, isTorn: boolean): void {
    this.log.push(isTorn ? 'back torn' : 'back')
  }

  get isOver(): boolean {
    return this.end !== undefined
  }

  get isBack(): boolean {
    return this.log.at(-1)?.startsWith('back') === true
  }

  get moreText(): string {
    return this.log.flatMap(entry => (entry.startsWith('more ') ? [entry.slice(5)] : [])).join('')
  }

  /** The visitor's bytes that were handed back. */
  get request(): string | undefined {
    return this.end?.request && latin1(this.end.request)
  }

  get unsent(): string | undefined {
    return this.end?.unsent && latin1(this.end.unsent)
  }
}

/** A lane that does nothing by itself. */
export class Guest extends LaneEndpoint {
  /** What happened: bytes as they are, `«room»`, `«peer left»`, `«done»` or `«torn»`. */
  readonly log: string[] = []

  received(room: Room, start: number, end: number): void {
    this.log.push(latin1(room.bytes.subarray(start, end)))
  }

  roomAgain(): void {
    this.log.push('«room»')
  }

  protected peerIsLeaving(): void {
    this.log.push('«peer left»')
    // As every lane does.
    this.leave()
  }

  protected done(isTorn: boolean): void {
    this.log.push(isTorn ? '«torn»' : '«done»')
  }

  /** `false`: not now. */
  say(content: string | Uint8Array): boolean {
    const bytes = typeof content === 'string' ? Buffer.from(content, 'latin1') : content
    const at = this.trunk.reserve(this, bytes.length)
    if (at === -1) return false
    this.trunk.out.bytes.set(bytes, at)
    this.trunk.commit(this.lane, bytes.length)
    return true
  }
}

/** What no kernel holds for a connection. */
const TOO_MUCH_BYTES = 256 * 1_048_576

/** Says so much on the trunk, whose far end does not read, that it takes no frame any more. */
export function fill(trunk: Trunk, lane: number): void {
  const guest = new Guest(trunk, lane)
  let saidBytes = 0
  for (const size of [MAX_LANE_FRAME_BYTES, 1]) {
    const bytes = new Uint8Array(size)
    while (guest.say(bytes)) {
      saidBytes += size
      if (saidBytes > TOO_MUCH_BYTES) throw new Error('the trunk is never full')
    }
  }
}
