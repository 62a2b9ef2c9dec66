// A client that was killed gets its name back from the secret on disk; one that runs beside a live one does not.

import { expect, spyOn, test } from 'bun:test'
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { hostname, tmpdir } from 'node:os'
import { join } from 'node:path'
import { ResumeFiles } from '../../src/client/tunnels/resume-files.ts'
import { TunnelClient, type TunnelClientOptions } from '../../src/index.ts'
import { startBehindProxy } from '../support/behind-proxy.ts'
import { codeOf, eventually, next } from '../support/events.ts'
import { NaiveJsonServer } from '../support/json-server.ts'
import { closedAfterEach } from '../support/opened.ts'
import { control, speakingServer } from '../support/speaker.ts'
import { startServer } from '../support/tunnel.ts'
import { within } from '../support/within.ts'

const { open, defer } = closedAfterEach()

async function newFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'localtunnels-state-'))
  defer(() => rm(folder, { recursive: true, force: true }))
  return join(folder, 'state')
}

const SERVER = 'https://tunnel.example'
const APP = { kind: 'http', name: 'app' } as const
/** Started here, ended, and reaped. */
async function deadPid(): Promise<number> {
  const child = Bun.spawn(['true'])
  await child.exited
  return child.pid
}

/** What is kept is of a process that is gone. */
async function orphan(
  folder: string,
  change: (kept: Record<string, unknown>) => object = kept => kept,
): Promise<void> {
  const [name = ''] = await readdir(folder)
  const kept = JSON.parse(await readFile(join(folder, name), 'utf8'))
  const orphaned = change({ ...kept, pid: await deadPid() })
  await writeFile(join(folder, name), JSON.stringify(orphaned), { mode: 0o600 })
}

test.skipIf(process.platform === 'win32')(
  'a FIFO in the place of the file is no secret, and is not waited for',
  async () => {
    const folder = await newFolder()
    const files = new ResumeFiles(folder, SERVER)
    await files.keep(APP, 'secret')
    files.leave()
    const [name = ''] = await readdir(folder)
    await rm(join(folder, name))
    expect(Bun.spawnSync(['mkfifo', '-m', '600', join(folder, name)]).exitCode).toBe(0)
    expect(await within(new ResumeFiles(folder, SERVER).take(APP), 'the answer')).toBeUndefined()
  },
)

test('what a process leaves that is gone, one other process gets, and only one', async () => {
  const folder = await newFolder()
  const first = new ResumeFiles(folder, SERVER)
  await first.keep(APP, 'secret')
  first.leave()
  await orphan(folder)
  const others = [new ResumeFiles(folder, SERVER), new ResumeFiles(folder, SERVER)]
  const taken = await Promise.all(others.map(files => files.take(APP)))
  expect(taken.filter(Boolean)).toEqual(['secret'])
  expect(await new ResumeFiles(folder, SERVER).take(APP)).toBeUndefined()
})

test('the folder and the file are for this user alone, and a file that others could have written is none', async () => {
  const folder = await newFolder()
  const files = new ResumeFiles(folder, SERVER)
  await files.keep(APP, 'secret')
  const [name = ''] = await readdir(folder)
  expect(name).toMatch(/^http-app-[0-9a-f]{16}\.json$/)
  expect((await stat(folder)).mode & 0o777).toBe(0o700)
  expect((await stat(join(folder, name))).mode & 0o777).toBe(0o600)
  files.leave()
  await chmod(join(folder, name), 0o644)
  expect(await new ResumeFiles(folder, SERVER).take(APP)).toBeUndefined()
  await chmod(join(folder, name), 0o600)
  expect(await new ResumeFiles(folder, SERVER).take(APP)).toBe('secret')
})

test.each([
  ['another machine', (kept: object) => ({ ...kept, host: `not-${hostname()}` }), undefined],
  ['a live process', (kept: object) => ({ ...kept, pid: process.ppid, startedAt: '' }), undefined],
  [
    'a pid that another process has by now',
    (kept: object) => ({ ...kept, pid: process.ppid, startedAt: '1' }),
    'secret',
  ],
  ['no process', () => ({ resume: 'secret' }), undefined],
])('a secret of %s', async (_, change, expected) => {
  const folder = await newFolder()
  const files = new ResumeFiles(folder, SERVER)
  await files.keep(APP, 'secret')
  files.leave()
  await orphan(folder, change)
  expect(await new ResumeFiles(folder, SERVER).take(APP)).toBe(expected as string)
})

