// The honest part of one attack: app, server, client and visitors, a process each, and what was seen of them.

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Child, launch } from '../../../benchmarks/measure/children.ts'
import { cpuSeconds, openFiles, residentBytes } from '../../../benchmarks/measure/proc.ts'
import { certificate } from '../../../benchmarks/peers/certificate.ts'
import { type Attack, type AttackedOptions, HONEST_TOKEN, HOSTILE_TOKEN, type Target } from './attack.ts'
import type { ClientSpec } from './client-process.ts'
import type { Report, VisitorsSpec } from './visitors-process.ts'

const SAMPLE_MS = 100
/** Below the range from which the kernel takes the ports of outgoing connections: each scene has a part of it. */
const LOWEST_PORT = 10_000
const PORTS = 500
const PARTS = 40
let nextPart = process.pid

/** Memory and descriptors of one process. */
export class Watched {
  readonly child: Child
  isGone = false
  peakBytes = 0
  peakFiles = 0
  readonly #timer: Timer

  constructor(child: Child) {
    this.child = child
    void child.exited.then(() => {
      this.isGone = true
    })
    const sample = (): void => {
      this.peakBytes = Math.max(this.peakBytes, this.bytes)
      this.peakFiles = Math.max(this.peakFiles, this.files)
    }
    sample()
    this.#timer = setInterval(sample, SAMPLE_MS)
  }

  get bytes(): number {
    return residentBytes([this.child.pid])
  }

  get files(): number {
    return openFiles([this.child.pid])
  }

  get cpuSeconds(): number {
    return cpuSeconds([this.child.pid])
  }

  signal(name: NodeJS.Signals): void {
    if (!this.isGone) process.kill(this.child.pid, name)
  }

  forgetPeak(): void {
    this.peakBytes = this.bytes
    this.peakFiles = this.files
  }

  async stop(): Promise<void> {
    clearInterval(this.#timer)
    // A frozen process would not get the signal to end.
    this.signal('SIGCONT')
    await this.child.stop()
  }
}

export class Scene {
  readonly source: string
  readonly app: Child
  readonly appPorts: readonly [http: number, tcp: number, udp: number]
  readonly server: Watched
  readonly client: Watched
  readonly target: Target
  /** What visitors reported, in order, with the moment at which it came. */
  readonly reports: { readonly at: number; readonly report: Report }[] = []
  /** What the server told its listeners, such as `error DESCRIPTORS_SHORT`. */
  told: Record<string, number> = {}
  readonly #visitors: Child
  readonly #others: Child[] = []
  /** Worker threads of the server that the attack ended. */
  threadsEnded = 0

  private constructor(
    source: string,
    app: Child,
    appPorts: Scene['appPorts'],
    server: Watched,
    client: Watched,
    visitors: Child,
    target: Target,
  ) {
    this.source = source
    this.app = app
    this.appPorts = appPorts
    this.server = server
    this.client = client
    this.#visitors = visitors
    this.target = target
  }

  static async start(attack: Attack, source: string, seconds: number): Promise<Scene> {
    const app = await program('app-process.ts', [], /^ready (\d+) (\d+) (\d+)$/)
    const [http = 0, tcp = 0, udp = 0] = app.match?.slice(1).map(Number) ?? []
    // The scene exists before its processes send their first message.
    const heard: { scene?: Scene } = {}
    const firstPort = LOWEST_PORT + (nextPart++ % PARTS) * PORTS
    const { isTls = false } = attack
    const pair = isTls ? certificate() : undefined
    const options = serverOptions(`${firstPort}-${firstPort + PORTS - 1}`, {
      ...(pair !== undefined && { tls: { cert: pair.cert, key: pair.key } }),
      ...attack.server,
    })
    const server = await program(
      'server-process.ts',
      [JSON.stringify({ source, options })],
      /^ready (\d+) (\d+)$/,
      {
        openFiles: attack.openFiles,
        onLine(line) {
          const told = heard.scene?.told ?? {}
          // What server-process.ts prints.
          const news = line.startsWith('told ') ? (JSON.parse(line.slice(5)) as Record<string, number>) : {}
          for (const [what, count] of Object.entries(news)) told[what] = (told[what] ?? 0) + count
          if (line === 'thread ended' && heard.scene) heard.scene.threadsEnded++
          else if (/\berror\b|^Bun|panic/i.test(line) && process.env.LT_HOSTILE_VERBOSE)
            console.error('server:', line)
        },
      },
    )
    const [port = 0, tlsPort = 0] = server.match?.slice(1).map(Number) ?? []
    const clientSpec: ClientSpec = {
      source,
      port,
      isTls,
      token: HONEST_TOKEN,
      subdomain: 'app',
      app: http,
      tcp,
      udp,
    }
    const client = await program('client-process.ts', [JSON.stringify(clientSpec)], CLIENT_READY)
    const [honestTcpPort = 0, honestUdpPort = 0] = client.match?.slice(1, 3).map(Number) ?? []
    const target: Target = {
      source,
      port,
      tlsPort,
      tcpPorts: [firstPort, firstPort + PORTS - 1],
      honestHost: 'app.localhost',
      honestTcpPort,
      honestUdpPort,
      appPort: http,
      token: HOSTILE_TOKEN,
      serverPid: server.pid,
      seconds,
    }
    const visitorsSpec: VisitorsSpec = {
      port,
      isTls,
      host: 'app.localhost',
      tcpPort: honestTcpPort,
      appPort: http,
    }
    const visitors = await program('visitors-process.ts', [JSON.stringify(visitorsSpec)], /^ready$/, {
      onLine(line) {
        if (line.startsWith('report ')) {
          heard.scene?.reports.push({ at: performance.now(), report: JSON.parse(line.slice(7)) as Report }) // its own type
        }
      },
    })
    const watched = [new Watched(server), new Watched(client)] as const
    const scene = new Scene(source, app, [http, tcp, udp], ...watched, visitors, target)
    heard.scene = scene
    return scene
  }

