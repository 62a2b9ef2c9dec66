// Limits how much of a UDP socket's kernel queue Bun reads, by closing the queue. Bun has no option for that, so this
// calls setsockopt of the C library by FFI.

import { RECEIVE_BUFFER_BYTES } from '../datagram-socket.ts'
import { openLibc } from '../libc.ts'
import { descriptorOf } from './descriptor.ts'

/**
 * The number of datagrams that all sockets together may read in one turn of the event loop: about 2 ms of work. Bun
 * 1.4.5 reads a UDP socket until it is empty; from one that is flooded faster than it reads, it never returns, and
 * every other connection of the process waits. Beyond its share of this number, the kernel drops a socket's
 * datagrams. Those already queued are read, and dropped beyond another such share.
 */
const MAX_PER_TURN = 256
/** The minimum share of a socket, however many are busy. Sockets with fewer datagrams in a turn do not count as busy. */
const MIN_PER_TURN = 8
/**
 * The minimum number of sockets that are opened again in one turn. Until then, datagrams collect in their queues for the
 * next turn.
 */
const MIN_OPENED_PER_TURN = 4

interface Platform {
  readonly SOL_SOCKET: number
  readonly SO_RCVBUF: number
  /** The options that attach and detach a filter. Linux only: on other systems a flood is read until it ends. */
  readonly filter?: { readonly SO_ATTACH_FILTER: number; readonly SO_DETACH_FILTER: number }
}

/** The constants from the systems' own headers. On other systems nothing is limited. */
const PLATFORMS: Readonly<Record<string, Platform>> = {
  linux: {
    SOL_SOCKET: 1,
    SO_RCVBUF: 8,
    filter: { SO_ATTACH_FILTER: 26, SO_DETACH_FILTER: 27 },
  },
  darwin: { SOL_SOCKET: 0xffff, SO_RCVBUF: 0x1002 },
}

/** Sets a socket option at the socket level. */
type SetOption = (fd: number, option: number, value: Int32Array | BigUint64Array) => void

let loading: Promise<SetOption | undefined> | undefined

/** Loads the control. Await it before a socket is opened, so that nothing can arrive earlier. */
export function loadQueueControl(): Promise<SetOption | undefined> {
  loading ??= load()
  return loading
}

/** All sockets of this event loop, and how many datagrams each may read in one turn. */
class QueueTurns {
  /** The number of datagrams that one socket may read in this turn. */
  part: number = MAX_PER_TURN
  /** The queues that read datagrams in this turn. */
  #heard: DatagramQueue[] = []
  /** The closed queues, in the order in which they will be opened. */
  readonly #shut = new Set<DatagramQueue>()
  #isEndPlanned = false
  readonly #end: () => void = () => {
    this.#isEndPlanned = false
    const heard = this.#heard
    this.#heard = []
    let busyCount = 0
    for (const queue of heard) if (queue.turnEnded() >= MIN_PER_TURN) busyCount++
    this.part = Math.max(MIN_PER_TURN, Math.floor(MAX_PER_TURN / Math.max(1, busyCount)))
    let left = Math.max(MIN_OPENED_PER_TURN, MAX_PER_TURN / this.part)
    for (const queue of this.#shut) {
      if (left-- <= 0) break
      this.#shut.delete(queue)
      queue.open()
    }
    if (this.#shut.size > 0) this.#planEnd()
  }

  /** Called for the first datagram of a socket in this turn. */
  began(queue: DatagramQueue): void {
    this.#heard.push(queue)
    this.#planEnd()
  }

  /** Remembers a closed queue, to open it in a later turn. */
  shut(queue: DatagramQueue): void {
    this.#shut.add(queue)
  }

  #planEnd(): void {
    if (this.#isEndPlanned) return
    this.#isEndPlanned = true
    setImmediate(this.#end)
  }
}

const turns = new QueueTurns()

/** Keeps one socket from taking up the event loop. */
export class DatagramQueue {
  readonly #fd: number
  readonly #set: SetOption | undefined
  readonly #platform: Platform | undefined = PLATFORMS[process.platform]
  #count = 0
  #isClosed = false

  constructor(socket: object, set: SetOption | undefined) {
    this.#fd = descriptorOf(socket) ?? -1
    this.#set = this.#fd < 0 ? undefined : set
    if (this.#platform !== undefined)
      this.#set?.(this.#fd, this.#platform.SO_RCVBUF, new Int32Array([RECEIVE_BUFFER_BYTES]))
  }

  /** Called when a datagram was read. Returns `false` if there are too many in this turn, so that it must be dropped. */
  heard(): boolean {
    if (this.#count === 0) turns.began(this)
    if (++this.#count === turns.part) this.#shut()
    return this.#count <= 2 * turns.part
  }

  /** Returns the number of datagrams in the turn. */
  turnEnded(): number {
    const count = this.#count
    this.#count = 0
    return count
  }

  /** Called before the socket is closed, whose number another one may soon have. */
  close(): void {
    this.#isClosed = true
  }

  #shut(): void {
    const { filter } = this.#platform ?? {}
    if (filter === undefined || this.#set === undefined || this.#isClosed) return
    turns.shut(this)
    // A filter program of one instruction: keep 0 bytes of each datagram.
    const program = new BigUint64Array([0x0000_0000_0000_0006n])
    this.#set(this.#fd, filter.SO_ATTACH_FILTER, programOf(program))
  }

  open(): void {
    const { filter } = this.#platform ?? {}
    if (filter !== undefined && !this.#isClosed)
      this.#set?.(this.#fd, filter.SO_DETACH_FILTER, new Int32Array(1))
  }
}

let addressOf: (view: BigUint64Array) => number = () => 0

/** Makes a `struct sock_fprog`: the number of instructions, and their address. */
function programOf(instructions: BigUint64Array): BigUint64Array {
  return new BigUint64Array([BigInt(instructions.length), BigInt(addressOf(instructions))])
}

async function load(): Promise<SetOption | undefined> {
  const platform = PLATFORMS[process.platform]
  if (platform === undefined) return undefined
  try {
    // Imported late, because code that is bundled for Node must not import it statically.
    const ffi = await import('bun:ffi')
    const { setsockopt } = openLibc(ffi, {
      setsockopt: { args: ['int', 'int', 'int', 'ptr', 'u32'], returns: 'int' },
    })
    addressOf = view => ffi.ptr(view)
    // The result only says that the system gave less.
    return (fd, option, value) => {
      setsockopt(fd, platform.SOL_SOCKET, option, ffi.ptr(value), value.byteLength)
    }
  } catch {
    // Nothing is limited without FFI.
    return undefined
  }
}
