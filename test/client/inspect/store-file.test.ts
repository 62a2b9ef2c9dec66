// Exchanges that outlive the process, in the file that `inspect.store` names, and nothing on disk without.

import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type InspectOptions, TunnelClient, TunnelError, type TunnelServer } from '../../../src/index.ts'
import { codeOf } from '../../support/events.ts'
import { InspectorApi } from '../../support/inspector.ts'
import { testWith } from '../../support/needs.ts'
import { startServer } from '../../support/tunnel.ts'
import { within } from '../../support/within.ts'

let folder = ''
let path = ''
let server: TunnelServer
const app = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  fetch: async (request, own) =>
    own.upgrade(request)
      ? undefined
      : new Response(`got ${await request.text()}`, { headers: { 'X-Odd': 'a' } }),
  websocket: { message: (socket, message) => void socket.send(`echo ${String(message)}`) },
})
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'localtunnels-store-'))
  path = join(folder, 'made/requests.sqlite')
  server = await startServer()
})
afterEach(async () => {
  await server.stop()
  await rm(folder, { recursive: true })
})

async function connected(inspect: InspectOptions = {}): Promise<TunnelClient> {
  const client = new TunnelClient({
    server: server.url,
    subdomain: 'app',
    port: app.port ?? 0,
    host: '127.0.0.1',
    inspect: { store: path, ...inspect },
  })
  await client.connect()
  return client
}

const visit = async (where: string, init: RequestInit = {}) =>
  (
    await fetch(`http://127.0.0.1:${server.port}${where}`, { ...init, headers: { host: 'app.localhost' } })
  ).text()

test('what was kept is there after a restart, byte for byte, with pins, notes and messages; replays go on', async () => {
  const first = await connected()
  const api = new InspectorApi(first)
  await visit('/hooks?a=1', { method: 'POST', body: 'paid' })
  const { id } = await api.ended('/hooks')
  await api.send('PUT', `exchanges/${id}/pin`, { isPinned: true })
  await api.send('PUT', `exchanges/${id}/note`, { note: 'the first' })
  const socket = new WebSocket(`ws://127.0.0.1:${server.port}/ws`, { headers: { host: 'app.localhost' } })
  const echoed = new Promise(resolve => socket.addEventListener('message', resolve))
  socket.onopen = () => socket.send('hi')
  await within(echoed, 'the echo')
  socket.close()
  await api.ended('/ws')
  const before = await api.detail(id, '?reveal=1')
  await first.disconnect()

  const second = await connected()
  const again = new InspectorApi(second)
  expect((await again.rows()).map(({ path: where, kind }) => [where, kind])).toEqual([
    ['/ws', 'websocket'],
    ['/hooks?a=1', 'http'],
  ])
  const after = await again.detail(id, '?reveal=1')
  const clock = ({ startedAt, ...rest }: typeof after) => ({
    ...rest,
    startedAt: Math.round(Date.parse(startedAt) / 1_000),
  })
  expect(clock(after)).toEqual(clock(before))
  expect(Buffer.from(await again.bytes(`exchanges/${id}/request.body`)).toString()).toBe('paid')
  const [ws] = await again.rows('?filter=is:websocket')
  const { json } = await again.ask(`exchanges/${ws?.id}/frames`)
  expect(json.frames.slice(0, 2).map(({ text }: { text: string }) => text)).toEqual(['hi', 'echo hi'])
  const { json: replayed } = await again.send('POST', `exchanges/${id}/replay`, {})
  expect(replayed.replays[0].verdict).toBe('same')
  expect(Number(replayed.replays[0].exchange.id)).toBeGreaterThan(Number(ws?.id))
  expect((await again.ask('session')).json.store).toBe(path)
  // What was deleted stays so.
  await again.send('DELETE', 'exchanges?filter=is:websocket')
  await second.disconnect()
  // The same client once more: nothing comes twice.
  await second.connect()
  expect((await new InspectorApi(second).rows()).map(({ path: where }) => where)).toEqual([
    '/hooks?a=1',
    '/hooks?a=1',
  ])
  await second.disconnect()
  expect((await stat(path)).mode & 0o777).toBe(0o600)
  expect(await readdir(join(folder, 'made'))).toEqual(['requests.sqlite'])
})

