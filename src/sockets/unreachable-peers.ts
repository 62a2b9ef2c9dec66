// Stops errors of other hosts (ICMP) from reaching the UDP socket whose datagrams they did not take.

import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { loadFfi, openLibc } from '../libc.ts'

const SYMBOLS = { setsockopt: { args: ['i32', 'i32', 'i32', 'ptr', 'u32'], returns: 'i32' } } as const
/** The levels and options of IP_RECVERR and IPV6_RECVERR. */
const OPTIONS = [
  [0, 11],
  [41, 25],
] as const
/** The column of the local address in a line of `/proc/self/net/udp`. */
const LOCAL = 1
const INODE = 9

/**
 * Turns off the errors that Bun requests for each UDP socket. With them, its QUIC sends one datagram per second until
 * all errors are read: 900 visitors that left within three seconds kept the others out for 20 s. Does nothing outside
 * of Linux, where sockets without a peer get no such errors.
 */
export function ignoreUnreachable(port: number): void {
  if (process.platform !== 'linux') return
  try {
    const ffi = loadFfi()
    const { setsockopt } = openLibc(ffi, SYMBOLS)
    const off = new Int32Array(1)
    for (const descriptor of descriptorsOf(port))
      for (const [level, option] of OPTIONS) setsockopt(descriptor, level, option, ffi.ptr(off), 4)
  } catch {
    // No known C library, no foreign calls in this build, or no /proc: the runtime's default stays.
  }
}

/** The UDP sockets of this process on a port. */
function descriptorsOf(port: number): number[] {
  const sockets = new Set<string>()
  for (const table of ['udp', 'udp6']) {
    for (const line of readFileSync(`/proc/self/net/${table}`, 'latin1').split('\n').slice(1)) {
      const columns = line.trim().split(/\s+/)
      if (Number.parseInt(columns[LOCAL]?.split(':')[1] ?? '', 16) === port)
        sockets.add(`socket:[${columns[INODE]}]`)
    }
  }
  return readdirSync('/proc/self/fd')
    .map(Number)
    .filter(descriptor => sockets.has(linkOf(descriptor)))
}

/** Returns the target of a descriptor's link. Empty if it was closed. */
function linkOf(descriptor: number): string {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`)
  } catch {
    return ''
  }
}
