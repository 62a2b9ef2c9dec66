// The system calls that move bytes between sockets in the kernel, and those with which a thread waits for them.

import type { FFIType, Pointer } from 'bun:ffi'
import { descriptorLimit } from '../descriptors.ts'
import { loadFfi, openLibc, UNPACE_SYMBOLS, unpace } from '../libc.ts'

/** The number of `FFIType.i64_fast`: values are numbers, and bigints only if they do not fit. */
const I64_FAST = 15 as FFIType.i64_fast // importing the type does not load the module

const SYMBOLS = {
  splice: { args: ['i32', 'ptr', 'i32', 'ptr', 'u64', 'u32'], returns: I64_FAST },
  pipe2: { args: ['ptr', 'i32'], returns: 'i32' },
  fcntl: { args: ['i32', 'i32', 'i32'], returns: 'i32' },
  close: { args: ['i32'], returns: 'i32' },
  read: { args: ['i32', 'ptr', 'u64'], returns: I64_FAST },
  write: { args: ['i32', 'ptr', 'u64'], returns: I64_FAST },
  recv: { args: ['i32', 'ptr', 'u64', 'i32'], returns: I64_FAST },
  send: { args: ['i32', 'ptr', 'u64', 'i32'], returns: I64_FAST },
  eventfd: { args: ['u32', 'i32'], returns: 'i32' },
  socketpair: { args: ['i32', 'i32', 'i32', 'ptr'], returns: 'i32' },
  ...UNPACE_SYMBOLS,
  getpeername: { args: ['i32', 'ptr', 'ptr'], returns: 'i32' },
  epoll_create1: { args: ['i32'], returns: 'i32' },
  epoll_ctl: { args: ['i32', 'i32', 'i32', 'ptr'], returns: 'i32' },
  epoll_wait: { args: ['i32', 'ptr', 'i32', 'i32'], returns: 'i32' },
  __errno_location: { args: [], returns: 'ptr' },
  getpriority: { args: ['i32', 'u32'], returns: 'i32' },
  setpriority: { args: ['i32', 'u32', 'i32'], returns: 'i32' },
} as const

// The value is the same on x64 and arm64.
const O_NONBLOCK = 0o4000
const O_CLOEXEC = 0o2000000
const F_GETFD = 1
const F_DUPFD_CLOEXEC = 1030
const F_SETPIPE_SZ = 1031
const F_GETPIPE_SZ = 1032
const SPLICE_F_MOVE = 1
const SPLICE_F_NONBLOCK = 2
const EPOLL_CTL_ADD = 1
const EPOLL_CTL_DEL = 2
export const EPOLLIN = 1
export const EPOLLOUT = 4
/** The event that the far side sends no more. */
export const EPOLLRDHUP = 0x2000
const EPOLLET = 0x8000_0000
const PRIO_PROCESS = 0
const LOWEST_PRIORITY = 19
const MSG_DONTWAIT = 0x40
const MSG_NOSIGNAL = 0x4000
const AF_UNIX = 1
const SOCK_STREAM = 1
const EINTR = 4
const EAGAIN = 11
/** The errors of scarcity, which may pass: ENOMEM, ENFILE, EMFILE, ENOBUFS. */
const SCARCITY: readonly number[] = [12, 23, 24, 105]
/** The errors that say nothing about a connection: EPERM, EBADF, ENOMEM, EACCES, EINVAL, ENOSYS, EOPNOTSUPP, ENOBUFS. */
const NOT_ITS_FAULT = [1, 9, 12, 13, 22, 38, 95, 105]

/** The number of descriptors that splices and lanes leave to the rest of the process. */
const SPARE_DESCRIPTORS = 8

/** The size of `struct epoll_event`, which is packed on x64 only. */
const EVENT_BYTES = process.arch === 'x64' ? 12 : 16
const EVENT_DATA_AT = EVENT_BYTES - 8