test('the bounds hold for the file, too, also smaller ones later', async () => {
  const first = await connected({ maxExchanges: 5, rate: 0 })
  for (let count = 1; count <= 8; count++) await visit(`/${count}`)
  await first.waitFor('/8')
  await first.disconnect()
  const count = () => {
    const database = new DatabaseSync(path)
    const rows = database.prepare('select id from exchange order by id').all()
    database.close()
    return rows.map(row => Object.values(row)[0])
  }
  expect(count()).toEqual([4, 5, 6, 7, 8])
  const second = await connected({ maxExchanges: 2 })
  expect((await second.waitFor('/7')).id).toBe('7')
  await second.disconnect()
  expect(count()).toEqual([7, 8])
  const third = await connected()
  await new InspectorApi(third).send('DELETE', 'exchanges')
  await third.disconnect()
  // No id comes twice.
  const fourth = await connected()
  await visit('/9')
  expect((await fourth.waitFor('/9')).id).toBe('9')
  await fourth.disconnect()
})

test('a file that another client has, that is none, or that holds something else is refused', async () => {
  const first = await connected()
  const fault = connected()
  expect(await codeOf(fault)).toBe('STORE_FAILED')
  expect(await fault.catch(String)).toContain('is in use by another session')
  await first.disconnect()
  await (await connected()).disconnect()
  path = join(folder, 'text.sqlite')
  await Bun.write(path, 'this is a text, and no database. '.repeat(100))
  expect(await codeOf(connected())).toBe('STORE_FAILED')
  expect(await Bun.file(path).text()).toStartWith('this is a text')
  path = join(folder, 'foreign.sqlite')
  const foreign = new DatabaseSync(path)
  foreign.exec('create table mine (x); insert into mine values (1)')
  foreign.close()
  expect(await codeOf(connected())).toBe('STORE_FAILED')
  path = '/dev/null/requests.sqlite'
  expect(await codeOf(connected())).toBe('STORE_FAILED')
})

test('a file that cannot be written any more is an error event, once, and the tunnel goes on', async () => {
  const client = await connected()
  const errors: Error[] = []
  const failed = new Promise<void>(resolve =>
    client.on('error', error => {
      errors.push(error)
      resolve()
    }),
  )
  // As a full disk: what is written fails.
  const exec: (this: DatabaseSync, sql: string) => void = Reflect.get(DatabaseSync.prototype, 'exec')
  DatabaseSync.prototype.exec = function (sql) {
    if (sql === 'begin') throw new Error('database or disk is full')
    exec.call(this, sql)
  }
  try {
    await visit('/full')
    await within(failed, 'the error')
  } finally {
    DatabaseSync.prototype.exec = exec
  }
  expect(await visit('/after', { method: 'POST', body: 'x' })).toBe('got x')
  expect((await client.waitFor('/after')).status).toBe(200)
  await client.disconnect()
  expect(errors.map(error => error instanceof TunnelError && error.code)).toEqual(['STORE_FAILED'])
})

testWith(['node'], 'a Node without SQLite says so', async () => {
  const { success, outputs } = await Bun.build({
    entrypoints: [join(import.meta.dir, '../../../src/client.ts')],
    target: 'node',
    outdir: folder,
    splitting: true,
    external: ['bun', 'bun:*', 'node:*'],
  })
  expect(success).toBe(true)
  const script = join(folder, 'store.mjs')
  await Bun.write(
    script,
    `import { TunnelClient } from ${JSON.stringify(outputs.find(({ kind }) => kind === 'entry-point')?.path)}
     const client = new TunnelClient({ server: '${server.url}', port: 1, inspect: { port: false, store: ${JSON.stringify(path)} } })
     await client.connect().then(() => console.log('connected'), error => console.log(error.code, error.message))
     await client.disconnect()`,
  )
  const child = Bun.spawn(['node', script], { stdout: 'pipe', stderr: 'ignore' })
  const said = await child.stdout.text()
  const [major = 0, minor = 0] = Bun.spawnSync(['node', '-p', 'process.versions.node'])
    .stdout.toString()
    .split('.')
    .map(Number)
  if (major > 22 || (major === 22 && minor >= 13)) expect(said).toBe('connected\n')
  else expect(said).toStartWith('STORE_FAILED inspect.store needs the SQLite of the runtime')
})

test('without store nothing is written', async () => {
  const before = await readdir(folder)
  const client = new TunnelClient({
    server: server.url,
    port: app.port ?? 0,
    host: '127.0.0.1',
    subdomain: 'app',
    inspect: { port: false },
  })
  await client.connect()
  await visit('/')
  await client.waitFor('/')
  await client.disconnect()
  expect(await readdir(folder)).toEqual(before)
})
