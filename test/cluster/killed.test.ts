// The command line as operators run it: three servers and a Redis in processes of their own, of which one server is killed.

import { afterAll, expect } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { TunnelClient } from '../../src/index.ts'
import { ask } from '../support/ask.ts'
import { next } from '../support/events.ts'
import { testWith } from '../support/needs.ts'
import { Redis } from '../support/redis.ts'
import { within } from '../support/within.ts'

const PROGRAM = join(import.meta.dir, '../../bin/localtunnels.ts')
const TOKEN = 'a-token-of-tests'
const ADMIN_TOKEN = 'an-admin-token-of-tests'

/** What the servers keep, such as bans: not with what the user's own server keeps. */
const state = mkdtempSync(join(tmpdir(), 'localtunnels-killed-'))
afterAll(() => rmSync(state, { recursive: true, force: true }))

/** `localtunnels server --cluster`, on any port. */
class Server implements AsyncDisposable {
  port = 0
  adminUrl = ''
  readonly #child: Bun.Subprocess<'ignore', 'pipe', 'inherit'>

  private constructor(redis: string) {
    const flags = ['--host', '127.0.0.1', '--port', '0', '--token', TOKEN, '--cluster', redis]
    const admin = ['--admin', '127.0.0.1:0', '--admin-token', ADMIN_TOKEN]
    this.#child = Bun.spawn(['bun', PROGRAM, 'server', '--json', ...flags, ...admin], {
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'inherit',
      env: { ...process.env, XDG_STATE_HOME: state },
    })
  }

  static async start(redis: string): Promise<Server> {
    const server = new Server(redis)
    const { promise, resolve } = Promise.withResolvers<void>()
    void (async () => {
      let text = ''
      for await (const bytes of server.#child.stdout) {
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
    return `http://127.0.0.1:${this.port}`
  }

  async nodes(): Promise<string> {
    const flags = ['--url', this.adminUrl, '--admin-token', ADMIN_TOKEN]
    const asking = Bun.spawn(['bun', PROGRAM, 'admin', 'nodes', ...flags], { stdout: 'pipe' })
    return new Response(asking.stdout).text()
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#child.exited
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.kill()
  }
}

testWith(
  ['redis-server'],
  'a server is killed: its client is at another one with its name, and visitors of a third see no failure',
  async () => {
    await using redis = await Redis.start('redis-server')
    await using a = await Server.start(redis.url)
    await using b = await Server.start(redis.url)
    await using c = await Server.start(redis.url)
    const lines = (await c.nodes()).trimEnd().split('\n')
    expect(lines).toHaveLength(4)
    expect(lines.filter(line => line.includes('this one'))).toEqual([
      expect.stringContaining(`http://127.0.0.1:${c.port}`),
    ])

    const client = new TunnelClient({
      server: [a.url, b.url],
      token: TOKEN,
      subdomain: 'shop',
      exact: true,
      fetch: () => new Response('hello'),
    })
    await client.connect()
    try {
      expect((await ask(c.port, 'shop.localhost')).body).toBe('hello')
      const again = next(client, 'connected')
      await a.kill()
      const killedAt = performance.now()
      // It waits for the client, and then goes where it is.
      const waiting = ask(c.port, 'shop.localhost')
      const { url } = await within(again, 'the client to connect elsewhere')
      expect(url).toContain(`:${b.port}`)
      expect((await waiting).body).toBe('hello')
      // Two seconds are promised; a busy machine gets ten times as long.
      expect(performance.now() - killedAt).toBeLessThan(20_000)
      for (const { port } of [b, c]) expect((await ask(port, 'shop.localhost')).body).toBe('hello')
      if (process.env.LT_VERBOSE)
        console.log(`elsewhere after ${Math.round(performance.now() - killedAt)} ms`)
    } finally {
      await client.disconnect()
    }
  },
  60_000,
)
