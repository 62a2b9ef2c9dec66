// Connections within this machine are not paced, where BBR is what the system chooses. Skipped where BBR is not to be had.

import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { loadFfi, openLibc, UNPACE_SYMBOLS, unpace } from '../../src/libc.ts'
import { listenBun } from '../../src/sockets/bun.ts'
import { descriptorOf } from '../../src/sockets/descriptor.ts'

const setting = (name: string): string => {
  try {
    return readFileSync(`/proc/sys/net/ipv4/${name}`, 'utf8').trim()
  } catch {
    return ''
  }
}
const hasBbr = setting('tcp_available_congestion_control').split(' ').includes('bbr')
const isBbrDefault = setting('tcp_congestion_control') === 'bbr'

const [IPPROTO_TCP, TCP_CONGESTION] = [6, 13]

const libc = () => openLibc(loadFfi(), UNPACE_SYMBOLS)

/** The congestion control of a connection or listener. */
function algorithmOf(descriptor: number): string {
  const name = new Uint8Array(16)
  const length = new Uint32Array([name.length])
  const { ptr } = loadFfi()
  libc().getsockopt(descriptor, IPPROTO_TCP, TCP_CONGESTION, ptr(name), ptr(length))
  return Buffer.from(name).toString('latin1').replace(/\0.*/, '')
}

test.skipIf(!hasBbr)('BBR is replaced, and nothing else is', () => {
  const { ptr } = loadFfi()
  using listener = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } })
  const descriptor = descriptorOf(listener) ?? -1
  for (const [given, own] of [
    ['bbr', 'reno'],
    ['reno', 'reno'],
    ['cubic', 'cubic'],
  ] as const) {
    const name = Buffer.from(given)
    // Not every process may choose every one.
    if (libc().setsockopt(descriptor, IPPROTO_TCP, TCP_CONGESTION, ptr(name), name.length) !== 0) continue
    unpace(libc(), ptr, descriptor)
    expect(algorithmOf(descriptor)).toBe(own)
  }
})

test.skipIf(!isBbrDefault)('of listeners, those for this machine alone', async () => {
  for (const [hostname, algorithm] of [
    ['127.0.0.1', 'reno'],
    ['::1', 'reno'],
    ['localhost', 'reno'],
    ['0.0.0.0', 'bbr'],
  ] as const) {
    const { promise, resolve } = Promise.withResolvers<number>()
    const listening = listenBun({
      hostname,
      accept(socket) {
        resolve(descriptorOf((socket as unknown as { readonly raw: object }).raw) ?? -1) // Bun's own socket
        return { received() {}, drained() {}, ended() {}, closed() {} }
      },
    })
    const host = hostname === '0.0.0.0' ? '127.0.0.1' : hostname
    const visitor = await Bun.connect({ hostname: host, port: listening.port, socket: { data() {} } })
    expect([hostname, algorithmOf(await promise)]).toEqual([hostname, algorithm])
    visitor.terminate()
    listening.stop(true)
  }
})
