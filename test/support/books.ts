// The man in the middle: decodes what both ends put on a link and keeps books, so that no rule of the wire is broken
// unseen, whatever the sessions believe about themselves.

import type { LinkObserver } from './link.ts'
import { type NaiveFrame, naiveNumber, TYPES } from './naive.ts'

const INITIAL_CREDIT = 262_144

type SeenFrame = NaiveFrame & { readonly length: number }

interface Account {
  /** DATA bytes put on the wire. */
  sent: number
  /** Credit that arrived, the first included. */
  credit: number
  /** DATA bytes that arrived at the other end, and credit that the other end put on the wire for them. */
  arrived: number
  given: number
  hasEnded: boolean
  hasReset: boolean
  /** What the other end said was delivered, in its END and in its RESET. */
  deliveredAtEnd: number | undefined
}

/** Frames out of a byte stream, slice by slice. Slow and plain. */
class Reader {
  #pending = new Uint8Array(0)

  read(bytes: Uint8Array): SeenFrame[] {
    const all = new Uint8Array(this.#pending.length + bytes.length)
    all.set(this.#pending)
    all.set(bytes, this.#pending.length)
    const frames: SeenFrame[] = []
    let at = 0
    for (;;) {
      if (all.length - at < 8) break
      const length = naiveNumber([...all.subarray(at, at + 3)])
      if (all.length - at < 8 + length) break
      const type = TYPES[all[at + 3] ?? -1] ?? 'unknown'
      const stream = naiveNumber([...all.subarray(at + 4, at + 8)])
      const payload = all.subarray(at + 8, at + 8 + length)
      // Of DATA only the length matters here.
      frames.push({
        type,
        stream,
        length,
        payload: type === 'DATA' ? [] : Array.from(payload),
      })
      at += 8 + length
    }
    this.#pending = all.slice(at)
    return frames
  }
}

export class Books implements LinkObserver {
  /** Everything put on the wire, in order, as `server OPEN 1`. */
  readonly log: string[] = []
  readonly #limits: { readonly stream: number; readonly session: number }
  readonly #accounts = { server: new Map<number, Account>(), client: new Map<number, Account>() }
  readonly #sentReaders = { server: new Reader(), client: new Reader() }
  readonly #arrivedReaders = { server: new Reader(), client: new Reader() }
  #highestOpened = 0
  /** Largest window seen on any stream, and the largest growth of all together, bytes. */
  largestWindow = 0
  largestGrowth = 0

  constructor(
    limits: { readonly stream: number; readonly session: number } = {
      stream: Number.POSITIVE_INFINITY,
      session: Number.POSITIVE_INFINITY,
    },
  ) {
    this.#limits = limits
  }

  sent(from: string, bytes: Uint8Array): void {
    const side = sideOf(from)
    for (const frame of this.#sentReaders[side].read(bytes)) this.#sentFrame(side, frame)
  }

  arrived(at: string, bytes: Uint8Array): void {
    const side = sideOf(at)
    for (const frame of this.#arrivedReaders[side].read(bytes)) this.#arrivedFrame(side, frame)
  }

  /** The books of what `side` sends on a stream. */
  account(side: 'server' | 'client', stream: number): Account {
    const known = this.#accounts[side].get(stream)
    if (known !== undefined) return known
    const fresh: Account = {
      sent: 0,
      credit: INITIAL_CREDIT,
      arrived: 0,
      given: INITIAL_CREDIT,
      hasEnded: false,
      hasReset: false,
      deliveredAtEnd: undefined,
    }
    this.#accounts[side].set(stream, fresh)
    return fresh
  }

  #sentFrame(side: 'server' | 'client', { type, stream, length, payload }: SeenFrame): void {
    const where = `${side} ${type} ${stream}`
    this.log.push(where)
    const check = (holds: boolean, rule: string) => {
      if (!holds) throw new Error(`${where}: ${rule}`)
    }
    check(length <= 65_536, 'frame over the limit')
    check(type !== 'unknown', 'unknown type')
    if (stream === 0)
      return check(['PING', 'PONG', 'CONTROL', 'GOAWAY'].includes(type), 'not a session frame')
    const mine = this.account(side, stream)
    const theirs = this.account(other(side), stream)
    check(!mine.hasReset, 'a frame after RESET')
    check(type === 'OPEN' || stream <= this.#highestOpened, 'a stream that was not opened')
    switch (type) {
      case 'OPEN':
        check(side === 'server', 'only the server opens')
        check(stream === this.#highestOpened + 1, 'ids count up')
        this.#highestOpened = stream
        return
      case 'DATA':
        check(!mine.hasEnded, 'DATA after END')
        mine.sent += length
        return check(mine.sent <= mine.credit, `${mine.sent} bytes sent with credit for ${mine.credit}`)
      case 'END':
        check(!mine.hasEnded, 'END twice')
        mine.hasEnded = true
        theirs.deliveredAtEnd = naiveNumber(payload)
        return check(theirs.deliveredAtEnd <= theirs.arrived, 'more delivered than arrived')
      case 'RESET':
        mine.hasReset = true
        theirs.deliveredAtEnd = naiveNumber(payload.slice(2))
        return check(theirs.deliveredAtEnd <= theirs.arrived, 'more delivered than arrived')
      case 'CREDIT':
        theirs.given += naiveNumber(payload)
        return this.#checkWindows(side, check)
    }
  }

  /** What a side lets the other one send ahead is memory it promises: on each stream, and in all. */
  #checkWindows(side: 'server' | 'client', check: (holds: boolean, rule: string) => void): void {
    let growth = 0
    for (const [id, account] of this.#accounts[other(side)]) {
      if (account.hasEnded || account.hasReset || this.account(side, id).hasReset) continue
      const window = account.given - account.arrived
      this.largestWindow = Math.max(this.largestWindow, window)
      check(window <= Math.max(this.#limits.stream, INITIAL_CREDIT), `a window of ${window}`)
      growth += Math.max(0, window - INITIAL_CREDIT)
    }
    this.largestGrowth = Math.max(this.largestGrowth, growth)
    check(growth <= this.#limits.session, `windows grown by ${growth}`)
  }

  #arrivedFrame(at: 'server' | 'client', { type, stream, length, payload }: SeenFrame): void {
    if (type === 'DATA') this.account(other(at), stream).arrived += length
    if (type === 'CREDIT') this.account(at, stream).credit += naiveNumber(payload)
  }
}

const other = (side: 'server' | 'client') => (side === 'server' ? 'client' : 'server')
const sideOf = (name: string) => (name === 'server' ? 'server' : 'client')
