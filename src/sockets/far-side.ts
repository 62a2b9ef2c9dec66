// Whether a connection still has a far side: Bun reports some resets as an end.
//
// The kernel reports a reset once. When a write, or a thread that moves bytes, gets that error, the next read sees
// the end of the connection, and Bun 1.4.5 calls `end`: this happened on 61 of 100 connections that were reset while
// both sides wrote. The connection itself has no far side any more then, and `getpeername` fails.

import { loadFfi, openLibc } from '../libc.ts'

const SYMBOLS = { getpeername: { args: ['i32', 'ptr', 'ptr'], returns: 'i32' } } as const

/** The size that any address fits into. */
const ADDRESS_BYTES = 128

/** The check. `null` if there is none: then the end that Bun reports counts. */
let check: ((descriptor: number) => boolean) | null | undefined

/**
 * Whether the far side is still there. `false` after a reset, whichever call got its error. Only for a connection on which this
 * side has not sent FIN: after an end in both directions there is no far side either. Always `true` outside of Linux.
 */
export function hasFarSide(descriptor: number): boolean {
  if (check === undefined) check = open()
  return check?.(descriptor) ?? true
}

function open(): ((descriptor: number) => boolean) | null {
  if (process.platform !== 'linux') return null
  try {
    const ffi = loadFfi()
    const { getpeername } = openLibc(ffi, SYMBOLS)
    // Allocated by itself and kept, because the memory of small arrays may move.
    const address = new Uint8Array(new ArrayBuffer(ADDRESS_BYTES))
    const length = new Uint32Array(new ArrayBuffer(4))
    return descriptor => {
      length[0] = ADDRESS_BYTES
      return getpeername(descriptor, ffi.ptr(address), ffi.ptr(length)) === 0
    }
  } catch {
    return null // no known C library, or no foreign calls in this build
  }
}
