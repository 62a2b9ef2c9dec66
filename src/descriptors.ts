// The file descriptors of this process: the limit, and whether some are free.

import { loadFfi, openLibc } from './libc.ts'

const SYMBOLS = {
  getrlimit: { args: ['i32', 'ptr'], returns: 'i32' },
  socket: { args: ['i32', 'i32', 'i32'], returns: 'i32' },
  fcntl: { args: ['i32', 'i32', 'i32'], returns: 'i32' },
  close: { args: ['i32'], returns: 'i32' },
} as const

const isMac = process.platform === 'darwin'
const RLIMIT_NOFILE = isMac ? 8 : 7
const F_DUPFD_CLOEXEC = isMac ? 67 : 1030
const AF_UNIX = 1
const SOCK_STREAM = 1

/** The system calls. `null` if this runtime or system does not have them. */
let calls: ReturnType<typeof open> | null | undefined

/**
 * Returns the maximum number of open descriptors of this process: `ulimit -n`. `undefined` if it is unknown: on Node,
 * and outside of Linux and macOS.
 */
export function descriptorLimit(): number | undefined {
  if (calls === undefined) calls = openOrNull()
  if (calls === null) return undefined
  const { libc, ffi } = calls
  const softAndHard = new BigUint64Array(2)
  if (libc.getrlimit(RLIMIT_NOFILE, ffi.ptr(softAndHard)) !== 0) return undefined
  // "Unlimited" is 2^63 or 2^64, less one.
  return Number(softAndHard[0])
}

/**
 * Returns how many descriptors can be opened now, at most `most`. It opens and closes that many, which takes about
 * 0.3 µs each. Other threads may take them a moment later. `undefined` if it is unknown, as `descriptorLimit`.
 */
export function freeDescriptors(most: number): number | undefined {
  if (calls === undefined) calls = openOrNull()
  if (calls === null) return undefined
  const { libc } = calls
  const first = most > 0 ? libc.socket(AF_UNIX, SOCK_STREAM, 0) : -1
  if (first < 0) return 0
  const opened = [first]
  while (opened.length < most) {
    const copy = libc.fcntl(first, F_DUPFD_CLOEXEC, 0)
    if (copy < 0) break
    opened.push(copy)
  }
  for (const descriptor of opened) libc.close(descriptor)
  return opened.length
}

function openOrNull() {
  try {
    return open()
  } catch {
    return null // Node has no foreign calls, and Windows no such functions: callers treat descriptors as plentiful
  }
}

function open() {
  const ffi = loadFfi()
  return { ffi, libc: openLibc(ffi, SYMBOLS) }
}
