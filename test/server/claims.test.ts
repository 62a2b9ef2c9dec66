// A port that is taken back while it is being opened.

import { expect, test } from 'bun:test'
import { Deadlines } from '../../src/server/limits/deadlines.ts'
import { Quotas } from '../../src/server/limits/quotas.ts'
import { ANYTHING } from '../../src/server/settings/policy.ts'
import { serverSettings } from '../../src/server/settings/settings.ts'
import { claim } from '../../src/server/tunnels/claims.ts'
import type { PortFront } from '../../src/server/tunnels/tunnel.ts'
import { Tunnels } from '../../src/server/tunnels/tunnels.ts'
import { deferred } from '../support/within.ts'

const WISH = { type: 'register', ref: 1, kind: 'udp', port: 20_001 } as const

/** A registration whose port opens when the test says so. */
function claiming() {
  let settings = serverSettings({ udpPorts: '20000-20009' })
  const tunnels = new Tunnels(() => settings.limits, new Deadlines(() => {}))
  const quotas = new Quotas(() => settings.limits)
  const opening = deferred<PortFront>()
  const stopped: string[] = []
  const holder = quotas.of(ANYTHING, '192.0.2.1')
  const claimed = claim(
    WISH,
    { rule: ANYTHING, holder },
    {
      tunnels,
      get terms() {
        return settings
      },
      open: { tcp: () => opening.promise, udp: () => opening.promise },
    },
  )
  const front: PortFront = {
    drain() {},
    release: () => stopped.push('released'),
    stop: code => stopped.push(code),
  }
  return {
    tunnels,
    holdings: quotas,
    claimed,
    stopped,
    open: () => opening.resolve(front),
    reload: (udpPorts: string) => {
      settings = serverSettings({ udpPorts })
    },
  }
}

test('a server that stops while a port is being opened closes the port again', async () => {
  const { tunnels, holdings: quotas, claimed, stopped, open } = claiming()
  tunnels.clear('SERVER_DRAINING')
  open()
  expect(await claimed).toBe('SERVER_DRAINING')
  expect(stopped).toEqual(['SERVER_DRAINING'])
  expect([tunnels.count, quotas.counts.tunnels, quotas.counts.ports]).toEqual([0, 0, 0])
})

test('a port that a reload takes away while it is being opened is closed again, and the client gets the reason', async () => {
  const { tunnels, holdings: quotas, claimed, stopped, open, reload } = claiming()
  reload('20005')
  tunnels.find('udp-20001')?.remove('CLIENT_GONE')
  open()
  expect(await claimed).toBe('NOT_ALLOWED')
  expect(stopped).toEqual(['NOT_ALLOWED'])
  expect([tunnels.count, quotas.counts.tunnels, quotas.counts.ports]).toEqual([0, 0, 0])
})