  /** Another client beside the honest one, with a tunnel of its own. It yields as attackers do, and so do programs that are added. */
  async addClient(
    spec: Omit<ClientSpec, 'source' | 'port' | 'token'>,
  ): Promise<{ readonly child: Child; readonly tcpPort: number }> {
    const whole: ClientSpec = { source: this.source, port: this.target.port, token: HONEST_TOKEN, ...spec }
    const child = await program('client-process.ts', [JSON.stringify(whole)], CLIENT_READY, { isNice: true })
    this.#yields(child)
    return { child, tcpPort: Number(child.match?.[1]) }
  }

  async addProgram(command: readonly string[], ready: RegExp): Promise<Awaited<ReturnType<typeof launch>>> {
    const child = await launch(['nice', '-n', ATTACKER_NICENESS, ...command], { ready, deadlineMs: READY_MS })
    this.#yields(child)
    return child
  }

  async attacker(name: string, onLine: (line: string) => void): Promise<Child> {
    const args = [name, JSON.stringify(this.target)]
    const child = await program('attacker-process.ts', args, /^ready$/, { onLine, isNice: true })
    this.#yields(child)
    return child
  }

  #yields(child: Child): void {
    yieldAsGroup(child.pid)
    this.#others.push(child)
  }

  /** Resident bytes of both ends after a collection. */
  async settle(): Promise<void> {
    for (const end of [this.server, this.client]) end.signal('SIGUSR2')
    await Bun.sleep(SAMPLE_MS)
  }

  async stop(): Promise<void> {
    await this.#visitors.stop()
    await Promise.all(this.#others.map(child => child.stop()))
    await Promise.all([this.client.stop(), this.server.stop(), this.app.stop()])
  }
}

/** A real attacker has a machine of its own, for its app and client, too: here it must not win by taking the processor from the server. */
const ATTACKER_NICENESS = '5'

/**
 * Linux schedules sessions against each other, where `sched_autogroup_enabled` is set, and each process here has a session
 * of its own: its niceness alone would only count among its threads.
 */
function yieldAsGroup(pid: number): void {
  try {
    writeFileSync(`/proc/${pid}/autogroup`, ATTACKER_NICENESS)
  } catch {
    // Another system, or without groups: then niceness does it.
  }
}

const CLIENT_READY = /^ready (\d+) (\d+) (\S+)$/
/** Many times what it takes: other programs may want the processor. */
const READY_MS = 30_000

export function program(
  file: string,
  args: readonly string[],
  ready: RegExp,
  options: {
    readonly openFiles?: number
    readonly isNice?: boolean
    onLine?(this: void, line: string): void
  } = {},
): ReturnType<typeof launch> {
  const nice = options.isNice ? ['nice', '-n', ATTACKER_NICENESS] : []
  const command = [...nice, 'bun', join(import.meta.dir, file), ...args]
  const limited =
    options.openFiles === undefined
      ? command
      : ['sh', '-c', `ulimit -n ${options.openFiles} && exec "$@"`, 'sh', ...command]
  return launch(limited, { ready, deadlineMs: READY_MS, onLine: options.onLine })
}

/** The defaults, but given: here everyone comes from the loopback, which is else not counted. */
const LIMITS = { maxAddressVisitors: 8_192, maxAddressRate: 1_000, drainTimeoutMs: 1_000 }

function serverOptions(ports: string, own: AttackedOptions = {}): AttackedOptions {
  return {
    port: 0,
    host: '127.0.0.1',
    domains: ['localhost'],
    tokens: [HONEST_TOKEN, HOSTILE_TOKEN],
    tcpPorts: ports,
    udpPorts: ports,
    tlsPort: 0,
    ...own,
    limits: { ...LIMITS, ...own.limits },
  }
}
