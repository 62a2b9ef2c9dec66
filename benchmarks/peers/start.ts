// The one way to start a tunnel: the server, then the clients, until each endpoint answers; stopped in reverse.

import { check } from '../load/load.ts'
import {
  type Child,
  type Launched,
  type LaunchOptions,
  launch,
  START_DEADLINE_MS,
} from '../measure/children.ts'
import { answering, listening } from '../measure/ports.ts'
import { reasonOf } from '../measure/samples.ts'
import { scratch } from './binary.ts'
import type { Endpoint, Peer, Plan, Ports, Program, Site, Tunnel } from './peer.ts'
import { RAW_ORIGIN } from './peer.ts'

/** How programs are started, and how one sees that a tunnel works; a slow road does both elsewhere. */
export interface Ground {
  readonly host: string
  dial?(port: number): { readonly host: string; readonly port: number }
  launch?(end: 'server' | 'client', command: readonly string[], options: LaunchOptions): Promise<Launched>
  listening?(this: void, port: number): Promise<void>
  /** What stands before the command of a visitor. */
  readonly visitor?: readonly string[]
}

export async function startTunnel(
  peer: Peer,
  ports: Ports,
  ground: Ground = { host: '127.0.0.1' },
): Promise<Tunnel> {
  const files = scratch(peer.name)
  const site: Site = {
    host: ground.host,
    dial: port => ground.dial?.(port) ?? { host: ground.host, port },
    file: files.write,
  }
  const children = { server: [] as Child[], client: [] as Child[] }
  const plan = placed(peer.plan(ports, site), ground)
  const stop = async (): Promise<void> => {
    for (const child of [...children.server, ...children.client].toReversed()) await child.stop()
    files.remove()
  }
  const start = async (end: 'server' | 'client', programs: readonly Program[]): Promise<void> => {
    const run = async ({ command, ...options }: Program): Promise<Child> =>
      ground.launch ? ground.launch(end, command, options) : launch(command, options)
    children[end] = []
    // One after the other: a server of several programs may need its first one.
    for (const program of end === 'server' ? programs : []) children.server.push(await run(program))
    if (end === 'client') {
      const begun = await Promise.allSettled(programs.map(run))
      for (const one of begun) if (one.status === 'fulfilled') children.client.push(one.value)
      for (const one of begun) if (one.status === 'rejected') throw one.reason
    }
    if (end === 'server') await Promise.all(plan.listens.map(port => (ground.listening ?? listening)(port)))
  }
  try {
    const began = performance.now()
    await start('server', plan.server)
    const serverReady = performance.now()
    await start('client', plan.client)
    await works(plan, ground, [...children.server, ...children.client])
    return {
      endpoints: plan.endpoints,
      get processes() {
        return {
          server: children.server.map(({ pid }) => pid),
          client: children.client.map(({ pid }) => pid),
        }
      },
      readyMs: { server: serverReady - began, client: performance.now() - serverReady },
      async restart(end) {
        for (const child of children[end]) {
          process.kill(child.pid, 'SIGKILL')
          await child.exited
        }
        await start(end, plan[end])
      },
      stop,
    }
  } catch (error) {
    const said = [...children.server, ...children.client].map(child => child.output()).join('\n')
    await stop()
    throw new Error(`${reasonOf(error)}\n${said}`, { cause: error })
  }
}

/** Visitors stand where the ground has them. */
function placed(plan: Plan, { visitor }: Ground): Plan {
  if (!visitor) return plan
  const endpoints = Object.entries(plan.endpoints).map(([name, to]) => [name, { ...to, visitor }] as const)
  return { ...plan, endpoints: Object.fromEntries(endpoints) }
}

/** The same as `answering`, asked by the load generator, which can stand elsewhere. */
async function answeringFrom(endpoints: Plan['endpoints'], to: string): Promise<void> {
  const deadline = performance.now() + START_DEADLINE_MS
  for (;;) {
    try {
      return await check(endpoints, {
        exchanges: [{ to, path: '/20', answer: '20' }],
        connections: 1,
        seconds: 1,
      })
    } catch (error) {
      if (performance.now() > deadline) throw error
    }
  }
}

/** What each app answers with 200, by its name. */
const PROBES: Readonly<Record<string, string>> = { app: '/favicon.ico' }

/** A program that ends instead is not waited for. */
async function works({ endpoints }: Plan, ground: Ground, children: readonly Child[]): Promise<void> {
  const wait = async ([name, to]: [string, Endpoint]): Promise<void> => {
    if (name === RAW_ORIGIN) await (ground.listening ?? listening)(to.port)
    else if (to.visitor) await answeringFrom({ [name]: to }, name)
    else await answering(to, PROBES[name] ?? '/20')
  }
  const done = Promise.all(Object.entries(endpoints).map(wait))
  const ends = children.map(async child => {
    const code = await child.exited
    throw new Error(`a program of it ended with ${code}: ${child.output().split('\n').at(-1)}`)
  })
  // What loses the race ends later, unheard.
  for (const one of [done, ...ends]) one.catch(() => {})
  await Promise.race([done, ...ends])
}
