// A long road: carries packets between two network interfaces, each way DELAY_MS late, and
// loses a share of them. `relay.ts DELAY_MS LOSS NAME NAME`.
//
// It works below TCP, so that a connection over it is one connection from end to end and feels delay and loss itself.
// The loop blocks in `ppoll`: Bun's own sockets know nothing of a tun device.

import { dlopen, ptr } from 'bun:ffi'

const [delayMs = '50', loss = '0', ...names] = process.argv.slice(2)

const O_RDWR_NONBLOCK = 0o4002
const TUNSETIFF = 0x400454ca
/** IFF_TUN and IFF_NO_PI: bare IP packets. */
const TUN_FLAGS = 0x1001
const POLLIN = 1
/** Longer than any packet of an interface with an MTU of 1,500. */
const MAX_PACKET_BYTES = 2048
/** Whoever forgot this process does not keep it for ever. */
const MAX_LIFE_MS = 30 * 60_000

const { symbols: libc } = dlopen('libc.so.6', {
  open: { args: ['ptr', 'i32'], returns: 'i32' },
  ioctl: { args: ['i32', 'u64', 'ptr'], returns: 'i32' },
  ppoll: { args: ['ptr', 'u64', 'ptr', 'ptr'], returns: 'i32' },
  read: { args: ['i32', 'ptr', 'u64'], returns: 'i64' },
  write: { args: ['i32', 'ptr', 'u64'], returns: 'i64' },
})

function openTun(name: string): number {
  const fd = libc.open(ptr(Buffer.from('/dev/net/tun\0')), O_RDWR_NONBLOCK)
  const request = Buffer.alloc(40)
  request.write(name)
  request.writeUInt16LE(TUN_FLAGS, 16)
  if (fd < 0 || libc.ioctl(fd, TUNSETIFF, ptr(request)) < 0) throw new Error(`no tun device ${name}: root?`)
  return fd
}

interface Way {
  readonly from: number
  readonly to: number
  readonly packets: { readonly due: number; readonly bytes: Uint8Array }[]
}

const [left, right] = names.map(openTun)
if (left === undefined || right === undefined) throw new Error('two names are needed')
const ways: readonly Way[] = [
  { from: left, to: right, packets: [] },
  { from: right, to: left, packets: [] },
]
const waiting = Buffer.alloc(16)
for (const [index, { from }] of ways.entries()) {
  waiting.writeInt32LE(from, index * 8)
  waiting.writeInt16LE(POLLIN, index * 8 + 4)
}
/** Seconds and nanoseconds. */
const timeout = Buffer.alloc(16)
const packet = new Uint8Array(MAX_PACKET_BYTES)
console.log('ready')

while (performance.now() < MAX_LIFE_MS) {
  const now = performance.now()
  let next = now + 900
  for (const { to, packets } of ways) {
    for (let first = packets[0]; first !== undefined; first = packets[0]) {
      if (first.due > now) {
        next = Math.min(next, first.due)
        break
      }
      packets.shift()
      libc.write(to, ptr(first.bytes), first.bytes.length)
    }
  }
  // Milliseconds are too coarse for a road of one.
  timeout.writeBigInt64LE(BigInt(Math.max(0, Math.round((next - performance.now()) * 1e6))), 8)
  libc.ppoll(ptr(waiting), 2, ptr(timeout), null)
  for (const { from, packets } of ways) {
    const due = performance.now() + Number(delayMs)
    for (;;) {
      const count = Number(libc.read(from, ptr(packet), MAX_PACKET_BYTES))
      if (count <= 0) break
      if (Math.random() >= Number(loss)) packets.push({ due, bytes: packet.slice(0, count) })
    }
  }
}
