// One attack from its scene to its finding.

import { type Child, interrupted } from '../../../benchmarks/measure/children.ts'
import type { Attack, Tally } from './attack.ts'
import { addUp, boundsOf, type Finding, judge, total, type Use } from './judge.ts'
import { Scene, type Watched } from './scene.ts'
import { aborted } from './wait.ts'

export interface TrialOptions {
  readonly source: string
  readonly seconds: number
  readonly isQuick: boolean
  readonly warmMs: number
  /** How long a server may take until it works normally again. */
  readonly recoveryMs: number
  /** Where the attack names no other. */
  readonly p99Ms: number
}

/** What is looked at when the recovery is over. */
const LAST_MS = 1_000

export async function runTrial(attack: Attack, options: TrialOptions): Promise<Finding> {
  const seconds = options.isQuick ? options.seconds : Math.max(options.seconds, attack.minSeconds ?? 0)
  const scene = await Scene.start(attack, options.source, seconds)
  try {
    return await measured(scene, attack, options)
  } finally {
    await scene.stop()
  }
}

async function measured(scene: Scene, attack: Attack, options: TrialOptions): Promise<Finding> {
  const bounds = boundsOf(attack, options)
  const tally: Tally = {}
  // The start of a process keeps one of two cores busy for as long as an attack may hold others up: it is over before the attack begins.
  const attackers = await startAttackers(scene, attack, tally)
  await attack.prepare?.(scene)
  if (!attack.isCold) await Bun.sleep(options.warmMs)
  await scene.settle()
  const { server, client } = scene
  const before = [useOf(server), useOf(client)] as const
  for (const end of [server, client]) end.forgetPeak()
  scene.told = {}
  const cpuBefore = server.cpuSeconds
  const began = performance.now()
  await attacked(scene, attack, tally, attackers, scene.target.seconds * 1_000)
  const ended = performance.now()
  // A process that is gone has used none.
  const serverCores = Math.max(0, ((server.cpuSeconds - cpuBefore) * 1_000) / (ended - began))
  const told = { ...scene.told }
  const peaks = [useOf(server, true), useOf(client, true)] as const
  await recovered(scene, options.recoveryMs, () =>
    [server, client].every((end, which) => end.files <= before[which]![1] + bounds.keptFiles),
  )
  await scene.settle()
  const reports = scene.reports.filter(({ at }) => at >= began)
  const lastFrom = performance.now() - Math.min(LAST_MS, options.recoveryMs / 2)
  const use = (which: 0 | 1, end: Watched): Use => {
    const [[mb, files], [peakMb, peakFiles], [mbAfter, filesAfter]] = [
      before[which],
      peaks[which],
      useOf(end),
    ]
    return { mb: [mb, Math.max(mb, peakMb), mbAfter], files: [files, peakFiles, filesAfter] }
  }
  return judge(
    attack,
    bounds,
    {
      during: addUp(reports.filter(({ at }) => at <= ended).map(({ report }) => report)),
      afterwards: addUp(reports.filter(({ at }) => at >= lastFrom).map(({ report }) => report)),
      server: use(0, server),
      client: use(1, client),
      hasServerDied: server.isGone,
      hasClientDied: client.isGone,
    },
    { tally, seconds: (ended - began) / 1_000, told, serverCores },
  )
}

/** No attack needs so long to end after its time. */
const STUCK_MS = 45_000

function fail(): never {
  throw new Error('the attack did not end')
}

/** They wait for a signal. What they did is added to `tally` when they are stopped. */
async function startAttackers(scene: Scene, attack: Attack, tally: Tally): Promise<readonly Child[]> {
  const add = (line: string): void => {
    if (!line.startsWith('did ')) return
    // What attacker-process.ts prints.
    for (const [name, count] of Object.entries(JSON.parse(line.slice(4)) as Tally)) {
      tally[name] = (tally[name] ?? 0) + count
    }
  }
  const count = attack.attack === undefined ? 0 : (attack.attackers ?? 1)
  return Promise.all(Array.from({ length: count }, () => scene.attacker(attack.name, add)))
}

async function attacked(
  scene: Scene,
  attack: Attack,
  tally: Tally,
  attackers: readonly Child[],
  ms: number,
): Promise<void> {
  const until = AbortSignal.any([AbortSignal.timeout(ms), interrupted])
  for (const { pid } of attackers) process.kill(pid, 'SIGUSR1')
  const stage = attack.stage?.(scene, tally, until) ?? Promise.resolve()
  const late = aborted(until).then(() => Bun.sleep(STUCK_MS))
  await Promise.all([Promise.race([stage, late.then(fail)]), aborted(until)])
  await Promise.all(attackers.map(attacker => attacker.stop()))
}

/** Until a second passed in which nothing failed, and descriptors are what they were; at most `ms`. */
async function recovered(scene: Scene, ms: number, isTidy: () => boolean): Promise<void> {
  const until = performance.now() + ms
  let fineSince = performance.now()
  while (performance.now() < until && !interrupted.aborted) {
    await Bun.sleep(100)
    const last = scene.reports.at(-1)
    if (last === undefined || total(last.report.failed) > 0 || last.report.right === 0)
      fineSince = performance.now()
    if (performance.now() - fineSince > LAST_MS && isTidy()) return
  }
}

function useOf(end: Watched, isPeak = false): readonly [mb: number, files: number] {
  return [(isPeak ? end.peakBytes : end.bytes) / 1e6, isPeak ? end.peakFiles : end.files]
}
