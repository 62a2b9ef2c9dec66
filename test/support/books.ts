// The man in the middle: decodes what both ends put on a link and keeps books, so that no rule of the wire is broken
// unseen, whatever the sessions believe about themselves.

import type { LinkObserver } from './link.ts'
import { type NaiveFrame, naiveNumber, TYPES } from './naive.ts'

const INITIAL_CREDIT = 262_144

type SeenFrame = NaiveFrame & { readonly length: number; readonly isFirst: boolean }

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
  /** The link that carries the rest, and whether UNLINK was put on the wire. */
  link: number | undefined
  hasLeft: boolean
}

/** Frames out of a byte stream, slice by slice; DATA in the pieces that it comes in, of which only the size counts. */
class Reader {
  #pending: number[] = []
  #data = { stream: 0, left: 0 }

  read(bytes: Uint8Array): SeenFrame[] {
    const frames: SeenFrame[] = []
    let at = 0
    while (at < bytes.length) {
      if (this.#data.left > 0) {
        const length = Math.min(this.#data.left, bytes.length - at)
        this.#data.left -= length
        frames.push({ type: 'DATA', stream: this.#data.stream, payload: [], length, isFirst: false })
        at += length
        continue
      }
      this.#pending.push(bytes[at++] ?? 0)
      if (this.#pending.length < 8) continue
      const length = naiveNumber(this.#pending.slice(0, 3))
      const type = TYPES[this.#pending[3] ?? -1] ?? 'unknown'
      const stream = naiveNumber(this.#pending.slice(4, 8))
      if (type === 'DATA') {
        this.#data = { stream, left: length }
        frames.push({ type, stream, payload: [], length: 0, isFirst: true })
        this.#pending = []
      } else if (this.#pending.length === 8 + length) {
        frames.push({ type, stream, payload: this.#pending.slice(8), length, isFirst: true })
        this.#pending = []
      }
      if (length > 65_536) throw new Error(`${type} ${stream}: frame over the limit`)
    }
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
  /** Halves of links in use, as `server 3`: from LINK on its way until LINK_FREE arrived. */
  readonly #taken = new Map<string, number>()
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
      link: undefined,
      hasLeft: false,
    }
    this.#accounts[side].set(stream, fresh)
    return fresh
  }

  #sentFrame(side: 'server' | 'client', { type, stream, length, payload, isFirst }: SeenFrame): void {
    const where = `${side} ${type} ${stream}`
    if (isFirst) this.log.push(where)
    const check = (holds: boolean, rule: string) => {
      if (!holds) throw new Error(`${where}: ${rule}`)
    }
    check(type !== 'unknown', 'unknown type')
    if (type === 'LINK_FREE') {
      const sender = this.#taken.get(`${other(side)} ${naiveNumber(payload)}`)
      const { hasLeft } = this.account(other(side), sender ?? 0)
      return check(hasLeft, 'LINK_FREE without UNLINK')
    }
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
        check(mine.link === undefined, 'DATA after LINK')
        mine.sent += length
        return check(mine.sent <= mine.credit, `${mine.sent} bytes sent with credit for ${mine.credit}`)
      case 'END':
        check(!mine.hasEnded, 'END twice')
        check(mine.link === undefined || mine.hasLeft, 'END before UNLINK')
        mine.hasEnded = true
        theirs.deliveredAtEnd = naiveNumber(payload)
        return check(
          theirs.deliveredAtEnd <= theirs.arrived || theirs.link !== undefined,
          'more delivered than arrived',
        )
      case 'RESET':
        mine.hasReset = true
        theirs.deliveredAtEnd = naiveNumber(payload.slice(2))
        return check(
          theirs.deliveredAtEnd <= theirs.arrived || theirs.link !== undefined,
          'more delivered than arrived',
        )
      case 'LINK': {
        const half = `${side} ${naiveNumber(payload.slice(0, 4))}`
        check(mine.link === undefined && !mine.hasEnded, 'LINK twice, or after END')
        check(!this.#taken.has(half), 'a half of a link that another stream has')
        mine.link = naiveNumber(payload.slice(0, 4))
        this.#taken.set(half, stream)
        return
      }
      case 'UNLINK':
        check(mine.link === naiveNumber(payload.slice(0, 4)) && !mine.hasLeft, 'UNLINK without LINK')
        mine.hasLeft = true
        return
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
    if (type === 'LINK_FREE') this.#taken.delete(`${at} ${naiveNumber(payload)}`)
    if (type === 'DATA') this.account(other(at), stream).arrived += length
    if (type === 'CREDIT') this.account(at, stream).credit += naiveNumber(payload)
  }
}

const other = (side: 'server' | 'client') => (side === 'server' ? 'client' : 'server')
const sideOf = (name: string) => (name === 'server' ? 'server' : 'client')
