// The kernel's queue of a UDP socket of Bun: how long it is, and when it is shut. Bun has no option for either, so it is
// setsockopt of the C library, by FFI.

import { RECEIVE_BUFFER_BYTES } from '../datagram-socket.ts'
import { openLibc } from '../libc.ts'
import { descriptorOf } from './descriptor.ts'

/**
 * Datagrams of one socket in one turn of the event loop. Bun 1.4.5 reads a UDP socket until nothing is left, and from one
 * that is flooded faster than it reads it never returns: every other connection of the process would wait for as long.
 * Beyond this many the kernel is told to drop what comes, what is queued is read, and the next turn opens the queue again.
 */
const MAX_PER_TURN = 512

interface Platform {
  readonly SOL_SOCKET: number
  readonly SO_RCVBUF: number
  /** Linux only: on others a flood is read until it ends. */
  readonly filter?: { readonly SO_ATTACH_FILTER: number; readonly SO_DETACH_FILTER: number }
}

/** Constants of the systems' own headers. On others everything stays as it is. */
const PLATFORMS: Readonly<Record<string, Platform>> = {
  linux: {
    SOL_SOCKET: 1,
    SO_RCVBUF: 8,
    filter: { SO_ATTACH_FILTER: 26, SO_DETACH_FILTER: 27 },
  },
  darwin: { SOL_SOCKET: 0xffff, SO_RCVBUF: 0x1002 },
}

/** Sets an option of the socket level. */
type SetOption = (fd: number, option: number, value: Int32Array | BigUint64Array) => void

let loading: Promise<SetOption | undefined> | undefined

/** To be awaited before a socket is opened: then nothing can arrive in between. */
export function loadQueueControl(): Promise<SetOption | undefined> {
  loading ??= load()
  return loading
}

/** Keeps one socket from taking up the event loop. */
export class DatagramQueue {
  readonly #fd: number
  readonly #set: SetOption | undefined
  readonly #platform: Platform | undefined = PLATFORMS[process.platform]
  readonly #turnEnded: () => void
  #count = 0
  #isShut = false
  #isClosed = false

  constructor(socket: object, set: SetOption | undefined) {
    this.#fd = descriptorOf(socket) ?? -1
    this.#set = this.#fd < 0 ? undefined : set
    if (this.#platform !== undefined)
      this.#set?.(this.#fd, this.#platform.SO_RCVBUF, new Int32Array([RECEIVE_BUFFER_BYTES]))
    this.#turnEnded = () => {
      this.#count = 0
      if (this.#isShut) this.#open()
    }
  }

  /** A datagram was read. */
  heard(): void {
    if (this.#count === 0) setImmediate(this.#turnEnded)
    if (++this.#count === MAX_PER_TURN) this.#shut()
  }

  /** The socket is about to be closed: its number may soon be that of another. */
  close(): void {
    this.#isClosed = true
  }

  #shut(): void {
    const { filter } = this.#platform ?? {}
    if (filter === undefined || this.#set === undefined || this.#isClosed) return
    this.#isShut = true
    // A program for every datagram, of one instruction: keep 0 bytes of it.
    const program = new BigUint64Array([0x0000_0000_0000_0006n])
    this.#set(this.#fd, filter.SO_ATTACH_FILTER, programOf(program))
  }

  #open(): void {
    this.#isShut = false
    const { filter } = this.#platform ?? {}
    if (filter !== undefined && !this.#isClosed)
      this.#set?.(this.#fd, filter.SO_DETACH_FILTER, new Int32Array(1))
  }
}

let addressOf: (view: BigUint64Array) => number = () => 0

/** `struct sock_fprog`: the number of instructions, and where they are. */
function programOf(instructions: BigUint64Array): BigUint64Array {
  return new BigUint64Array([BigInt(instructions.length), BigInt(addressOf(instructions))])
}

async function load(): Promise<SetOption | undefined> {
  const platform = PLATFORMS[process.platform]
  if (platform === undefined) return undefined
  try {
    // Imported late: what is bundled for Node must not name it at its top.
    const ffi = await import('bun:ffi')
    const { setsockopt } = openLibc(ffi, {
      setsockopt: { args: ['int', 'int', 'int', 'ptr', 'u32'], returns: 'int' },
    })
    addressOf = view => ffi.ptr(view)
    // What it returns says no more than that the system gave less.
    return (fd, option, value) => {
      setsockopt(fd, platform.SOL_SOCKET, option, ffi.ptr(value), value.byteLength)
    }
  } catch {
    // Everything stays as it is.
    return undefined
  }
}
