// Two sessions joined by a link in memory, or one session against frames written by hand.

import { expect } from 'bun:test'
import { copyOf } from '../../src/bytes.ts'
import type { ErrorCode } from '../../src/errors.ts'
import type { StreamHandler } from '../../src/session/byte-stream.ts'
import type { SessionHandler, SessionOptions } from '../../src/session/contract.ts'
import { Session } from '../../src/session/session.ts'
import type { Stream } from '../../src/session/stream.ts'
import { Clock } from './clock.ts'
import { concat, Link, type LinkOptions } from './link.ts'
import { type NaiveFrame, naiveDecode } from './naive.ts'
import { Random } from './random.ts'

/** Writes down what happens on a stream and fails when something happens after its end. */
export class StreamLog implements StreamHandler {
  stream: Stream | undefined
  readonly pieces: Uint8Array[] = []
  receivedBytes = 0
  writables = 0
  deliveredAtEnd: number | undefined
  resetWith: ErrorCode | undefined
  deliveredAtReset: number | undefined
  /** Whether received bytes count as consumed at once. */
  isReading = true
  /** Called on every event, for tests that do something in the middle. */
  onEvent: (event: 'received' | 'writable' | 'ended' | 'reset') => void = () => {}

  received(array: Uint8Array, start: number, end: number): void {
    const bytes = copyOf(array, start, end)
    expect(this.deliveredAtEnd).toBeUndefined()
    expect(this.resetWith).toBeUndefined()
    expect(bytes.length).toBeGreaterThan(0)
    this.pieces.push(bytes)
    this.receivedBytes += bytes.length
    if (this.isReading) this.stream?.consumed(bytes.length)
    this.onEvent('received')
  }

  writable(): void {
    expect(this.resetWith).toBeUndefined()
    this.writables++
    this.onEvent('writable')
  }

  ended(delivered: number): void {
    expect(this.deliveredAtEnd).toBeUndefined()
    expect(this.resetWith).toBeUndefined()
    this.deliveredAtEnd = delivered
    this.onEvent('ended')
  }

  reset(code: ErrorCode, delivered: number): void {
    expect(this.resetWith).toBeUndefined()
    this.resetWith = code
    this.deliveredAtReset = delivered
    this.onEvent('reset')
  }

  get bytes(): Uint8Array {
    return concat(this.pieces)
  }
}

/** Writes down what happens to a session. */
export class SessionLog implements SessionHandler {
  readonly streams: StreamLog[] = []
  readonly messages: string[] = []
  readonly leavings: ErrorCode[] = []
  readonly closes: { code: ErrorCode; error: Error | undefined }[] = []
  /** Decides about a stream that is being opened. */
  onOpened: (log: StreamLog, stream: Stream) => StreamHandler | ErrorCode = log => log
  onControl: () => void = () => {}
  onLeaving: () => void = () => {}

  opened(stream: Stream): StreamHandler | ErrorCode {
    const log = new StreamLog()
    log.stream = stream
    this.streams.push(log)
    return this.onOpened(log, stream)
  }

  control(json: Uint8Array): void {
    this.messages.push(new TextDecoder().decode(json))
    this.onControl()
  }

  leaving(code: ErrorCode): void {
    this.leavings.push(code)
    this.onLeaving()
  }

  closed(code: ErrorCode, error?: Error): void {
    this.closes.push({ code, error })
  }
}

const OPTIONS: Omit<SessionOptions, 'role' | 'scheduler'> = {
  maxStreams: 64,
  maxStreamWindowBytes: 4_194_304,
  maxSessionWindowBytes: 67_108_864,
  maxCarrierBacklogBytes: 4_194_304,
  pingIntervalMs: 10_000,
  deadAfterMs: 25_000,
}

/** A server session and a client session on a link. */
export class Pair {
  readonly clock: Clock
  readonly link: Link
  readonly serverLog: SessionLog = new SessionLog()
  readonly clientLog: SessionLog = new SessionLog()
  readonly server: Session
  readonly client: Session
  /** Handlers of the streams that the server opened, by stream id. */
  readonly opened: StreamLog[] = []

