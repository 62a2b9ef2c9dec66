// Where the receive buffers of bulk can be bounded (src/sockets/receive-buffer.ts), and what the kernel says of one.

import { dlopen, FFIType, ptr } from 'bun:ffi'
import { existsSync, readFileSync } from 'node:fs'

/** What the kernel calls the size of such a buffer: twice what is asked for. */
export const BOUND_BYTES = 3_145_728
const MAX_BYTES_FILE = '/proc/sys/net/core/rmem_max'
/** Lets a process have more. Root of a container lacks it, as a rule. */
const CAP_NET_ADMIN = 12n

/** Elsewhere the system's own bound stays. */
export function mayBound(): boolean {
  if (!existsSync(MAX_BYTES_FILE)) return false
  if (Number(readFileSync(MAX_BYTES_FILE, 'latin1')) >= BOUND_BYTES / 2) return true
  const [, capabilities = '0'] = /^CapEff:\s*(\w+)/m.exec(readFileSync('/proc/self/status', 'latin1')) ?? []
  return (BigInt(`0x${capabilities}`) >> CAP_NET_ADMIN) % 2n === 1n
}

const GETSOCKOPT = {
  args: [FFIType.i32, FFIType.i32, FFIType.i32, FFIType.ptr, FFIType.ptr],
  returns: FFIType.i32,
} as const

function optionOf(descriptor: number, level: number, option: number): number {
  const { symbols } = dlopen('libc.so.6', { getsockopt: GETSOCKOPT })
  const value = new Int32Array(1)
  const outcome = symbols.getsockopt(descriptor, level, option, ptr(value), ptr(new Int32Array([4])))
  if (outcome !== 0) throw new Error(`getsockopt: ${outcome}`)
  return value[0]!
}

/** SO_RCVBUF. */
export const receiveBytes = (descriptor: number): number => optionOf(descriptor, 1, 8)
/** TCP_WINDOW_CLAMP. */
export const windowBytes = (descriptor: number): number => optionOf(descriptor, 6, 10)
