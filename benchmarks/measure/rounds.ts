// The one engine: tunnels started and checked, rounds interleaved, figures collected into tables.
//
// A stage is a set of tunnels in front of the same apps, and the rows that are measured on them. All tunnels of a stage
// are up at once; in every round each row is measured on all of them in turn, from another one on in each round, every other round in reverse. Rows
// that need a process that has done nothing yet start one for themselves.

import { type OriginName, type Origins, startOrigins } from '../origin/origins.ts'
import type { Peer, Tunnel } from '../peers/peer.ts'
import { type Ground, startTunnel } from '../peers/start.ts'
import { interrupted } from './children.ts'
import { busyTimes, type MachineTimes } from './proc.ts'
import type { Cell, Column, Path, ResultRow, Table } from './result.ts'
import { reasonOf } from './samples.ts'
import { fault, msLeft, options, printTable, refuse, rounds, say, seconds, USUAL_ROUNDS } from './suite.ts'

export type Figures = Readonly<Record<string, number>>

export interface Scene {
  readonly tunnel: Tunnel
  readonly peer: Peer
  readonly origins: Origins
}

export interface Row {
  readonly id: string
  readonly title: string
  readonly columns: readonly Column[]
  readonly note?: string
  /** Default: `tls` where all of ours take visitors over TLS. */
  readonly path?: Path
  /** The app that it asks: where that one is not there, the row is left out. */
  readonly origin?: OriginName
  /** Needs processes that have done nothing yet: the tunnel is started for it and stopped behind it. */
  readonly fresh?: true
  /** It is long and steady: not more rounds than these. */
  readonly atMost?: number
  /** Seconds that it takes, about. Default: those of one measurement. */
  readonly lasts?: number
  /** Why a tunnel cannot take part, if so: that is no failure. */
  excludes?(peer: Peer): string | undefined
  /** Sends each request once and compares the answer. Throws where it is wrong. */
  check?(scene: Scene): Promise<void>
  take(scene: Scene): Promise<Figures>
}

export interface Stage {
  readonly origins: readonly OriginName[]
  readonly peers: readonly Peer[]
  readonly rows: readonly Row[]
  /** Where its tunnels run. Default: on loopback. */
  readonly ground?: Ground
  /** Work before the first figure of a tunnel: what a runtime compiles in its first seconds. Default: its first row, uncounted. */
  warmUp?(scene: Scene): Promise<unknown>
}

export interface Measured {
  readonly tables: readonly Table[]
  readonly versions: Readonly<Record<string, string>>
}

/** In the middle of each measurement: other work on the machine, and cores that the hypervisor took away. */
const MACHINE: readonly Column[] = [
  { key: 'foreign', title: 'other work', unit: 'cores', better: 'neither' },
  { key: 'steal', title: 'steal', unit: '%', better: 'neither' },
]

/** Seconds to start and warm a tunnel, and those around a measurement, about. */
const [START_S, TAKE_S] = [2, 0.1]

/** One peer hangs now and then right after its start. Every tunnel gets as many attempts. */
const START_ATTEMPTS = 2

/** The first stage of a suite is measured whatever time there is. */
let hasMeasured = false

