// Sends several datagrams of one size with one system call; the kernel divides them (UDP_SEGMENT, Linux 4.18 and
// later). The path through the network stack, which is most of a datagram's cost, is then passed once for all of
// them. Bun has no option for it, so this calls sendmsg of the C library by FFI.

import { copyBytes } from '../bytes.ts'
import { openLibc } from '../libc.ts'

/** The maximum size of a message over IPv6, without the headers of IP (40 bytes) and UDP (8 bytes). */
const MOST_BYTES = 65_487
/** The maximum number of segments: UDP_MAX_SEGMENTS of the first kernels with it. Later ones accept 128. */
const MOST_SEGMENTS = 64
/** The minimum number of segments for which the copy pays. */
const LEAST_SEGMENTS = 4

// From the system's own headers; the same on x64 and arm64.
const SOL_UDP = 17
const UDP_SEGMENT = 103
const MSG_DONTWAIT = 0x40
const EAGAIN = 11
const ECONNREFUSED = 111

/** The size of `struct msghdr`, its one `struct iovec`, and a `struct cmsghdr` with the size, one after the other. */
const HEADER_BYTES = 56
const VECTOR_BYTES = 16
const CONTROL_BYTES = 24
/** The length of the control message without padding. */
const CONTROL_LENGTH = 18

/** Why nothing was sent: the kernel is full, refuses, or cannot do it. */
export type SegmentsRefusal = 'full' | 'refused' | 'impossible'

/** Sends datagrams[from, to), all of one size (the last may be shorter), to the address to which the socket is connected. */
export type SendSegments = (
  fd: number,
  datagrams: readonly Uint8Array[],
  from: number,
  to: number,
) => SegmentsRefusal | undefined

let loading: Promise<SendSegments | undefined> | undefined

/** Loads the function. `undefined` if the system does not have it. */
export function loadSendSegments(): Promise<SendSegments | undefined> {
  loading ??= process.platform === 'linux' ? load() : Promise.resolve(undefined)
  return loading
}

/** Returns the end of the run of datagrams that can be sent as one message; `from` if the run is too short. */
export function endOfRun(datagrams: readonly Uint8Array[], from: number): number {
  const size = datagrams[from]?.length ?? 0
  if (size === 0) return from
  const most = Math.min(datagrams.length, from + MOST_SEGMENTS, from + Math.floor(MOST_BYTES / size))
  let to = from + 1
  while (to < most && datagrams[to]?.length === size) to++
  // A shorter datagram ends the message.
  const last = datagrams[to]?.length ?? 0
  if (to < most && last > 0 && last < size) to++
  return to - from < LEAST_SEGMENTS ? from : to
}

async function load(): Promise<SendSegments | undefined> {
  // Imported late, because code that is bundled for Node must not import it statically.
  const ffi = await import('bun:ffi')
  const libc = open(ffi)
  if (libc === undefined) return undefined
  const { ptr, read } = ffi
  const payload = new Uint8Array(MOST_BYTES)
  const message = new DataView(new ArrayBuffer(HEADER_BYTES + VECTOR_BYTES + CONTROL_BYTES))
  const at = ptr(message)
  const writePointer = (offset: number, pointer: number) =>
    message.setBigUint64(offset, BigInt(pointer), true)
  writePointer(16, at + HEADER_BYTES)
  writePointer(24, 1)
  writePointer(32, at + HEADER_BYTES + VECTOR_BYTES)
  writePointer(40, CONTROL_BYTES)
  writePointer(HEADER_BYTES, ptr(payload))
  const control = HEADER_BYTES + VECTOR_BYTES
  writePointer(control, CONTROL_LENGTH)
  message.setUint32(control + 8, SOL_UDP, true)
  message.setUint32(control + 12, UDP_SEGMENT, true)
  return (fd, datagrams, from, to) => {
    let length = 0
    for (let index = from; index < to; index++) {
      const datagram = datagrams[index]!
      copyBytes(datagram, 0, datagram.length, payload, length)
      length += datagram.length
    }
    message.setUint32(HEADER_BYTES + 8, length, true)
    message.setUint16(control + 16, datagrams[from]!.length, true)
    if (libc.sendmsg(fd, at, MSG_DONTWAIT) >= 0) return undefined
    const errno = read.i32(libc.__errno_location()!)
    if (errno === EAGAIN) return 'full'
    return errno === ECONNREFUSED ? 'refused' : 'impossible'
  }
}

function open(ffi: typeof import('bun:ffi')) {
  try {
    return openLibc(ffi, {
      sendmsg: { args: ['int', 'ptr', 'int'], returns: 'i32' },
      __errno_location: { args: [], returns: 'ptr' },
    })
  } catch {
    // Datagrams are sent one by one.
    return undefined
  }
}