/** The result if nothing can move now. */
export const WOULD_BLOCK = -1
/** The result if a connection broke. The kernel reports an error once: the next read sees a clean end. */
export const FAILED = -2
/** The result if the kernel cannot move these bytes. It says nothing about the connections. */
export const IMPOSSIBLE = -3

const INTERRUPTED = -4

/** A piece of memory that the kernel reads and writes. */
export interface Room {
  readonly bytes: Uint8Array<ArrayBuffer>
  readonly at: Pointer
}

export interface Pipe {
  readonly readEnd: number
  readonly writeEnd: number
  readonly capacityBytes: number
}

/** The system calls of one thread, because `errno` belongs to a thread. */
export class Kernel {
  readonly #ffi = loadFfi()
  readonly #calls = openLibc(this.#ffi, SYMBOLS)
  readonly #errno = this.#calls.__errno_location()
  /** The kernel gives the lowest free number, so a higher one means that fewer descriptors are left than should be spared. */
  readonly #lastNumber = (descriptorLimit() ?? Number.POSITIVE_INFINITY) - 1 - SPARE_DESCRIPTORS
  readonly #pair = new Int32Array(new ArrayBuffer(8))
  readonly #one = new BigUint64Array(new ArrayBuffer(8)).fill(1n)
  readonly #event = new DataView(new ArrayBuffer(EVENT_BYTES))
  /** The memory for an address, which is not read, and for its length, which the kernel sets to 16 or 28. */
  readonly #address = this.room(128)
  readonly #addressBytes = new Uint32Array(new ArrayBuffer(4)).fill(128)
  readonly #addressBytesAt = this.#ffi.ptr(this.#addressBytes)

  /**
   * Moves up to `count` bytes without waiting. Returns their number; 0 at the end of `from`; or `WOULD_BLOCK`,
   * `FAILED`, `IMPOSSIBLE`.
   */
  splice(from: number, to: number, count: number): number {
    const flags = SPLICE_F_MOVE | SPLICE_F_NONBLOCK
    for (;;) {
      const moved = Number(this.#calls.splice(from, null, to, null, count, flags))
      if (moved >= 0) return moved
      const errno = this.#errnoNow
      if (errno === EAGAIN) return WOULD_BLOCK
      if (errno !== EINTR) return NOT_ITS_FAULT.includes(errno) ? IMPOSSIBLE : FAILED
    }
  }

  room(byteCount: number): Room {
    // With a buffer of its own: the runtime moves a smaller array when its `buffer` is read later.
    const bytes = new Uint8Array(new ArrayBuffer(byteCount))
    return { bytes, at: this.#ffi.ptr(bytes) }
  }

  /**
   * Reads the available bytes, up to `most`, to position `at`. Returns their number; 0 at the end; or `WOULD_BLOCK`, `FAILED`.
   */
  receive(from: number, into: Room, most: number = into.bytes.length, at = 0): number {
    const address = addressOf(into, at, most)
    for (;;) {
      const outcome = this.#outcome(this.#calls.recv(from, address, most, MSG_DONTWAIT))
      if (outcome !== INTERRUPTED) return outcome
    }
  }

  /** Sends `count` bytes from `at` on. Returns how many were taken, or `WOULD_BLOCK`, `FAILED`. */
  send(to: number, room: Room, count: number, at = 0): number {
    const address = addressOf(room, at, count)
    for (;;) {
      const outcome = this.#outcome(this.#calls.send(to, address, count, MSG_DONTWAIT | MSG_NOSIGNAL))
      if (outcome !== INTERRUPTED) return outcome
    }
  }

  #outcome(returned: number | bigint): number {
    const count = Number(returned)
    if (count >= 0) return count
    const errno = this.#errnoNow
    // An interrupted call is repeated, because no further event would report the available bytes.
    return errno === EINTR ? INTERRUPTED : errno === EAGAIN ? WOULD_BLOCK : FAILED
  }

  get #errnoNow(): number {
    return this.#ffi.read.i32(this.#errno!)
  }

