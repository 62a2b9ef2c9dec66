// A server that opens and resets streams without end must not make the client dial without end.

import { expect, test } from 'bun:test'
import { bounded } from '../../../src/client/origins/join.ts'
import type { Origin } from '../../../src/client/origins/origin.ts'
import type { Socket } from '../../../src/socket.ts'

const SOCKET: Socket = {
  write: bytes => bytes.length,
  end() {},
  terminate() {},
  pause() {},
  resume() {},
  remoteAddress: '',
  endpoints: () => undefined,
}
const HANDLER = { received() {}, drained() {}, ended() {}, closed() {} }

/** An origin whose dials go on until the test lets them end. */
function slowOrigin() {
  const dials: PromiseWithResolvers<Socket>[] = []
  const origin: Origin = {
    label: 'slow',
    url: 'http://slow',
    connect() {
      const dial = Promise.withResolvers<Socket>()
      dials.push(dial)
      return dial.promise
    },
  }
  return { origin, dials }
}

/** What a dial fails with; a dial that goes on is no failure. */
function failure(dial: Promise<Socket>): Promise<unknown> {
  const later = new Promise(resolve => setImmediate(resolve, 'still dialling'))
  return Promise.race([dial.then(() => 'connected').catch((error: unknown) => error), later])
}

test('refuses dials beyond the bound, and dials again when some ended well or badly', async () => {
  const { origin, dials } = slowOrigin()
  const guarded = bounded(origin, 2)
  const first = guarded.connect(HANDLER)
  const second = guarded.connect(HANDLER)
  expect(await failure(guarded.connect(HANDLER))).toMatchObject({ code: 'TUNNEL_BUSY' })
  expect(dials.length).toBe(2)
  dials[0]?.resolve(SOCKET)
  dials[1]?.reject(new Error('refused'))
  expect(await first).toBe(SOCKET)
  expect(await failure(second)).toMatchObject({ message: 'refused' })
  const third = guarded.connect(HANDLER)
  const fourth = guarded.connect(HANDLER)
  expect(dials.length).toBe(4)
  for (const dial of dials) dial.resolve(SOCKET)
  expect([await third, await fourth]).toEqual([SOCKET, SOCKET])
})
