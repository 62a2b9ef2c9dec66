// Bounds what the kernel keeps of bulk for this side, while nothing reads it.

import { readFileSync } from 'node:fs'
import { loadFfi, openLibc } from '../libc.ts'

/**
 * Linux lets a receive buffer grow to `tcp_rmem`, which is 32 MB in 6.18. A stalled stream fills one of them at each end of
 * its link, two send buffers of up to 4 MB (`tcp_wmem`) and two pipes: 11 to 15 MB with this, and 71 to 74 MB without. It
 * is enough for 25 MB/s over 100 ms. On loopback bulk was as fast with it as without it (docs/performance.md).
 */
const RECEIVE_BYTES = 2_621_440

const SYMBOLS = { setsockopt: { args: ['i32', 'i32', 'i32', 'ptr', 'u32'], returns: 'i32' } } as const
const SOL_SOCKET = 1
const SO_RCVBUF = 8
/** Beyond `net.core.rmem_max`, for root only. */
const SO_RCVBUFFORCE = 33

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
    return descriptor => setsockopt(descriptor, SOL_SOCKET, option, ffi.ptr(value), 4)
  } catch {
    return null // no C library by a name that is known, no foreign calls in this build, or no /proc
  }
}
