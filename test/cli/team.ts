// `localtunnels server --workers` in a test: its processes, and clients at one of them.

import { setDefaultTimeout } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { TunnelClient, type TunnelClientOptions } from '../../src/index.ts'
import { eventually } from '../support/events.ts'
import { freePort } from '../support/ports.ts'
import { folder } from '../support/programs.ts'
import { type Running, start } from './bin.ts'

/** Three programs start, and more: on a busy machine that is more than the 5 s of a test that runs alone without `--timeout`. */
setDefaultTimeout(20_000)

/** What the next `closeAll` undoes, the last first. */
export const closing: (() => unknown)[] = []
export async function closeAll(): Promise<void> {
  for (const close of closing.splice(0).toReversed()) await close()
}

/** A server of several processes. */
export class Team {
  readonly port: number = freePort()
  readonly run: Running
  readonly #folder: string

  private constructor(dir: string, flags: readonly string[]) {
    this.#folder = dir
    this.run = start(['server', '--json', '--host', '127.0.0.1', '--port', String(this.port), ...flags], {
      XDG_RUNTIME_DIR: dir,
      XDG_STATE_HOME: dir,
    })
    closing.push(async () => {
      this.run.kill('SIGKILL')
      // Workers whose parent is gone end by themselves; those that a test froze do not.
      for (const [, pid] of this.workers()) signal(pid, 'SIGKILL')
      await this.run[Symbol.asyncDispose]()
    })
  }

  static async start(count: number, ...flags: readonly string[]): Promise<Team> {
    const dir = await folder('workers')
    closing.push(() => dir[Symbol.asyncDispose]())
    const team = new Team(dir.path, ['--workers', String(count), ...flags])
    await eventually(() => team.workers().size === count, 'the workers').catch(error => {
      throw new Error(`${error.message}: ${team.run.stdout}${team.run.stderr}`)
    })
    await team.run.printed(/"type":"listening"/)
    return team
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`
  }

  /** The private folder of the sockets; of the last one that was made. */
  get sockets(): readonly string[] {
    return readdirSync(this.#folder).flatMap(name =>
      readdirSync(join(this.#folder, name)).map(file => join(this.#folder, name, file)),
    )
  }

  /** Process numbers by the number of the worker; of those that were started again the last one. */
  workers(): ReadonlyMap<number, number> {
    const found = this.sockets.map(path => /worker-(\d+)-(\d+)$/.exec(path))
    const alive = found.filter(match => match !== null && signal(Number(match[2]), 0))
    return new Map(alive.map(match => [Number(match?.[1]), Number(match?.[2])]))
  }

  pid(number: number): number {
    return this.workers().get(number) ?? Number.NaN
  }

  /** A client at this worker: the others are frozen while it connects. */
  async client(
    worker: number,
    subdomain: string,
    fetch: (request: Request) => Response | Promise<Response>,
    options: TunnelClientOptions = {},
  ): Promise<TunnelClient> {
    const others = [...this.workers()].filter(([number]) => number !== worker)
    for (const [, pid] of others) await freeze(pid)
    const own = { server: this.url, subdomain, exact: true, fetch, maxBackoffMs: 100 }
    const client = new TunnelClient({ ...own, ...options })
    client.on('error', () => {})
    closing.push(() => client.disconnect())
    const connecting = client.connect()
    // What is asked of the directory is answered by their parent.
    await connecting
    for (const [, pid] of others) signal(pid, 'SIGCONT')
    return client
  }
}

export function signal(pid: number, name: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, name)
  } catch {
    return false
  }
}

export async function freeze(pid: number): Promise<void> {
  signal(pid, 'SIGSTOP')
  const stopped = () =>
    readdirSync(`/proc/${pid}/task`).every(task => {
      const stat = readFileSync(`/proc/${pid}/task/${task}/stat`, 'latin1')
      return stat.startsWith('T', stat.lastIndexOf(')') + 2)
    })
  await eventually(stopped, 'the worker to stand still')
}