  constructor(link: Partial<LinkOptions> = {}, options: Partial<SessionOptions> = {}) {
    this.clock = link.timed?.clock ?? new Clock()
    this.link = new Link({ random: new Random(1), ...link })
    const scheduler = this.clock
    this.server = new Session(this.link.server, this.serverLog, {
      ...OPTIONS,
      ...options,
      role: 'server',
      scheduler,
    })
    this.link.server.handler = this.server.carrierHandler
    this.client = new Session(this.link.client, this.clientLog, {
      ...OPTIONS,
      ...options,
      role: 'client',
      scheduler,
    })
    this.link.client.handler = this.client.carrierHandler
  }

  open(tunnel = 7): StreamLog {
    const log = new StreamLog()
    // A session has no others.
    log.stream = this.server.open(tunnel, log) as Stream | undefined
    if (log.stream === undefined) throw new Error('the session opens no stream')
    this.opened.push(log)
    return log
  }

  /** Opens a stream and lets it arrive: both ends of it. */
  join(tunnel = 7): { near: StreamLog; far: StreamLog } {
    const near = this.open(tunnel)
    this.settle()
    const far = this.clientLog.streams.at(-1)
    if (far === undefined) throw new Error('the stream did not arrive')
    return { near, far }
  }

  /** One tick, and one delivery of what is on the wire. */
  step(): void {
    this.clock.tick()
    this.link.deliver()
  }

  /** Steps until nothing moves any more. */
  settle(): void {
    for (let steps = 0; this.clock.hasSoon || !this.link.isQuiet; steps++) {
      if (steps > 100_000) throw new Error('it never settles')
      this.step()
    }
  }

  /** Nothing may be left of two sessions that are over. */
  expectNothingLeft(): void {
    expect(this.server.isClosed && this.client.isClosed).toBe(true)
    expect(this.server.streamCount + this.client.streamCount).toBe(0)
    expect(this.serverLog.closes.length).toBe(1)
    expect(this.clientLog.closes.length).toBe(1)
    while (this.clock.hasSoon) this.clock.tick()
    expect(this.clock.timerCount).toBe(0)
  }
}

/** One session whose other end is the test: it says frames and reads what the session answers. */
export class Loner {
  readonly clock: Clock = new Clock()
  readonly log: SessionLog = new SessionLog()
  readonly session: Session
  /** Everything the session sent, all batches in one. */
  readonly sent: Uint8Array[] = []
  readonly opened: StreamLog[] = []
  /** The carrier takes nothing any more. */
  isStuck = false
  isClosedInOrder = false
  isTerminated = false
  writes = 0

  constructor(role: 'server' | 'client', options: Partial<SessionOptions> = {}) {
    const carrier = {
      headroom: 0,
      send: (batch: Uint8Array, start: number, end: number) => {
        this.writes++
        this.sent.push(batch.slice(start, end))
        return !this.isStuck
      },
      close: () => {
        this.isClosedInOrder = true
      },
      terminate: () => {
        this.isTerminated = true
      },
    }
    this.session = new Session(carrier, this.log, { ...OPTIONS, ...options, role, scheduler: this.clock })
  }

  /** Frames arrive, in one read. */
  hear(...frames: readonly Uint8Array[]): void {
    const bytes = concat(frames)
    this.session.carrierHandler.received(bytes, 0, bytes.length)
    this.clock.tick()
  }

  /** Opens a stream of a server session. */
  open(): StreamLog {
    const log = new StreamLog()
    log.stream = this.session.open(7, log) as Stream | undefined // likewise
    if (log.stream === undefined) throw new Error('the session opens no stream')
    this.opened.push(log)
    return log
  }

  /** The frames sent so far, except the first PING. */
  get frames(): NaiveFrame[] {
    const { frames, rest } = naiveDecode(concat(this.sent))
    expect(rest).toBe(0)
    return frames.filter(({ type }) => type !== 'PING')
  }

  /** The session ended with this code, once, and told the other side. */
  expectEnd(code: ErrorCode): void {
    expect(this.log.closes.map(close => close.code)).toEqual([code])
    expect(this.session.streamCount).toBe(0)
    expect(this.clock.timerCount).toBe(0)
    for (const log of [...this.opened, ...this.log.streams]) {
      if (log.stream?.isClosed !== true) throw new Error('a stream outlived its session')
    }
  }
}
