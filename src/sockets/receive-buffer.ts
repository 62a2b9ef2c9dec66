// Limits how much of a large transfer the kernel buffers while nothing reads it.

import { loadFfi, openLibc } from '../libc.ts'

/**
 * The size of a receive buffer in bytes. Linux lets one grow to `tcp_rmem`, 32 MB in 6.18. A stalled stream fills one
 * at each end of its link, two send buffers of up to 4 MB (`tcp_wmem`) and two pipes: 13 to 15.6 MB with this limit,
 * 71 to 74 MB without. Over 100 ms with 1 % loss, a download has 88 % of the rate of plain TCP, with 5 MB 117 %; on
 * loopback it is as fast as without the limit (docs/performance.md).
 */
const RECEIVE_BYTES = 3_145_728

const SYMBOLS = {
  socket: { args: ['i32', 'i32', 'i32'], returns: 'i32' },
  close: { args: ['i32'], returns: 'i32' },
  getsockopt: { args: ['i32', 'i32', 'i32', 'ptr', 'ptr'], returns: 'i32' },
  setsockopt: { args: ['i32', 'i32', 'i32', 'ptr', 'u32'], returns: 'i32' },
} as const
const AF_UNIX = 1
const SOCK_STREAM_CLOEXEC = 0x80001
const SOL_SOCKET = 1
const SO_RCVBUF = 8
/** The option that may exceed `net.core.rmem_max`. It needs CAP_NET_ADMIN, which root has, but not in every container. */
const SO_RCVBUFFORCE = 33
const IPPROTO_TCP = 6
const TCP_WINDOW_CLAMP = 10

/** The size to set, which the kernel doubles for its own use. Most of the result is data. */
const ASKED = int(RECEIVE_BYTES / 2)
/** The window clamp. Without it the window stays at its current size: we saw 350 KB, and 100 Mbit/s over 100 ms need 1.25 MB. */
const WINDOW = int(RECEIVE_BYTES)

/** The system calls. `null` if this system, or this build of the runtime, does not have them. */
let calls: ReturnType<typeof open> | null | undefined
/**
 * The option that gives this process such a buffer. `null` for none: the system's own limit stays. `undefined` before
 * the first check.
 */
let option: number | null | undefined

/** Limits the receive buffer of a connection, once, when it turns out to be a large transfer. Does nothing outside of Linux. */
export function boundReceiving(descriptor: number): void {
  if (calls === undefined) calls = openOrNull()
  if (calls === null) return
  if (option === undefined) option = permitted(calls)
  if (option === undefined || option === null) return
  const { libc, ffi } = calls
  libc.setsockopt(descriptor, SOL_SOCKET, option, ffi.ptr(ASKED), 4)
  libc.setsockopt(descriptor, IPPROTO_TCP, TCP_WINDOW_CLAMP, ffi.ptr(WINDOW), 4)
}

/**
 * Returns the permitted option, tried on a socket of its own: a buffer that was set to less than requested would not
 * grow any more. `rmem_max` would show it too, but services (`ProcSubset=pid`) and containers cannot see it.
 */
function permitted({ libc, ffi }: ReturnType<typeof open>): number | null | undefined {
  const trial = libc.socket(AF_UNIX, SOCK_STREAM_CLOEXEC, 0)
  // No descriptor is free now.
  if (trial < 0) return undefined
  const [seen, length] = [int(0), int(4)]
  const found = [SO_RCVBUF, SO_RCVBUFFORCE].find(one => {
    libc.setsockopt(trial, SOL_SOCKET, one, ffi.ptr(ASKED), 4)
    libc.getsockopt(trial, SOL_SOCKET, SO_RCVBUF, ffi.ptr(seen), ffi.ptr(length))
    return (seen[0] ?? 0) >= RECEIVE_BYTES
  })
  libc.close(trial)
  return found ?? null
}

function openOrNull() {
  try {
    return process.platform === 'linux' ? open() : null
  } catch {
    return null // no known C library, or no foreign calls in this build
  }
}

function open() {
  const ffi = loadFfi()
  return { ffi, libc: openLibc(ffi, SYMBOLS) }
}

/** Returns a number in a buffer of its own: the runtime moves a smaller array when its `buffer` is read later. */
function int(value: number): Int32Array {
  return new Int32Array(new ArrayBuffer(4)).fill(value)
}
