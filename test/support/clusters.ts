// Servers of one cluster in this process, and what visitors see of them.

import type { TunnelClientOptions } from '../../src/client/options.ts'
import { MemoryDirectory } from '../../src/directories/memory.ts'
import type { Directory, DirectoryTimes } from '../../src/directory.ts'
import type { ClusterOptions } from '../../src/server/settings/part-options.ts'
import { TunnelClient } from '../../src/tunnel-client.ts'
import type { TunnelServer } from '../../src/tunnel-server.ts'
import { type BoundedOptions, boundedServer } from './bounded-server.ts'

export class TestCluster implements AsyncDisposable {
  readonly servers: TunnelServer[] = []
  readonly errors: Error[] = []
  readonly #clients: TunnelClient[] = []
  readonly #directory: () => Promise<Directory>
  readonly #times: Partial<DirectoryTimes>

  /** `directory`: one for each server; default: one in memory for all. */
  constructor(times: Partial<DirectoryTimes> = {}, directory?: () => Promise<Directory>) {
    const shared = new MemoryDirectory()
    this.#directory = directory ?? (() => Promise.resolve(shared))
    this.#times = { earlyMs: 0, ...times }
  }

  /** Starts one more server. */
  async server(
    options: Omit<BoundedOptions, 'cluster'> & { readonly cluster?: Partial<ClusterOptions> } = {},
  ): Promise<TunnelServer> {
    const server = boundedServer({
      port: 0,
      host: '127.0.0.1',
      ...options,
      cluster: { directory: await this.#directory(), times: this.#times, ...options.cluster },
      limits: { startupHoldMs: 0, ...options.limits },
    })
    server.on('error', error => this.errors.push(error))
    await server.start()
    this.servers.push(server)
    return server
  }

  async client(options: TunnelClientOptions): Promise<TunnelClient> {
    const client = new TunnelClient({ maxBackoffMs: 50, ...options })
    this.#clients.push(client)
    await client.connect()
    return client
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#clients.map(client => client.disconnect()))
    await Promise.all(this.servers.map(server => server.stop()))
  }
}
