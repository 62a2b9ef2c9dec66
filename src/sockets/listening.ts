// A socket that listens and accepts nothing itself, for child processes that share it.

import { lookup } from 'node:dns/promises'
import { isIPv6 } from 'node:net'
import { loadFfi, openLibc } from '../libc.ts'

const SYMBOLS = {
  socket: { args: ['i32', 'i32', 'i32'], returns: 'i32' },
  setsockopt: { args: ['i32', 'i32', 'i32', 'ptr', 'u32'], returns: 'i32' },
  bind: { args: ['i32', 'ptr', 'u32'], returns: 'i32' },
  listen: { args: ['i32', 'i32'], returns: 'i32' },
  close: { args: ['i32'], returns: 'i32' },
} as const

const AF_INET = 2
const AF_INET6 = 10
const SOCK_STREAM = 1
const SOCK_CLOEXEC_NONBLOCK = 0x80800
const SOL_SOCKET = 1
const SO_REUSEADDR = 2
/** The backlog, the same as Bun's. */
const BACKLOG = 512

/**
 * Returns the descriptor of a listening socket; Linux only. `undefined` if the port is in use, or this process lacks
 * the rights. Rejects if `hostname` has no address, or this runtime makes no foreign calls.
 */
export async function listeningSocket(hostname: string, port: number): Promise<number | undefined> {
  const { address } = await lookup(hostname)
  const ffi = loadFfi()
  const libc = openLibc(ffi, SYMBOLS)
  const isIpv6 = isIPv6(address)
  const name = isIpv6 ? ipv6Name(address, port) : ipv4Name(address, port)
  const descriptor = libc.socket(isIpv6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC_NONBLOCK, 0)
  if (descriptor < 0) return undefined
  const on = new Int32Array([1])
  libc.setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, ffi.ptr(on), on.byteLength)
  const isBound = libc.bind(descriptor, ffi.ptr(name), name.length) === 0
  if (isBound && libc.listen(descriptor, BACKLOG) === 0) return descriptor
  libc.close(descriptor)
  return undefined
}

function ipv4Name(address: string, port: number): Uint8Array {
  return Uint8Array.of(
    AF_INET,
    0,
    port >> 8,
    port & 255,
    ...address.split('.').map(Number),
    ...new Uint8Array(8),
  )
}

/** Returns a `sockaddr_in6` without a zone. */
function ipv6Name(address: string, port: number): Uint8Array {
  const name = new Uint8Array(28)
  name.set([AF_INET6, 0, port >> 8, port & 255])
  // The URL parser writes every group that is not left out, and an IPv4 tail as two groups.
  const text = new URL(`http://[${address.replace(/%.*$/, '')}]`).hostname.slice(1, -1)
  const [head = '', tail] = text.split('::')
  const groups = (part: string) =>
    part === '' ? [] : part.split(':').map(group => Number.parseInt(group, 16))
  const [first, last] = [groups(head), groups(tail ?? '')]
  const all = [...first, ...Array.from({ length: 8 - first.length - last.length }, () => 0), ...last]
  for (const [at, group] of all.entries()) name.set([group >> 8, group & 255], 8 + 2 * at)
  return name
}