  /**
   * Makes a pipe for `capacityBytes`, or fewer if the system does not allow them. `undefined` if there are no
   * descriptors to spare.
   */
  pipe(capacityBytes: number): Pipe | undefined {
    const pipe = this.#pipe(capacityBytes)
    if (pipe === undefined || Math.max(pipe.readEnd, pipe.writeEnd) <= this.#lastNumber) return pipe
    this.closePipe(pipe)
    return undefined
  }

  #pipe(capacityBytes: number): Pipe | undefined {
    if (this.#calls.pipe2(this.#ffi.ptr(this.#pair), O_NONBLOCK | O_CLOEXEC) !== 0) return undefined
    const [readEnd = -1, writeEnd = -1] = this.#pair
    this.#calls.fcntl(writeEnd, F_SETPIPE_SZ, capacityBytes)
    return { readEnd, writeEnd, capacityBytes: this.#calls.fcntl(writeEnd, F_GETPIPE_SZ, 0) }
  }

  /**
   * Returns a duplicate descriptor of each connection, in the same order. The numbers cannot become other
   * connections'. `undefined` if not all could be made.
   */
  duplicates(descriptors: readonly number[]): number[] | undefined {
    const copies = descriptors.map(one => this.#calls.fcntl(one, F_DUPFD_CLOEXEC, 0))
    if (copies.every(one => one >= 0 && one <= this.#lastNumber)) return copies
    for (const one of copies) if (one >= 0) this.close(one)
    return undefined
  }

  /** Returns the numbers that the next descriptors get if no other thread opens any. `one` is any open descriptor. */
  nextNumbers(one: number, count: number): number[] {
    const numbers = Array.from({ length: count }, () => this.#calls.fcntl(one, F_DUPFD_CLOEXEC, 0))
    for (const number of numbers) if (number >= 0) this.close(number)
    return numbers
  }

  isOpen(descriptor: number): boolean {
    return this.#calls.fcntl(descriptor, F_GETFD, 0) >= 0
  }

  /** Whether the connection still has a far side. It has none after a reset, whichever thread got the error. */
  isConnected(descriptor: number): boolean {
    return this.#calls.getpeername(descriptor, this.#address.at, this.#addressBytesAt) === 0
  }

  /** Turns off pacing for a connection within this machine. */
  unpace(descriptor: number): void {
    if (this.isConnected(descriptor) && isLoopback(this.#address.bytes))
      unpace(this.#calls, this.#ffi.ptr, descriptor)
  }

  /**
   * Lowers the priority of this thread by `nice`, which is possible on Linux, where each thread has its own. If the
   * kernel refuses, nothing changes.
   */
  beNice(nice: number): void {
    const now = this.#calls.getpriority(PRIO_PROCESS, 0)
    this.#calls.setpriority(PRIO_PROCESS, 0, Math.min(now + nice, LOWEST_PRIORITY))
  }

  close(descriptor: number): void {
    this.#calls.close(descriptor)
  }

  read(descriptor: number, into: Uint8Array): number {
    return Number(this.#calls.read(descriptor, this.#ffi.ptr(into), into.length))
  }

  /** Returns a descriptor for a thread to wait on; -1 if there is none to spare. */
  wakeup(): number {
    return this.#calls.eventfd(0, O_NONBLOCK | O_CLOEXEC)
  }

  wakeUp(wakeup: number): void {
    this.#calls.write(wakeup, this.#ffi.ptr(this.#one), 8)
  }

  /** Returns an epoll descriptor. Throws if there is none to spare: a thread that cannot wait would use a whole core. */
  poll(): number {
    const poll = this.#calls.epoll_create1(O_CLOEXEC)
    if (poll < 0) throw new Error(`epoll_create1 failed: errno ${this.#errnoNow}`)
    return poll
  }

  /** Reports changes on the descriptor under `number`. */
  watch(poll: number, descriptor: number, events: number, number: number): boolean {
    this.#event.setUint32(0, (events | EPOLLET) >>> 0, true)
    this.#event.setUint32(EVENT_DATA_AT, number, true)
    return this.#calls.epoll_ctl(poll, EPOLL_CTL_ADD, descriptor, this.#ffi.ptr(this.#event)) === 0
  }

  unwatch(poll: number, descriptor: number): void {
    this.#calls.epoll_ctl(poll, EPOLL_CTL_DEL, descriptor, this.#ffi.ptr(this.#event))
  }

  /** Waits for changes, at most `timeoutMs` (-1: without limit), and writes their numbers. Returns how many there are. */
  wait(poll: number, changed: Changes, timeoutMs: number): number {
    changed.at ??= this.#ffi.ptr(changed.events)
    return Math.max(0, this.#calls.epoll_wait(poll, changed.at, changed.most, timeoutMs))
  }

  /** Whether sockets can be spliced here, which a sandbox may forbid. `undefined` if descriptors or memory are scarce now. */
  canSplice(): boolean | undefined {
    const pair = new Int32Array(new ArrayBuffer(8))
    if (this.#calls.socketpair(AF_UNIX, SOCK_STREAM | O_NONBLOCK | O_CLOEXEC, 0, this.#ffi.ptr(pair)) !== 0)
      return this.#isScarce ? undefined : false
    const pipe = this.#pipe(4096)
    const isScarce = pipe === undefined && this.#isScarce
    const isPossible = pipe !== undefined && this.splice(pair[0]!, pipe.writeEnd, 1) === WOULD_BLOCK
    for (const one of pair) this.close(one)
    if (pipe !== undefined) this.closePipe(pipe)
    return isScarce ? undefined : isPossible
  }

  /** Whether the last call failed for lack of descriptors or memory. */
  get #isScarce(): boolean {
    return SCARCITY.includes(this.#errnoNow)
  }

  closePipe({ readEnd, writeEnd }: Pipe): void {
    this.close(readEnd)
    this.close(writeEnd)
  }
}

/** The memory into which `wait` writes the changes. */
export class Changes {
  readonly most: number
  readonly events: DataView
  /** The address of `events` in memory, once it was requested. */
  at: Pointer | undefined

  constructor(most: number) {
    this.most = most
    this.events = new DataView(new ArrayBuffer(most * EVENT_BYTES))
  }

  /** Whether the far side of this change sends no more. */
  isLast(index: number): boolean {
    return (this.events.getUint32(index * EVENT_BYTES, true) & EPOLLRDHUP) !== 0
  }

  number(index: number): number {
    return this.events.getUint32(index * EVENT_BYTES + EVENT_DATA_AT, true)
  }
}

const AF_INET = 2
/** The bytes before the last byte of `::1`, and before an IPv4 address in an IPv6 one. */
const [SHORT, MAPPED] = [new Uint8Array(15), Uint8Array.of(...new Uint8Array(10), 255, 255)]

/** Whether a `struct sockaddr` is 127.0.0.0/8, also as IPv6, or ::1. */
function isLoopback(address: Uint8Array): boolean {
  if (address[0] === AF_INET) return address[4] === 127
  const begins = (start: Uint8Array) => start.every((byte, at) => address[8 + at] === byte)
  return (begins(SHORT) && address[23] === 1) || (begins(MAPPED) && address[20] === 127)
}

/**
 * Returns the address of the memory's bytes from `at` on. Throws if `count` bytes would go beyond it: the kernel
 * would write to other memory.
 */
function addressOf({ bytes, at: begin }: Room, at: number, count: number): Pointer {
  if (at < 0 || at + count > bytes.length) throw new RangeError('a room is left')
  return (begin + at) as Pointer // an address is a number
}
