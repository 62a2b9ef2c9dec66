// What is done to a cluster, and which visits may fail by it for how long: the seconds of docs/cluster.md.

import type { Random } from '../support/random.ts'
import { now, type Scene, SERVERS } from './scene.ts'
import type { Visit } from './visitors-process.ts'

/** A fault that happened. Times are milliseconds since 1970. */
export interface Occurrence {
  readonly fault: Fault
  /** What it happened to. */
  readonly what: string
  readonly from: number
  /** Visits that begin later do not fail. */
  readonly until: number
  /** Whether the documentation says that this visit may fail, if it was under way in that time. */
  covers(visit: Visit): boolean
}

export interface Fault {
  readonly title: string
  /** What docs/cluster.md says of it, short. */
  readonly allowed: string
  /** Network namespaces are needed. */
  readonly cuts?: true
  /** It takes seconds: for a run of a minute. */
  readonly isShort?: true
  /** Resolves when nothing is wrong any more. */
  run(scene: Scene, random: Random): Promise<Omit<Occurrence, 'fault' | 'from'>>
}

/** A client notices a server that says nothing within 25 s, and is elsewhere 2 s later. */
const SILENT_MS = 27_000
/** A server is killed: its clients are elsewhere. */
const KILLED_MS = 2_000
/** Redis is back, and the servers have told it all names. */
const REDIS_MS = 3_000
/** The same where the connections to it have died without a word: 2 s until that is seen, and as in `REDIS_MS`. */
const REDIS_SILENT_MS = 5_000
/** A server hears with its next sign of life, every 2 s, which names it has lost meanwhile. */
const AWAKE_MS = 2_500
/** A client that was away connects within a second; a server that is busy with others needs another one. */
const CLIENT_BACK_MS = 2_000

const at = (server: string, visit: Visit): boolean => SERVERS[visit.server] === server
const others = (server: string): readonly string[] => SERVERS.filter(one => one !== server)
const seconds = (random: Random, from: number, to: number): number =>
  (from + random.below((to - from) * 10) / 10) * 1_000
/** Both ends of a connection that was cut for so long send again after at most as long once more. */
const sentAgain = (cutAt: number, mendedAt: number): number => mendedAt + (mendedAt - cutAt)
const isUnreachable = ({ judgement }: Visit): boolean => judgement.includes('CLUSTER_UNREACHABLE')

