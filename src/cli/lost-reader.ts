// Notices that the reader of standard output has left while there is nothing to write, as `head -1` does after the URL.

import { fstatSync } from 'node:fs'
import { loadFfi, openLibc } from '../libc.ts'

const STDOUT = 1
const LOOK_MS = 500
const POLLERR = 0x8
const POLLHUP = 0x10

/** Calls `gone` once. Watches pipes only. On Node, which makes no foreign calls, the next write fails instead. */
export function onReaderGone(gone: () => void): void {
  try {
    if (!fstatSync(STDOUT).isFIFO()) return
    const ffi = loadFfi()
    const { poll } = openLibc(ffi, { poll: { args: ['ptr', 'u64', 'i32'], returns: 'i32' } })
    // struct pollfd { int fd; short events; short revents; }: errors are always reported.
    const asked = new DataView(new ArrayBuffer(8))
    asked.setInt32(0, STDOUT, true)
    const timer = setInterval(() => {
      if (poll(ffi.ptr(asked), 1, 0) !== 1 || (asked.getInt16(6, true) & (POLLERR | POLLHUP)) === 0) return
      clearInterval(timer)
      gone()
    }, LOOK_MS)
    timer.unref()
  } catch {
    // No standard output, or no foreign calls.
  }
}
