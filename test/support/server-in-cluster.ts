// A server of a cluster in a process of its own that tests freeze, with times of its own: those of the command line are long.

import { RedisDirectory } from '../../src/directories/redis.ts'
import type { DirectoryTimes } from '../../src/directory.ts'
import { TunnelServer, type TunnelServerOptions } from '../../src/index.ts'
import { standsStill } from './processes.ts'
import { within } from './within.ts'

interface Orders {
  /** URL of its Redis. */
  readonly redis: string
  readonly times: Partial<DirectoryTimes>
  readonly options?: TunnelServerOptions
}

if (import.meta.main) {
  const { redis, times, options }: Orders = JSON.parse(process.argv[2] ?? '')
  const directory = await RedisDirectory.open({ url: redis })
  const server = new TunnelServer({ port: 0, host: '127.0.0.1', ...options, cluster: { directory, times } })
  server.on('error', () => {})
  await server.start()
  console.log(server.port)
}

export class ServerInCluster implements AsyncDisposable {
  readonly #child: Bun.Subprocess<'ignore', 'pipe', 'inherit'>
  readonly port: number

  private constructor(child: Bun.Subprocess<'ignore', 'pipe', 'inherit'>, port: number) {
    this.#child = child
    this.port = port
  }

  static async start(orders: Orders): Promise<ServerInCluster> {
    const child = Bun.spawn(['bun', import.meta.path, JSON.stringify(orders)], {
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'inherit',
    })
    const first = child.stdout.getReader().read()
    const { value } = await within(first, 'the server to listen')
    return new ServerInCluster(child, Number(Buffer.from(value ?? []).toString()))
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`
  }

  /** Its kernel goes on answering for it. */
  async freeze(): Promise<void> {
    this.#child.kill('SIGSTOP')
    await standsStill(this.#child.pid)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#child.exited
  }
}
