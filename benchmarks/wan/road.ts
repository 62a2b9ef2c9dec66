// Two network namespaces with a long, narrow and lossy road between them. Needs root; nothing outside them changes.

import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'

export interface RoadOptions {
  readonly rateMbit: number
  readonly oneWayMs: number
  /** Share of the packets that get lost, each way. */
  readonly loss: number
  /** `bbr`, `cubic`, …; the machine's own when left out. */
  readonly congestion: string | undefined
}

/** Where the server and the visitors are, and where the client and the origin are. */
export const SERVER_ADDRESS = '10.77.0.1'
export const CLIENT_ADDRESS = '10.77.0.2'

export type Side = 'server' | 'client'

export class Road {
  readonly #children: ChildProcess[] = []
  readonly #id = process.pid

  /** Builds it. On failure, and at the end, `close` takes everything away again. */
  async open({ rateMbit, oneWayMs, loss, congestion }: RoadOptions): Promise<void> {
    const tuns = { server: `wan${this.#id}s`, client: `wan${this.#id}c` }
    const relay = spawn(
      process.execPath,
      [`${import.meta.dirname}/relay.ts`, String(oneWayMs), tuns.server, tuns.client],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    )
    this.#children.push(relay)
    await Promise.race([once(relay.stdout, 'data'), once(relay, 'exit').then(() => fail('the relay ended'))])
    for (const side of ['server', 'client'] as const) {
      const space = this.#space(side)
      run('ip', 'netns', 'add', space)
      run('ip', 'link', 'set', tuns[side], 'netns', space)
      const inside = (...command: string[]) => run('ip', 'netns', 'exec', space, ...command)
      inside('ip', 'link', 'set', 'lo', 'up')
      inside('ip', 'link', 'set', tuns[side], 'name', 'wan')
      const address = side === 'server' ? SERVER_ADDRESS : CLIENT_ADDRESS
      inside('ip', 'address', 'add', `${address}/30`, 'dev', 'wan')
      inside('ip', 'link', 'set', 'wan', 'mtu', '1500', 'up')
      // A queue of 100 ms, one round trip, as the modem of a home has it or more.
      inside(...`tc qdisc add dev wan root tbf rate ${rateMbit}mbit burst 64kb latency 100ms`.split(' '))
      if (congestion !== undefined) inside('sysctl', '-qw', `net.ipv4.tcp_congestion_control=${congestion}`)
      if (loss > 0) {
        const rule = `-A INPUT -i wan -m statistic --mode random --probability ${loss} -j DROP`
        inside('iptables', ...rule.split(' '))
      }
    }
  }

  /** Runs a script on one side until the road is closed; resolves with its first line. */
  async start(side: Side, script: string, ...args: string[]): Promise<string> {
    const child = this.#spawn(side, script, args)
    const line = await Promise.race([
      once(child.stdout!, 'data'),
      once(child, 'exit').then(() => fail(`${script} ended`)),
    ])
    return String(line)
  }

  /** Runs a script on one side to its end; resolves with what it printed. */
  async run(side: Side, script: string, ...args: string[]): Promise<string> {
    const child = this.#spawn(side, script, args)
    let printed = ''
    child.stdout?.on('data', (piece: Buffer) => (printed += piece.toString()))
    const [code] = await once(child, 'close')
    if (code !== 0) fail(`${script} ${args.join(' ')} failed: ${printed}`)
    return printed
  }

  async close(): Promise<void> {
    for (const child of this.#children) child.kill('SIGKILL')
    await Promise.all(
      this.#children
        .filter(child => child.exitCode === null && child.signalCode === null)
        .map(child => once(child, 'exit')),
    )
    for (const side of ['server', 'client'] as const) spawnSync('ip', ['netns', 'del', this.#space(side)])
  }

  #spawn(side: Side, script: string, args: readonly string[]): ChildProcess {
    const command = [process.execPath, `${import.meta.dirname}/${script}`, ...args]
    // `exec`: the child that is killed at the end is the script itself.
    const child = spawn('ip', ['netns', 'exec', this.#space(side), ...command], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    this.#children.push(child)
    return child
  }

  #space(side: Side): string {
    return `lt-wan-${this.#id}-${side}`
  }
}

function run(command: string, ...args: string[]): void {
  const { status, stderr, error } = spawnSync(command, args)
  if (status !== 0) fail(`${command} ${args.join(' ')}: ${error?.message ?? stderr.toString()}`)
}

function fail(message: string): never {
  throw new Error(message)
}
