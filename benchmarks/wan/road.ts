// Two network namespaces with a long, narrow and lossy road between them. Needs root; nothing outside them changes.

import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { type Child, finish, launch, START_DEADLINE_MS } from '../measure/children.ts'
import { CONGESTION } from '../measure/environment.ts'
import type { Ground } from '../peers/start.ts'

export interface RoadOptions {
  readonly rateMbit: number
  readonly oneWayMs: number
  /** Share of the packets that get lost, each way. */
  readonly loss: number
}

/** Where the server and the visitors are, and where the client and the app are. */
export const SERVER_ADDRESS = '10.77.0.1'
export const CLIENT_ADDRESS = '10.77.0.2'

type Side = 'server' | 'client'
const SIDES: readonly Side[] = ['server', 'client']

export class Road {
  readonly #id = process.pid
  #relay: Child | undefined

  /** Tunnels across it. */
  readonly ground: Ground = {
    host: SERVER_ADDRESS,
    launch: (end, command, options) =>
      launch([...this.#inside(end), ...command], {
        ...options,
        env: { ...options.env, BENCH_LISTEN: '0.0.0.0' },
      }),
    listening: port => this.#listening(port),
    visitor: this.#inside('server'),
  }

  /** Builds it. On failure, and at the end, `close` takes everything away again. */
  async open({ rateMbit, oneWayMs, loss }: RoadOptions): Promise<void> {
    process.on('exit', () => this.close())
    const tuns = { server: `lts${this.#id}`, client: `ltc${this.#id}` }
    const relay = [
      'bun',
      join(import.meta.dir, 'relay.ts'),
      String(oneWayMs),
      String(loss),
      tuns.server,
      tuns.client,
    ]
    this.#relay = await launch(relay, { ready: /^ready$/ })
    for (const side of SIDES) {
      run('ip', 'netns', 'add', this.#space(side))
      run('ip', 'link', 'set', tuns[side], 'netns', this.#space(side))
      const inside = (...command: string[]): void => run(...this.#inside(side), ...command)
      inside('ip', 'link', 'set', 'lo', 'up')
      inside('ip', 'link', 'set', tuns[side], 'name', 'wan')
      const address = side === 'server' ? SERVER_ADDRESS : CLIENT_ADDRESS
      inside('ip', 'address', 'add', `${address}/30`, 'dev', 'wan')
      inside('ip', 'link', 'set', 'wan', 'mtu', '1500', 'up')
      // A queue of 100 ms, one round trip, as the modem of a home has it or more.
      inside(...`tc qdisc add dev wan root tbf rate ${rateMbit}mbit burst 64kb latency 100ms`.split(' '))
    }
  }

  /** Congestion control of its ends: that of the machine, whatever the suite around it has. */
  get congestion(): string {
    return spawnSync('ip', [...this.#inside('client').slice(1), 'cat', CONGESTION])
      .stdout.toString()
      .trim()
  }

  close(): void {
    const relay = this.#relay
    this.#relay = undefined
    if (!relay) return
    void relay.stop()
    for (const side of SIDES) spawnSync('ip', ['netns', 'del', this.#space(side)])
  }

  /** Something listens on the port, on either side. */
  async #listening(port: number): Promise<void> {
    const probes = SIDES.map(side => [...this.#inside(side), 'ss', '-Hltn', `sport = :${port}`])
    const deadline = performance.now() + START_DEADLINE_MS
    for (;;) {
      const found = await Promise.all(probes.map(probe => finish(probe)))
      if (found.some(({ stdout }) => stdout.includes('LISTEN'))) return
      if (performance.now() > deadline) throw new Error(`nothing listens on ${port}`)
    }
  }

  #inside(side: Side): readonly string[] {
    return ['ip', 'netns', 'exec', this.#space(side)]
  }

  #space(side: Side): string {
    return `lt-wan-${this.#id}-${side}`
  }
}

function run(...words: readonly string[]): void {
  const { status, stderr, error } = spawnSync(words[0]!, words.slice(1))
  if (status !== 0) throw new Error(`${words.join(' ')}: ${error?.message ?? stderr.toString()}`)
}
