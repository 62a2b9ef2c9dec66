// Keeps what other hosts say of datagrams that they did not take (ICMP) from the UDP socket that sent them.

import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { loadFfi, openLibc } from '../libc.ts'

const SYMBOLS = { setsockopt: { args: ['i32', 'i32', 'i32', 'ptr', 'u32'], returns: 'i32' } } as const
/** The level and option of IP_RECVERR and IPV6_RECVERR. */
const OPTIONS = [
  [0, 11],
  [41, 25],
] as const
/** The column of the local address in a line of `/proc/self/net/udp`. */
const LOCAL = 1
const INODE = 9

/**
 * Turns off the errors that Bun asks for on each UDP socket. Its QUIC then sends one datagram a second until all of them are
 * read: 900 visitors that left in three seconds kept the others out for 20 s. Without effect outside of Linux, where sockets
 * without a peer do not get them.
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
    // No C library by a name that is known, no foreign calls in this build, or no /proc: as the runtime has it.
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

/** Returns the link of a descriptor. Empty if it was closed in the meantime. */
function linkOf(descriptor: number): string {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`)
  } catch {
    return ''
  }
}
