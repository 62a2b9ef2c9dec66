// Bounds what the kernel keeps of bulk for this side, while nothing reads it.

import { readFileSync } from 'node:fs'
import { loadFfi, openLibc } from '../libc.ts'

/**
 * Linux lets a receive buffer grow to `tcp_rmem`, which is 32 MB in 6.18. A stalled stream fills one of them at each end of
 * its link, two send buffers of up to 4 MB (`tcp_wmem`) and two pipes: 14 to 15.6 MB with this, and 71 to 74 MB without. Over
 * 100 ms with 1 % loss a download has 0.88 of plain TCP, with 5 MB 1.17; on loopback it is as fast as without a bound (docs/performance.md).
 */
const RECEIVE_BYTES = 3_276_800

const SYMBOLS = { setsockopt: { args: ['i32', 'i32', 'i32', 'ptr', 'u32'], returns: 'i32' } } as const
const SOL_SOCKET = 1
const SO_RCVBUF = 8
/** Beyond `net.core.rmem_max`, for root only. */
const SO_RCVBUFFORCE = 33
const IPPROTO_TCP = 6
const TCP_WINDOW_CLAMP = 10

/** `null`: the system's own bound stays. */
let setter: ((descriptor: number) => void) | null | undefined

/** Once for each connection, when it turns out to be bulk. Without effect outside of Linux. */
export function boundReceiving(descriptor: number): void {
  if (setter === undefined) setter = open()
  setter?.(descriptor)
}

function open(): ((descriptor: number) => void) | null {
  if (process.platform !== 'linux') return null
  try {
    const ffi = loadFfi()
    const { setsockopt } = openLibc(ffi, SYMBOLS)
    // The kernel doubles it, for its own use; most of that is data.
    const value = new Int32Array(new ArrayBuffer(4)).fill(RECEIVE_BYTES / 2)
    const isAllowed = Number(readFileSync('/proc/sys/net/core/rmem_max', 'latin1')) >= RECEIVE_BYTES / 2
    // A buffer that was set to less than asked for would not grow any more: better none, then.
    const option = isAllowed ? SO_RCVBUF : SO_RCVBUFFORCE
    // Else the window stays as small as it is now: 350 KB were seen, where 100 Mbit/s over 100 ms need 1.25 MB.
    const window = new Int32Array(new ArrayBuffer(4)).fill(RECEIVE_BYTES)
    return descriptor => {
      setsockopt(descriptor, SOL_SOCKET, option, ffi.ptr(value), 4)
      setsockopt(descriptor, IPPROTO_TCP, TCP_WINDOW_CLAMP, ffi.ptr(window), 4)
    }
  } catch {
    return null // no C library by a name that is known, no foreign calls in this build, or no /proc
  }
}