test('each server, kind and name has a secret of its own, and half a file is none', async () => {
  const folder = await newFolder()
  const files = new ResumeFiles(folder, SERVER)
  await files.keep(APP, 'one')
  await files.keep({ kind: 'tcp', name: '22' }, 'two')
  files.leave()
  expect(await new ResumeFiles(folder, 'https://other.example').take(APP)).toBeUndefined()
  expect(await new ResumeFiles(folder, SERVER).take({ kind: 'tls', name: 'app' })).toBeUndefined()
  expect(await new ResumeFiles(folder, SERVER).take({ kind: 'tcp', name: '22' })).toBe('two')
  const [, file = ''] = (await readdir(folder)).toSorted().toReversed()
  await writeFile(join(folder, file), '{"resume":', { mode: 0o600 })
  expect(await new ResumeFiles(folder, SERVER).take(APP)).toBeUndefined()
})

test('a process that died while it changed a file does not block others', async () => {
  const folder = await newFolder()
  const files = new ResumeFiles(folder, SERVER)
  await files.keep(APP, 'secret')
  files.leave()
  const [name = ''] = await readdir(folder)
  const lock = join(folder, `${name}.lock`)
  await mkdir(lock)
  const longAgo = new Date(Date.now() - 60_000)
  await utimes(lock, longAgo, longAgo)
  expect(await new ResumeFiles(folder, SERVER).take(APP)).toBe('secret')
  expect(await readdir(folder)).toEqual([name])
})

// ── With a server ────────────────────────────────────────────────────────────────────────────────────────────────

async function setting(): Promise<(more?: TunnelClientOptions) => TunnelClient> {
  const server = open(await startServer())
  const stateFolder = await newFolder()
  return more =>
    open(
      new TunnelClient({
        server: `127.0.0.1:${server.port}`,
        subdomain: 'app',
        stateFolder,
        fetch: () => new Response(),
        ...more,
      }),
    )
}

test('a second live client of the same machine gets -2, and each gives back what it has', async () => {
  const client = await setting()
  const [first, second] = [client(), client()]
  await first.connect()
  await second.connect()
  expect([first.getSubdomain(), second.getSubdomain()]).toEqual(['app', 'app-2'])
  await first.disconnect()
  const third = client()
  await third.connect()
  expect(third.getSubdomain()).toBe('app')
})

test('a made-up name and a pool leave nothing behind', async () => {
  const client = await setting()
  const folder = await newFolder()
  const pooled = client({ pool: true, stateFolder: folder })
  const named = new TunnelClient({
    server: 'http://127.0.0.1:1',
    stateFolder: folder,
    fetch: () => new Response(),
  })
  await pooled.connect()
  expect(await codeOf(named.connect())).toBe('SERVER_UNREACHABLE')
  expect(await readdir(folder).catch(() => [])).toEqual([])
})

test('a folder that cannot be written is one error event, and the tunnel works', async () => {
  const client = await setting()
  const one = client({ stateFolder: '/proc/nowhere' })
  const failed = next(one, 'error')
  await one.connect()
  expect(await failed).toMatchObject({ code: 'STORE_FAILED' })
  expect(one.isConnected()).toBe(true)
})

test('a secret that a try of a connection did not need is shown by the next try', async () => {
  const folder = await newFolder()
  const shown: unknown[] = []
  using server = speakingServer(({ type, ref, resume }, say) => {
    if (type !== 'register') return
    shown.push(resume)
    say(control({ type: 'refused', ref, code: 'SERVER_DRAINING', message: 'later' }))
  })
  const address = `127.0.0.1:${server.port}`
  const killed = new ResumeFiles(folder, `http://${address}`)
  await killed.keep(APP, 'secret')
  killed.leave()
  await orphan(folder)
  const client = open(
    new TunnelClient({
      server: address,
      subdomain: 'app',
      stateFolder: folder,
      fetch: () => new Response(),
    }),
  )
  for (let tries = 0; tries < 3; tries++) expect(await codeOf(client.connect())).toBe('SERVER_DRAINING')
  expect(shown).toEqual(['secret', 'secret', 'secret'])
})

