// Tells a supervisor such as systemd the state of the service (sd_notify(3)): sends one datagram to the socket that
// NOTIFY_SOCKET names.

import { spawnSync } from 'node:child_process'
import { loadFfi, openLibc } from '../libc.ts'

const SYMBOLS = {
  socket: { args: ['i32', 'i32', 'i32'], returns: 'i32' },
  sendto: { args: ['i32', 'ptr', 'u64', 'i32', 'ptr', 'u32'], returns: 'i64' },
  close: { args: ['i32'], returns: 'i32' },
} as const

const AF_UNIX = 1
const SOCK_DGRAM = 2
const SOCK_CLOEXEC = 0x80000
const MSG_DONTWAIT = 0x40
/** The maximum size of `sun_path`. */
const MOST_BYTES = 108
/** The time in milliseconds that `systemd-notify` may take. It waits until systemd has read the datagram. */
const TIMEOUT_MS = 2_000

/**
 * Sends the lines of `state`, such as `READY=1`. Does nothing without such a socket, or if the socket does not accept
 * the datagram: the supervisor has timeouts of its own.
 */
export function notify(state: string, environment: Readonly<Record<string, string | undefined>>): void {
  const { NOTIFY_SOCKET } = environment
  if (NOTIFY_SOCKET === undefined || process.platform !== 'linux') return
  if (typeof Bun === 'undefined') {
    // Node has neither such sockets nor foreign calls.
    spawnSync('systemd-notify', state.split('\n'), { env: environment, stdio: 'ignore', timeout: TIMEOUT_MS })
    return
  }
  // `@` stands for the zero byte of an abstract name.
  const path = Buffer.from(NOTIFY_SOCKET.replace(/^@/, '\0'))
  if (path.length === 0 || path.length > MOST_BYTES) return
  try {
    const ffi = loadFfi()
    const libc = openLibc(ffi, SYMBOLS)
    const descriptor = libc.socket(AF_UNIX, SOCK_DGRAM + SOCK_CLOEXEC, 0)
    if (descriptor < 0) return
    const address = Buffer.concat([Buffer.from(new Uint16Array([AF_UNIX]).buffer), path])
    const text = Buffer.from(state)
    libc.sendto(descriptor, ffi.ptr(text), text.length, MSG_DONTWAIT, ffi.ptr(address), address.length)
    libc.close(descriptor)
  } catch {
    // This runtime makes no foreign calls.
  }
}
