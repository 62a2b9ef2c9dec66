// What the kernel keeps of a connection that is spliced.

import { dlopen, FFIType, ptr } from 'bun:ffi'
import { expect, test } from 'bun:test'
import type { Socket } from '../../src/socket.ts'
import { dialBun, listenBun } from '../../src/sockets/bun.ts'
import { descriptorOf } from '../../src/sockets/descriptor.ts'

const NOTHING = { received() {}, drained() {}, ended() {}, closed() {} }
const SOL_SOCKET = 1
const SO_RCVBUF = 8
const IPPROTO_TCP = 6
const TCP_WINDOW_CLAMP = 10
const { symbols } = dlopen('libc.so.6', {
  getsockopt: {
    args: [FFIType.i32, FFIType.i32, FFIType.i32, FFIType.ptr, FFIType.ptr],
    returns: FFIType.i32,
  },
})

function optionOf(descriptor: number, level: number, option: number): number {
  const value = new Int32Array(1)
  expect(symbols.getsockopt(descriptor, level, option, ptr(value), ptr(new Int32Array([4])))).toBe(0)
  return value[0]!
}

test.skipIf(process.platform !== 'linux')(
  'a connection has a bounded receive buffer from its first splice on, without a large read before',
  async () => {
    const accepted = Promise.withResolvers<Socket>()
    const listening = listenBun({
      hostname: '127.0.0.1',
      accept(socket) {
        accepted.resolve(socket)
        return NOTHING
      },
    })
    const to = { host: '127.0.0.1', port: listening.port }
    const [one, other] = [await dialBun(to, NOTHING), await dialBun(to, NOTHING)]
    const far = await accepted.promise
    const descriptor = descriptorOf((one as unknown as { raw: Parameters<typeof descriptorOf>[0] }).raw)!
    const splice = one.spliceTo?.(other, 1_000_000, () => {})
    // The kernel's own default grows by itself; one that was set does not: twice what was asked for.
    expect(optionOf(descriptor, SOL_SOCKET, SO_RCVBUF)).toBe(3_276_800)
    // Its window may grow as far, and is not what it was when the buffer was bounded: that halved downloads over a lossy road.
    expect(optionOf(descriptor, IPPROTO_TCP, TCP_WINDOW_CLAMP)).toBe(3_276_800)
    splice?.stop()
    for (const socket of [one, other, far]) socket.terminate()
    listening.stop(true)
  },
)
