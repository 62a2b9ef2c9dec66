// Gives a UDP socket of Bun a larger receive buffer, which Bun has no option for: setsockopt of the C library, by FFI.

import { RECEIVE_BUFFER_BYTES } from '../datagram-socket.ts'

interface Platform {
  readonly libraries: readonly string[]
  readonly SOL_SOCKET: number
  readonly SO_RCVBUF: number
}

/** Constants of the systems' own headers. On others the buffer stays as it is. */
const PLATFORMS: Readonly<Record<string, Platform>> = {
  linux: { libraries: ['libc.so.6', `libc.musl-${muslName()}.so.1`], SOL_SOCKET: 1, SO_RCVBUF: 8 },
  darwin: { libraries: ['libSystem.B.dylib'], SOL_SOCKET: 0xffff, SO_RCVBUF: 0x1002 },
}

/** Does nothing where it cannot: datagrams are then lost sooner. */
type Enlarge = (socket: object) => void

let loading: Promise<Enlarge> | undefined

/** What enlarges the buffer of a socket. */
export function receiveBufferEnlarger(): Promise<Enlarge> {
  loading ??= load()
  return loading
}

async function load(): Promise<Enlarge> {
  // Imported late: what is bundled for Node must not name it at its top.
  const { dlopen, ptr } = await import('bun:ffi')
  const platform = PLATFORMS[process.platform]
  for (const library of platform?.libraries ?? []) {
    try {
      const { setsockopt } = dlopen(library, {
        setsockopt: { args: ['int', 'int', 'int', 'ptr', 'u32'], returns: 'int' },
      }).symbols
      const { SOL_SOCKET, SO_RCVBUF } = platform!
      // What it returns says no more than that the system gave less.
      return socket => {
        // Bun's types leave it out.
        const fd: unknown = 'fd' in socket ? socket.fd : undefined
        if (typeof fd !== 'number' || fd < 0) return
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, ptr(new Int32Array([RECEIVE_BUFFER_BYTES])), 4)
      }
    } catch {
      // Another C library: the next name, or none.
    }
  }
  return () => {}
}

function muslName(): string {
  return process.arch === 'arm64' ? 'aarch64' : 'x86_64'
}
