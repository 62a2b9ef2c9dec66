// Checks whether bytes of a connection wait in the kernel: Bun accepts all waiting connections before it reads the first.

import { loadFfi, openLibc } from '../libc.ts'

const SYMBOLS = { recv: { args: ['i32', 'ptr', 'u64', 'i32'], returns: 'i64' } } as const

const MSG_PEEK = 0x2
const MSG_DONTWAIT = process.platform === 'darwin' ? 0x80 : 0x40

/** The check. `null` if it is impossible here. */
let check: ((descriptor: number) => boolean) | null | undefined

/** Whether bytes wait. Costs about 0.5 µs. Always `false` on Node, and outside of Linux and macOS. */
export function hasUnread(descriptor: number): boolean {
  if (check === undefined) check = open()
  return check?.(descriptor) ?? false
}

function open(): ((descriptor: number) => boolean) | null {
  try {
    const ffi = loadFfi()
    const { recv } = openLibc(ffi, SYMBOLS)
    // Allocated by itself and kept, because the memory of small arrays may move.
    const byte = new Uint8Array(new ArrayBuffer(1))
    return descriptor => Number(recv(descriptor, ffi.ptr(byte), 1, MSG_PEEK | MSG_DONTWAIT)) > 0
  } catch {
    return null // no known C library, or no foreign calls in this runtime
  }
}