/** `more`: tables of the suite that are measured by another call. `part`: of the time that is left, the share of this one. */
export async function measure(
  stages: readonly Stage[],
  more: readonly string[] = [],
  part = 1,
): Promise<Measured> {
  const chosen = stages.map(stage => ({ ...stage, rows: stage.rows.filter(({ id }) => isWanted(id)) }))
  const known = [...new Set([...stages.flatMap(({ rows }) => rows.map(({ id }) => wordOf(id))), ...more])]
  const unknown = options.only?.find(id => !known.includes(id))
  if (unknown !== undefined) refuse(`there is no table ${unknown}; there are: ${known.join(' ')}`)
  const versions: Record<string, string> = {}
  const tables: Table[] = []
  // Of a budget each stage has its share, by what starting and measuring its tunnels takes.
  const weightOf = ({ rows, peers }: Stage): number =>
    rows.length === 0
      ? 0
      : rows.reduce(
          (sum, row) => sum + Math.min(rounds, row.atMost ?? rounds) * secondsOf(row, peers),
          peers.length * START_S,
        )
  let isLate = false
  for (const [index, stage] of chosen.entries()) {
    if (stage.rows.length === 0 || stage.peers.length === 0 || interrupted.aborted) continue
    const least = stage.peers.length * START_S + secondsOf(stage.rows[0]!, stage.peers)
    isLate = hasMeasured && msLeft() < least * 1_000
    if (isLate) {
      say(`left out, the time is over: ${stage.rows.map(({ id }) => id).join(' ')}`)
      continue
    }
    hasMeasured = true
    const weights = chosen.slice(index).map(weightOf)
    const share = weights[0]! / weights.reduce((sum, one) => sum + one, 0)
    const until = performance.now() + msLeft() * share * part
    for (const table of await new StageRun(stage, versions, until).run()) {
      tables.push(table)
      printTable(table)
    }
  }
  const own = tables.flatMap(({ rows }) => rows.filter(({ role }) => role === 'ours'))
  const isOursWanted = chosen.some(
    ({ peers, rows }) => rows.length > 0 && peers.some(({ role }) => role === 'ours'),
  )
  const isMeasured = own.some(({ cells }) => Object.values(cells).some(cell => typeof cell === 'object'))
  if (isOursWanted && !isMeasured && !isLate && !interrupted.aborted) fault('nothing of it was measured')
  return { tables, versions }
}

/** Estimates one round of a row with all its tunnels. */
function secondsOf({ fresh, lasts = seconds }: Row, peers: readonly Peer[]): number {
  return peers.length * (lasts + (fresh ? START_S : TAKE_S))
}

/** Rows on several roads share the word in front. */
function wordOf(id: string): string {
  return id.split(' ', 1)[0]!
}

function isWanted(id: string): boolean {
  return options.only === undefined || options.only.includes(wordOf(id))
}

class StageRun {
  readonly #stage: Stage
  readonly #versions: Record<string, string>
  readonly #scenes = new Map<string, Scene>()
  /** By row and peer: a figure for each round, or why there is none. */
  readonly #taken = new Map<string, (Figures | string)[]>()
  readonly #until: number
  #present: readonly Peer[] = []

  /** What would end after `until` does not begin, but for the first round of the first row. */
  constructor(stage: Stage, versions: Record<string, string>, until: number) {
    this.#stage = stage
    this.#versions = versions
    this.#until = until
  }

