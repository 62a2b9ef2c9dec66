// Opens the C library for a few functions that the runtime has no option for.

import type { FFIFunction, Library, Pointer } from 'bun:ffi'
import { createRequire } from 'node:module'

/** The names of the C library: glibc, musl and that of macOS. */
const NAMES: Readonly<Record<string, readonly string[]>> = {
  linux: ['libc.so.6', 'libc.musl-x86_64.so.1', 'libc.musl-aarch64.so.1'],
  darwin: ['libSystem.B.dylib'],
}

/** Loads `bun:ffi` late, because this code is also in bundles for Node, which has no such module. Throws on Node. */
export function loadFfi(): typeof import('bun:ffi') {
  return createRequire(import.meta.url)('bun:ffi') as typeof import('bun:ffi') // Bun's own, and its types
}

/**
 * Opens the library. `bun:ffi` is a parameter, because files that are also in bundles for Node must load it late.
 * Throws if there is no such library, or this build of the runtime makes no foreign calls.
 */
export function openLibc<Symbols extends Record<string, FFIFunction>>(
  { dlopen }: typeof import('bun:ffi'),
  symbols: Symbols,
): Library<Symbols>['symbols'] {
  let failure: unknown = new Error('no C library')
  for (const name of NAMES[process.platform] ?? []) {
    try {
      return dlopen(name, symbols).symbols
    } catch (error) {
      failure = error
    }
  }
  throw failure
}

export const UNPACE_SYMBOLS = {
  getsockopt: { args: ['i32', 'i32', 'i32', 'ptr', 'ptr'], returns: 'i32' },
  setsockopt: { args: ['i32', 'i32', 'i32', 'ptr', 'u32'], returns: 'i32' },
} as const

const IPPROTO_TCP = 6
const TCP_CONGESTION = 13
const [BBR, RENO] = ['bbr', 'reno'].map(name => new TextEncoder().encode(name)) as [Uint8Array, Uint8Array] // two of them

/**
 * Turns off pacing of a TCP connection or listener within this machine; Linux only. Where BBR is the default, the
 * system sets a timer for each send: on a virtual machine this is three quarters of the processor time of a transfer.
 * Every process may choose `reno`.
 */
export function unpace(
  libc: Library<typeof UNPACE_SYMBOLS>['symbols'],
  ptr: (bytes: Uint8Array | Uint32Array) => Pointer,
  descriptor: number,
): void {
  const name = new Uint8Array(new ArrayBuffer(16))
  const length = new Uint32Array(new ArrayBuffer(4)).fill(name.length)
  const isKnown = libc.getsockopt(descriptor, IPPROTO_TCP, TCP_CONGESTION, ptr(name), ptr(length)) === 0
  if (isKnown && BBR.every((byte, at) => name[at] === byte))
    libc.setsockopt(descriptor, IPPROTO_TCP, TCP_CONGESTION, ptr(RENO), RENO.length)
}
