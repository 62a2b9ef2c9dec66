// When the lanes of a server have to end: also those that were granted and did not begin yet.

import { expect, test } from 'bun:test'
import { ServerLanes } from '../../src/parts/lanes/install.ts'
import { Deadlines } from '../../src/server/limits/deadlines.ts'
import { Quotas } from '../../src/server/limits/quotas.ts'
import { ANYTHING } from '../../src/server/settings/policy.ts'
import type { Tunnel } from '../../src/server/tunnels/tunnel.ts'
import { Tunnels } from '../../src/server/tunnels/tunnels.ts'
import { DEFAULT_BOUNDS } from '../support/bounded-server.ts'

const NOTHING = { reportRate: () => 0, counted() {}, ended() {}, measured: undefined }
const holder = new Quotas(() => DEFAULT_BOUNDS).of(ANYTHING, '127.0.0.1')

function tunnelsNamed(...names: string[]): { tunnels: Tunnels; lanes: ServerLanes; all: Tunnel[] } {
  const tunnels = new Tunnels(() => DEFAULT_BOUNDS, new Deadlines(() => {}))
  const lanes = new ServerLanes({ deadlines: tunnels.deadlines, parts: { harvest() {} } })
  tunnels.lanes = lanes
  const all = names.map(name => {
    const member = tunnels.claim('http', name, { holder })
    if (typeof member === 'string') throw new Error(member)
    return member.tunnel
  })
  return { tunnels, lanes, all }
}

/** Whether a lane that was granted would still serve. */
const isGood = (grant: { routingEpoch: Int32Array; grantedEpoch: number } | undefined) =>
  grant !== undefined && Atomics.load(grant.routingEpoch, 0) === grant.grantedEpoch

test('a lane that is about to begin is recalled with its tunnel, and with no other', () => {
  const { tunnels, lanes, all } = tunnelsNamed('one', 'two')
  const [one, two] = all.map(tunnel => lanes.grant(tunnel, NOTHING))
  expect([isGood(one), isGood(two)]).toEqual([true, true])
  all[0]!.routesChanged()
  expect([isGood(one), isGood(two)]).toEqual([false, true])
  tunnels.routesChanged()
  expect(isGood(two)).toBe(false)
})

test('a tunnel that is given back recalls it, and so does one more client', () => {
  const { lanes, all } = tunnelsNamed('one', 'two')
  const [one, two] = all.map(tunnel => lanes.grant(tunnel, NOTHING))
  all[0]!.remove('CLIENT_GONE')
  expect(isGood(one)).toBe(false)
  all[1]!.join(holder)
  expect(isGood(two)).toBe(false)
})

test('a recall costs nothing for the lanes of others', () => {
  const { lanes, all } = tunnelsNamed('one', 'two')
  const [one, two] = all
  const recallMs = () => {
    const { user } = process.cpuUsage()
    for (let count = 0; count < 10_000; count++) one!.routesChanged()
    return (process.cpuUsage().user - user) / 1_000
  }
  recallMs()
  const alone = recallMs()
  let stopped = 0
  for (let count = 0; count < 20_000; count++) {
    const ticket = lanes.grant(two!, NOTHING)
    const counts = { requests: 0, bytesIn: 0, bytesOut: 0, unreported: { requests: 0, errors: 0, bytes: 0 } }
    ticket.began({ counts, stop: () => stopped++ } as never) // all that is asked of a lane
  }
  // To walk 20,000 lanes 10,000 times takes seconds.
  expect(recallMs()).toBeLessThan(10 * alone + 200)
  expect(stopped).toBe(0)
  two!.routesChanged()
  expect(stopped).toBe(20_000)
})