export const FAULTS: readonly Fault[] = [
  {
    title: 'a server is killed, and started again',
    allowed: '2 s, what goes through it or to its clients',
    isShort: true,
    async run(scene, random) {
      const server = random.pick(SERVERS)
      const from = now()
      await scene.kill(server)
      await Bun.sleep(seconds(random, 1, 4))
      await scene.startServer(server)
      return {
        what: server,
        until: from + KILLED_MS,
        covers: visit => at(server, visit) || scene.holderOf(visit.name, from) === server,
      }
    },
  },
  {
    title: 'a server is stopped (SIGTERM), and started again',
    allowed: 'none',
    isShort: true,
    async run(scene, random) {
      const server = random.pick(SERVERS)
      await scene.end(server)
      await Bun.sleep(seconds(random, 0, 2))
      await scene.startServer(server)
      return { what: server, until: now(), covers: () => false }
    },
  },
  {
    title: 'a server replaces its program (SIGUSR2)',
    allowed: 'none',
    isShort: true,
    async run(scene, random) {
      const server = random.pick(SERVERS)
      await scene.upgrade(server)
      return { what: server, until: now(), covers: () => false }
    },
  },
  {
    title: 'a server is frozen',
    allowed: 'through it until it wakes, to its clients for 27 s at most',
    async run(scene, random) {
      const server = random.pick(SERVERS)
      const from = now()
      scene.signal(server, 'SIGSTOP')
      await Bun.sleep(seconds(random, 3, 32))
      scene.signal(server, 'SIGCONT')
      const until = now() + AWAKE_MS
      return {
        what: server,
        until,
        covers: visit =>
          at(server, visit) ||
          (scene.holderOf(visit.name, from) === server && visit.begin < from + SILENT_MS),
      }
    },
  },
  {
    title: 'Redis is killed, and started again empty',
    allowed: 'names that a server has not asked for: 503, until 3 s after it is back',
    isShort: true,
    async run(scene, random) {
      await scene.kill('redis')
      await Bun.sleep(seconds(random, 1, 8))
      await scene.startRedis()
      return { what: 'redis', until: now() + REDIS_MS, covers: isUnreachable }
    },
  },
  {
    title: 'Redis is frozen',
    allowed: 'as above',
    async run(scene, random) {
      scene.signal('redis', 'SIGSTOP')
      await Bun.sleep(seconds(random, 2, 12))
      scene.signal('redis', 'SIGCONT')
      return { what: 'redis', until: now() + REDIS_SILENT_MS, covers: isUnreachable }
    },
  },
  {
    title: 'a server is cut off from Redis',
    allowed: 'between it and the others, until 5 s after it is back',
    cuts: true,
    async run(scene, random) {
      const server = random.pick(SERVERS)
      const from = now()
      scene.places.cut(server, 'redis')
      await Bun.sleep(seconds(random, 3, 40))
      scene.places.mend(server, 'redis')
      return {
        what: server,
        until: now() + REDIS_SILENT_MS,
        covers: visit => at(server, visit) !== (scene.holderOf(visit.name, from) === server),
      }
    },
  },
  {
    title: 'a server is cut off from the other servers',
    allowed: 'between it and the others, until it is back',
    cuts: true,
    async run(scene, random) {
      const server = random.pick(SERVERS)
      const from = now()
      for (const other of others(server)) scene.places.cut(server, other)
      await Bun.sleep(seconds(random, 3, 20))
      for (const other of others(server)) scene.places.mend(server, other)
      return {
        what: server,
        until: now() + AWAKE_MS,
        covers: visit => at(server, visit) !== (scene.holderOf(visit.name, from) === server),
      }
    },
  },
  {
    title: 'a server is cut off from everything',
    allowed: 'through it until 5 s after it is back, to its clients for 27 s at most',
    cuts: true,
    async run(scene, random) {
      const server = random.pick(SERVERS)
      const from = now()
      const away = [...others(server), 'redis', ...scene.groups, 'visitors']
      for (const other of away) scene.places.cut(server, other)
      await Bun.sleep(seconds(random, 3, 32))
      for (const other of away) scene.places.mend(server, other)
      const until = now() + REDIS_SILENT_MS
      return {
        what: server,
        until,
        covers: visit =>
          at(server, visit) ||
          (scene.holderOf(visit.name, from) === server && visit.begin < from + SILENT_MS),
      }
    },
  },
  {
    title: 'clients are killed, and started again',
    allowed: '2 s, to them',
    isShort: true,
    async run(scene, random) {
      const group = random.pick(scene.groups)
      await scene.kill(group)
      await Bun.sleep(seconds(random, 0, 3))
      await scene.startClients(group)
      return {
        what: group,
        until: now() + CLIENT_BACK_MS,
        covers: visit => scene.groupOf(visit.name) === group,
      }
    },
  },
  {
    title: 'clients are frozen',
    allowed: 'to them, until 2 s after they wake',
    async run(scene, random) {
      const group = random.pick(scene.groups)
      scene.signal(group, 'SIGSTOP')
      await Bun.sleep(seconds(random, 2, 20))
      scene.signal(group, 'SIGCONT')
      return {
        what: group,
        until: now() + CLIENT_BACK_MS,
        covers: visit => scene.groupOf(visit.name) === group,
      }
    },
  },
  {
    title: 'clients are cut off from all servers',
    allowed:
      'to them, until their connections send again (twice the time of the cut) or are made anew (27 s)',
    cuts: true,
    async run(scene, random) {
      const group = random.pick(scene.groups)
      const from = now()
      for (const server of SERVERS) scene.places.cut(server, group)
      await Bun.sleep(seconds(random, 2, 20))
      for (const server of SERVERS) scene.places.mend(server, group)
      const mended = now()
      const until = Math.max(mended, Math.min(sentAgain(from, mended), from + SILENT_MS)) + CLIENT_BACK_MS
      return { what: group, until, covers: visit => scene.groupOf(visit.name) === group }
    },
  },
]