test('a client that disconnects while it writes a secret does not check the health of its app from then on', async () => {
  // The write goes on when the test says so.
  const begun = Promise.withResolvers<void>()
  const goOn = Promise.withResolvers<void>()
  const written = Promise.withResolvers<void>()
  using waiting = spyOn(ResumeFiles.prototype, 'keep').mockImplementation(async function (
    this: ResumeFiles,
    ...secret
  ) {
    begun.resolve()
    await goOn.promise
    waiting.mockRestore()
    await this.keep(...secret)
    written.resolve()
  })
  let asked = 0
  using app = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch() {
      asked++
      return new Response()
    },
  })
  const server = open(await startServer())
  const client = open(
    new TunnelClient({
      server: `127.0.0.1:${server.port}`,
      subdomain: 'app',
      stateFolder: await newFolder(),
      port: app.port ?? 0,
      host: '127.0.0.1',
      health: { path: '/health', intervalMs: 20 },
    }),
  )
  const registered: unknown[] = []
  client.on('registered', event => registered.push(event))
  const connecting = codeOf(client.connect())
  await begun.promise
  await client.disconnect()
  goOn.resolve()
  expect(await connecting).toBe('STATE_INVALID')
  await written.promise
  // Time for ten checks: that none comes has no event.
  await Bun.sleep(200)
  expect([asked, registered]).toEqual([0, []])
})

test('a server that grants a path for a name gets no file written', async () => {
  const folder = await newFolder()
  using server = speakingServer((message, say) => {
    if (message.type !== 'register') return
    const { ref } = message
    const grant = { type: 'granted', ref, tunnel: 1, name: '../../stolen', url: 'http://x', resume: 'secret' }
    say(control(grant))
  })
  const client = open(
    new TunnelClient({
      server: `127.0.0.1:${server.port}`,
      subdomain: 'app',
      stateFolder: folder,
      fetch: () => new Response(),
    }),
  )
  await client.connect()
  expect(await readdir(join(folder, '..'))).toEqual([])
})

test.each(['json', 'streams'] as const)('exact takes no other name that a server grants: %s', async wire => {
  using json = new NaiveJsonServer({
    ready: (_, send) => {
      send({ type: 'registered', subdomain: 'other', url: 'http://other.localhost' })
      return true
    },
  })
  using streams = speakingServer(({ type, ref }, say) => {
    const url = 'http://other.localhost'
    if (type === 'register')
      say(control({ type: 'granted', ref, tunnel: 1, name: 'other', url, resume: 'r' }))
  })
  const server = `localhost:${wire === 'json' ? json.port : streams.port}`
  const client = open(
    new TunnelClient({ server, wire, subdomain: 'app', exact: true, fetch: () => new Response() }),
  )
  expect(await codeOf(client.connect())).toBe('NAME_TAKEN')
})

test('exact accepts the name alone', async () => {
  const client = await setting()
  await client().connect()
  expect(await codeOf(client({ exact: true }).connect())).toBe('NAME_TAKEN')
  expect(() => new TunnelClient({ exact: true, fetch: () => new Response() })).toThrow('exact is for a name')
})

test('exact ends a client that loses its name to another one', async () => {
  const { server, client, proxy, port } = open(
    await startBehindProxy({ fetch: () => new Response(), exact: true }, { leaseMs: 1 }),
  )
  proxy.isDown = true
  proxy.cutAll()
  await eventually(() => server.getStats().activeSubdomains === 0, 'the lease to end')
  const other = open(
    new TunnelClient({ server: `127.0.0.1:${port}`, subdomain: 'app', fetch: () => new Response() }),
  )
  await other.connect()
  const closed = next(client, 'close')
  proxy.isDown = false
  expect(await closed).toMatchObject({ error: { code: 'NAME_TAKEN' } })
})
