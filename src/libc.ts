// The C library, opened for a few of its functions: what the runtime has no option for.

import type { FFIFunction, Library } from 'bun:ffi'
import { createRequire } from 'node:module'

/** The names of the C library: glibc, musl and that of macOS. */
const NAMES: Readonly<Record<string, readonly string[]>> = {
  linux: ['libc.so.6', 'libc.musl-x86_64.so.1', 'libc.musl-aarch64.so.1'],
  darwin: ['libSystem.B.dylib'],
}

/** Throws on Node. Loaded late, because its users are also in bundles for Node, which has no such module. */
export function loadFfi(): typeof import('bun:ffi') {
  return createRequire(import.meta.url)('bun:ffi') as typeof import('bun:ffi') // Bun's own, and its types
}

/**
 * Opens it. `bun:ffi` is handed in, because files that are also in bundles for Node must load it late. Throws when there is
 * no such library, or when this build of the runtime makes no foreign calls.
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
