// What the kernel keeps of a connection that is spliced.

import { expect, test } from 'bun:test'
import { join } from 'node:path'
import type { Socket } from '../../src/socket.ts'
import { dialBun, listenBun } from '../../src/sockets/bun.ts'
import { descriptorOf } from '../../src/sockets/descriptor.ts'
import { BOUND_BYTES, mayBound, receiveBytes, windowBytes } from '../support/receive-buffer.ts'

const NOTHING = { received() {}, drained() {}, ended() {}, closed() {} }
/** As a service with `ProcSubset=pid` sees it. The shell runs what follows. */
const WITHOUT_PROC_SYS = ['unshare', '-m', 'sh', '-c', 'mount -t tmpfs none /proc/sys && exec "$@"', 'sh']
const mayHide = () => Bun.which('unshare') !== null && Bun.spawnSync([...WITHOUT_PROC_SYS, 'true']).success

test.skipIf(!mayBound())(
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
    expect(receiveBytes(descriptor)).toBe(BOUND_BYTES)
    // Its window may grow as far, and is not what it was when the buffer was bounded: that halved downloads over a lossy road.
    expect(windowBytes(descriptor)).toBe(BOUND_BYTES)
    splice?.stop()
    for (const socket of [one, other, far]) socket.terminate()
    listening.stop(true)
  },
)

test.skipIf(!mayBound() || !mayHide())('also in a service that does not see /proc/sys, as ours', () => {
  const program = join(import.meta.dir, '../support/receive-buffer-process.ts')
  const { stdout } = Bun.spawnSync([...WITHOUT_PROC_SYS, process.execPath, program], { stderr: 'inherit' })
  expect(Number(stdout.toString())).toBe(BOUND_BYTES)
})
