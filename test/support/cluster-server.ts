// `localtunnels server --cluster` in a process of its own, as operators run it.

import { join } from 'node:path'
import { within } from './within.ts'

const PROGRAM = join(import.meta.dir, '../../bin/localtunnels.ts')
export const TOKEN = 'a-token-of-tests'
const ADMIN_TOKEN = 'an-admin-token-of-tests'

export interface ClusterServerOptions {
  readonly redis: string
  /** Where it keeps what it keeps, such as bans: not with what the user's own server keeps. */
  readonly state: string
  /** Default 0: any. */
  readonly port?: number
  /** Address that it listens on. Default `127.0.0.1`. */
  readonly host?: string
  /** More flags. */
  readonly flags?: readonly string[]
  /** The program that is run. Default: that of this checkout. */
  readonly program?: string
}

export class ClusterServer implements AsyncDisposable {
  port = 0
  adminUrl = ''
  readonly #child: Bun.Subprocess<'ignore', 'pipe', 'inherit'>
  readonly #program: string
  readonly #host: string

  private constructor(options: ClusterServerOptions) {
    const { redis, state, port = 0, host = '127.0.0.1', program = PROGRAM } = options
    this.#program = program
    this.#host = host
    const flags = [
      '--host',
      host,
      '--port',
      `${port}`,
      '--token',
      TOKEN,
      '--cluster',
      redis,
      ...(options.flags ?? []),
    ]
    const admin = ['--admin', '127.0.0.1:0', '--admin-token', ADMIN_TOKEN]
    this.#child = Bun.spawn(['bun', program, 'server', '--json', ...flags, ...admin], {
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'inherit',
      env: { ...process.env, XDG_STATE_HOME: state },
    })
  }

  static async start(options: ClusterServerOptions): Promise<ClusterServer> {
    const server = new ClusterServer(options)
    const { promise, resolve } = Promise.withResolvers<void>()
    void (async () => {
      let text = ''
      for await (const bytes of server.#child.stdout) {
        if (server.port !== 0 && server.adminUrl !== '') continue
        text += Buffer.from(bytes).toString()
        server.port ||= Number(/"listening".*?"port":(\d+)/.exec(text)?.[1] ?? 0)
        server.adminUrl ||= /listener is at (\S+?)\. /.exec(text)?.[1] ?? ''
        if (server.port !== 0 && server.adminUrl !== '') resolve()
      }
    })()
    await within(promise, 'the server to listen')
    return server
  }

  get url(): string {
    return `http://${this.#host}:${this.port}`
  }

  async nodes(): Promise<string> {
    const flags = ['--url', this.adminUrl, '--admin-token', ADMIN_TOKEN]
    const asking = Bun.spawn(['bun', this.#program, 'admin', 'nodes', ...flags], { stdout: 'pipe' })
    return new Response(asking.stdout).text()
  }

  async kill(signal: 'SIGKILL' | 'SIGTERM' = 'SIGKILL'): Promise<number> {
    this.#child.kill(signal)
    return this.#child.exited
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill()
  }
}
