// A conformance suite through every tunnel: `bun benchmarks/index.ts fidelity [--peers ours,frp] [--only path,hints]`.
//
// Each check has a source, and runs three times: it passes when all three did. Tunnels of ports are not asked what only
// one that reads HTTP can do. Exits with 1 when ours failed one that is not a known gap of its wire.

import { CHECKS, type Check } from '../fidelity/checks.ts'
import { Scene, ScriptedApp } from '../fidelity/scene.ts'
import { interrupted } from '../measure/children.ts'
import { column, type ResultRow, type Table } from '../measure/result.ts'
import { reasonOf } from '../measure/samples.ts'
import { conclude, fault, isQuick, options, refuse, say } from '../measure/suite.ts'
import { table } from '../measure/table.ts'
import { ALL, choose } from '../peers/list.ts'
import { oursJson } from '../peers/ours.ts'
import type { Peer } from '../peers/peer.ts'
import { startTunnel } from '../peers/start.ts'

const TIMES = isQuick || options.minutes !== undefined ? 1 : 3

type Outcome = { readonly passed: number; readonly why?: string } | 'not applicable'

const checks = CHECKS.filter(
  ({ id, category }) => options.only?.some(one => one === id || one === category) ?? true,
)
if (checks.length === 0) refuse(`there is no such check; there are: ${CHECKS.map(({ id }) => id).join(' ')}`)
// A mode that only moves bytes otherwise answers nothing new here.
const asked = ALL.filter(({ name }) => !/-stock$|-binary$|^frp-mux$/.test(name))
const peers = choose(asked, { names: options.peers, quick: isQuick }).filter(
  // A smoke run asks whether ours is right.
  ({ role }) => !isQuick || options.peers !== undefined || role === 'ours',
)
const outcomes = new Map<string, ReadonlyMap<string, Outcome>>()
const versions: Record<string, string> = {}
// All at once: most of the time is waiting for what does not come.
await Promise.all(
  peers.map(async peer => {
    const detected = await peer.detect()
    if ('missing' in detected) return say(`${peer.name} is left out: ${detected.missing}`)
    versions[peer.name] = detected.version
    try {
      outcomes.set(peer.name, await through(peer))
    } catch (error) {
      if (peer.role === 'ours') fault(`${peer.name}: ${reasonOf(error)}`)
      else say(`${peer.name} is left out: ${reasonOf(error)}`)
    }
  }),
)
for (const http of [true, false]) print(http)
await conclude('fidelity', 'Fidelity', [scores()], versions)

async function through(peer: Peer): Promise<ReadonlyMap<string, Outcome>> {
  const app = new ScriptedApp()
  const port = await app.listen()
  const found = new Map<string, Outcome>()
  let tunnel = await startTunnel(peer, { app: port })
  try {
    for (const check of checks) {
      if (interrupted.aborted) break
      if (check.needsHttp && !readsHttp(peer)) {
        found.set(check.id, 'not applicable')
        continue
      }
      let passed = 0
      let why: string | undefined
      for (let time = 0; time < TIMES; time++) {
        const scene = new Scene(app, tunnel.endpoints.app!)
        await app.begin()
        try {
          await check.run(scene)
          passed++
        } catch (error) {
          why ??= reasonOf(error)
        } finally {
          scene.close()
          await app.end()
        }
        // What one check broke must not fail the next one.
        if (why !== undefined && !(await isUp(tunnel.endpoints.app!.port))) {
          await tunnel.stop()
          tunnel = await startTunnel(peer, { app: port })
        }
        if (why !== undefined) break
      }
      const all = passed === TIMES
      found.set(check.id, { passed: all ? 1 : 0, ...(why !== undefined && { why }) })
      if (!all) say(`${peer.name}: ${check.category} ${check.id}: ${why}`)
      if (!all && peer.role === 'ours' && peer !== oursJson)
        fault(`${peer.name}: ${check.id} (${check.source}): ${why}`)
    }
  } finally {
    await tunnel.stop()
    await app.close()
  }
  return found
}

async function isUp(port: number): Promise<boolean> {
  return Bun.connect({ hostname: '127.0.0.1', port, socket: { data() {} } }).then(
    socket => {
      socket.terminate()
      return true
    },
    () => false,
  )
}

function readsHttp({ carries }: Peer): boolean {
  return carries === 'http'
}

/** Checks down, tunnels across: those that read HTTP, and those that move bytes, apart. */
function print(http: boolean): void {
  const names = peers
    .filter(peer => (peer.carries === 'http') === http && outcomes.has(peer.name))
    .map(({ name }) => name)
  if (names.length === 0) return
  const cell = (name: string, { id }: Check): string => {
    const outcome = outcomes.get(name)?.get(id)
    if (outcome === undefined) return ''
    return outcome === 'not applicable' ? '–' : outcome.passed ? 'yes' : '**no**'
  }
  const lines = checks.map(check => [
    `${check.category}: ${check.what}`,
    check.source,
    ...names.map(name => cell(name, check)),
  ])
  const total = names.map(name => {
    const { passed, asked } = scoreOf(name)
    return `${passed} of ${asked}`
  })
  console.log(`\n${http ? 'Tunnels that read HTTP' : 'Tunnels of ports'}\n`)
  console.log(table(['check', 'source', ...names], [...lines, ['all', '', ...total]]))
}

function scoreOf(name: string): { readonly passed: number; readonly asked: number } {
  const counted = checks.filter(({ source }) => !source.endsWith(', optional'))
  const all = counted
    .map(({ id }) => outcomes.get(name)?.get(id))
    .filter(one => one !== undefined && one !== 'not applicable')
  return { passed: all.filter(({ passed }) => passed === 1).length, asked: all.length }
}

/** 1 and 0 for each check, and the share of them. */
function scores(): Table {
  const columns = [
    column('passed', 'passed', '%', 'higher'),
    column('asked', 'asked', 'checks'),
    ...checks.map(({ id, category, what, source }) =>
      column(`${category}.${id}`, `${what} (${source})`, '', 'higher'),
    ),
  ]
  const rows = peers
    .filter(({ name }) => outcomes.has(name))
    .map(({ name, role }): ResultRow => {
      const { passed, asked } = scoreOf(name)
      const cells: Record<string, readonly number[] | string> = {
        passed: [(100 * passed) / Math.max(1, asked)],
        asked: [asked],
      }
      for (const { id, category } of checks) {
        const outcome = outcomes.get(name)?.get(id)
        if (outcome) cells[`${category}.${id}`] = outcome === 'not applicable' ? outcome : [outcome.passed]
      }
      return { name, role, cells }
    })
  return { id: 'fidelity', title: 'Conformance', columns, rows }
}