  async run(): Promise<readonly Table[]> {
    const origins = await startOrigins(this.#stage.origins, this.#stage.ground)
    try {
      this.#present = await this.#detect()
      const shared = this.#stage.rows.filter(({ fresh }) => !fresh)
      if (shared.length > 0) for (const peer of this.#present) await this.#start(peer, origins, shared)
      /** What one round of a row took, by its id. */
      const tookMs = new Map<string, number>()
      for (let round = 0; round < rounds && !interrupted.aborted; round++) {
        // Each tunnel comes first and last once, and behind another one in every other round.
        const turned = this.#present.map((_, at, all) => all[(at + round) % all.length]!)
        const order = round % 2 ? turned.toReversed() : turned
        for (const row of this.#stage.rows.filter(({ atMost = rounds }) => round < atMost)) {
          const began = performance.now()
          // A round that would not be whole is none; one of a shorter row may be.
          const takes =
            round === 0
              ? secondsOf(row, this.#present) * 1_000
              : (tookMs.get(row.id) ?? Number.POSITIVE_INFINITY)
          if (began + takes > this.#until && !(round === 0 && row === this.#stage.rows[0])) {
            if (round === 0) say(`${row.title}: left out, the time is over`)
            continue
          }
          for (const peer of order) await this.#take(row, peer, round, origins)
          tookMs.set(row.id, performance.now() - began)
        }
      }
      await this.#stillThere(shared)
    } finally {
      for (const { tunnel } of this.#scenes.values()) await tunnel.stop()
      await origins.stop()
    }
    return this.#stage.rows.map(row => this.#table(row)).filter(({ rows }) => rows.length > 0)
  }

  /** A peer that is not installed is said and left out. Ours is always there. */
  async #detect(): Promise<readonly Peer[]> {
    const present: Peer[] = []
    for (const peer of this.#stage.peers) {
      const detected = await peer.detect()
      if ('version' in detected) {
        this.#versions[peer.name] = detected.version
        present.push(peer)
      } else if (peer.role === 'ours') fault(`${peer.name}: ${detected.missing}`)
      else say(`${peer.name} is left out: ${detected.missing}`)
    }
    return present
  }

  async #start(peer: Peer, origins: Origins, rows: readonly Row[]): Promise<void> {
    let why = ''
    for (let attempt = 1; attempt <= START_ATTEMPTS && !interrupted.aborted; attempt++) {
      try {
        const scene = { tunnel: await startTunnel(peer, origins.ports, this.#stage.ground), peer, origins }
        this.#scenes.set(peer.name, scene)
        for (const row of rows) {
          const excluded = row.excludes?.(peer)
          if (excluded === undefined && this.#missing(row, origins) === undefined)
            await row.check?.(scene).catch((error: unknown) => this.#failed(row, peer, 0, error))
        }
        // What fails here fails in the rows, too.
        const { warmUp = rows[0]!.take } = this.#stage
        await warmUp(scene).catch(() => {})
        return
      } catch (error) {
        why = reasonOf(error)
        say(`${peer.name} did not start (${attempt} of ${START_ATTEMPTS}): ${why}`)
      }
    }
    if (interrupted.aborted) return
    for (const row of rows) this.#failed(row, peer, 0, why)
  }

  /** What ends or hangs behind its last figure, or with it, fails no further one. */
  async #stillThere(rows: readonly Row[]): Promise<void> {
    for (const [name, scene] of this.#scenes) {
      if (scene.peer.role !== 'ours' || interrupted.aborted) continue
      const row = rows.find(
        one => one.check && !one.excludes?.(scene.peer) && this.#missing(one, scene.origins) === undefined,
      )
      await row?.check?.(scene).catch((error: unknown) => {
        if (!interrupted.aborted) fault(`${name} does not answer at the end: ${reasonOf(error)}`)
      })
    }
  }

  #missing({ origin }: Row, { missing }: Origins): string | undefined {
    return origin === undefined ? undefined : missing[origin]
  }

  async #take(row: Row, peer: Peer, round: number, origins: Origins): Promise<void> {
    if (interrupted.aborted) return
    const key = `${row.id} ${peer.name}`
    const before = this.#taken.get(key) ?? []
    const missing = this.#missing(row, origins)
    const excluded = row.excludes?.(peer) ?? missing
    // What cannot take part, or answered wrongly, gets no further figure.
    if (excluded !== undefined) return void this.#taken.set(key, [excluded])
    if (before.some(one => typeof one === 'string')) return
    say(`${row.title}: ${peer.name}, round ${round + 1} of ${rounds}`)
    try {
      const scene = row.fresh ? await this.#fresh(row, peer, origins) : this.#scenes.get(peer.name)
      if (!scene) throw new Error('it did not start')
      try {
        const machine = busyTimes()
        const figures = await row.take(scene)
        if (!interrupted.aborted)
          this.#taken.set(key, [...before, { ...figures, ...machineFigures(machine, figures) }])
      } finally {
        if (row.fresh) await scene.tunnel.stop()
      }
    } catch (error) {
      if (!interrupted.aborted) this.#failed(row, peer, round, error)
    }
  }

  async #fresh(row: Row, peer: Peer, origins: Origins): Promise<Scene> {
    const scene = { tunnel: await startTunnel(peer, origins.ports, this.#stage.ground), peer, origins }
    try {
      await row.check?.(scene)
      return scene
    } catch (error) {
      await scene.tunnel.stop()
      throw error
    }
  }

  #failed(row: Row, peer: Peer, round: number, error: unknown): void {
    const why = reasonOf(error)
    this.#taken.set(`${row.id} ${peer.name}`, [`failed: ${why}`])
    const where = `${row.title}: ${peer.name}, round ${round + 1}: ${why}`
    if (peer.role === 'ours') fault(where)
    else say(where)
  }

  #table(row: Row): Table {
    const lines: ResultRow[] = []
    const columns = [...row.columns, ...MACHINE]
    for (const peer of this.#present) {
      const taken = this.#taken.get(`${row.id} ${peer.name}`)
      if (taken) lines.push({ name: peer.name, role: peer.role, cells: cellsOf(taken, columns) })
    }
    // Ctrl+C leaves fewer than were wanted.
    const count = Math.min(
      ...lines.flatMap(({ cells }) =>
        Object.values(cells).flatMap(cell => (typeof cell === 'object' ? [cell.length] : [])),
      ),
      row.atMost ?? rounds,
      rounds,
    )
    const areTls = this.#present.filter(({ role }) => role === 'ours').every(({ tls }) => tls)
    const path = row.path ?? (areTls && this.#present.length > 0 ? 'tls' : undefined)
    const few = `Median of ${count} round${count === 1 ? '' : 's'}, fewer than ${USUAL_ROUNDS}.`
    const notes = [row.note, count < USUAL_ROUNDS ? few : undefined, ceiling(row, lines)].filter(Boolean)
    return {
      id: row.id,
      title: row.title,
      columns,
      rows: lines,
      ...(Number.isFinite(count) && { rounds: count }),
      ...(path && { path }),
      ...(notes.length > 0 && { note: notes.join(' ') }),
    }
  }
}

export function cellsOf(
  taken: readonly (Figures | string)[],
  columns: readonly Column[],
): Record<string, Cell> {
  const failure = taken.find(one => typeof one === 'string')
  const cells: Record<string, Cell> = {}
  for (const { key } of columns) {
    const values = taken.flatMap(one => (typeof one === 'object' && one[key] !== undefined ? [one[key]] : []))
    if (failure !== undefined) cells[key] = failure
    // A percentile that one round had too few answers for has no median, and no ratio within each round.
    else if (values.length === taken.length) cells[key] = values
  }
  return cells
}

/** From here on the generator or the app may be what was measured. */
const CEILING = 0.8

/** Tunnels that come near what the generator reaches without any, in the same run. */
function ceiling({ columns }: Row, rows: readonly ResultRow[]): string | undefined {
  const rate = columns.find(({ key, better }) => (key === 'rps' || key === 'mbps') && better === 'higher')
  const of = (row: ResultRow | undefined): number => {
    const cell = rate && row?.cells[rate.key]
    return typeof cell === 'object' ? Math.max(...cell) : Number.NaN
  }
  const direct = of(rows.find(({ name }) => name === 'direct'))
  const near = rows.filter(row => row.role !== 'floor' && of(row) > CEILING * direct)
  if (near.length === 0) return undefined
  const names = near.map(row => `${row.name} ${Math.round((100 * of(row)) / direct)} %`).join(', ')
  return `Near the generator's ceiling (direct): ${names}.`
}

function machineFigures(before: MachineTimes, figures: Figures): Figures {
  const after = busyTimes()
  const seconds = Math.max(0.001, (after.at - before.at) / 1000)
  const steal = (100 * (after.steal - before.steal)) / seconds / navigator.hardwareConcurrency
  const own = figures.ownSeconds
  return {
    steal,
    ...(own !== undefined && { foreign: Math.max(0, (after.busy - before.busy - own) / seconds) }),
  }
}
