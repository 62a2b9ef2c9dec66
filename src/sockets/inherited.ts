// Sockets that listened before this process started: those of systemd, or of the program that it replaces.

import { closeSync } from 'node:fs'
import { TunnelError } from '../errors.ts'
import { loadFfi, openLibc } from '../libc.ts'

const SYMBOLS = {
  getsockname: { args: ['i32', 'ptr', 'ptr'], returns: 'i32' },
  getsockopt: { args: ['i32', 'i32', 'i32', 'ptr', 'ptr'], returns: 'i32' },
  fcntl: { args: ['i32', 'i32', 'i32'], returns: 'i32' },
} as const

const isMac = process.platform === 'darwin'
const SOL_SOCKET = isMac ? 0xffff : 1
const SO_ACCEPTCONN = isMac ? 2 : 30
const AF_INET = 2
const AF_INET6 = isMac ? 30 : 10
const F_SETFD = 2
const FD_CLOEXEC = 1
const F_GETFL = 3
const F_SETFL = 4
const O_NONBLOCK = isMac ? 0x4 : 0x800
const ADDRESS_BYTES = 128
/** The address `::1`. */
const LOOPBACK = Buffer.from([...new Uint8Array(15), 1])

export interface InheritedSocket {
  readonly descriptor: number
  readonly port: number
  /** Whether only this machine reaches it. */
  readonly isLocal: boolean
}

/**
 * Describes an inherited descriptor. Sets it so that commands which this process runs do not get it, and accepting
 * never blocks. Throws `OPTION_INVALID` if it is not a listening TCP socket, or this runtime cannot find out.
 */
export function inheritedSocket(descriptor: number): InheritedSocket {
  const { libc, ptr } = calls()
  const address = new Uint8Array(ADDRESS_BYTES)
  const length = new Uint32Array([ADDRESS_BYTES])
  const accepts = new Int32Array(1)
  const size = new Uint32Array([accepts.byteLength])
  const isSocket = libc.getsockname(descriptor, ptr(address), ptr(length)) === 0
  const isAsked = libc.getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, ptr(accepts), ptr(size)) === 0
  const family = address[isMac ? 1 : 0]
  if (!isSocket || !isAsked || accepts[0] !== 1 || (family !== AF_INET && family !== AF_INET6))
    throw new TunnelError(
      'OPTION_INVALID',
      `Descriptor ${descriptor} is not a TCP socket that listens. Pass listening sockets only.`,
    )
  libc.fcntl(descriptor, F_SETFD, FD_CLOEXEC)
  libc.fcntl(descriptor, F_SETFL, libc.fcntl(descriptor, F_GETFL, 0) | O_NONBLOCK)
  const isLocal = family === AF_INET ? address[4] === 127 : LOOPBACK.equals(address.subarray(8, 24))
  return { descriptor, port: address[2]! * 256 + address[3]!, isLocal }
}

/** Closes the socket in this process only. */
export function closeInherited({ descriptor }: InheritedSocket): void {
  try {
    closeSync(descriptor)
  } catch {
    // Already closed, as intended.
  }
}

function calls() {
  try {
    const ffi = loadFfi()
    return { ptr: ffi.ptr, libc: openLibc(ffi, SYMBOLS) }
  } catch (cause) {
    throw new TunnelError(
      'OPTION_INVALID',
      'This runtime cannot look at the sockets that were passed to it. Start the server without them.',
      {
        cause,
      },
    )
  }
}
