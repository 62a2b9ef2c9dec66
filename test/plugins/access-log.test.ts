// The access log: what a line has and never has, its bounds, rotation, and a disk that fails.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { lstat, mkdtemp, readdir, rm, stat, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Outcome, Seen } from '../../src/index.ts'
import { accessLog } from '../../src/index.ts'
import { adminOptions, metricsOf, sampleOf } from '../support/admin.ts'
import { ask } from '../support/ask.ts'
import { eventually } from '../support/events.ts'
import { run } from '../support/programs.ts'
import { startTunnel } from '../support/tunnel.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'localtunnels-log-'))
})
afterAll(() => rm(folder, { recursive: true }))

const seen: Seen = {
  id: 1,
  kind: 'http',
  tunnel: 'app',
  address: '192.0.2.1',
  method: 'GET',
  target: '/path?token=secret',
  host: 'app.localhost',
}
const outcome: Outcome = {
  status: 200,
  durationMs: 5,
  waitMs: 1,
  appMs: 3,
  requestBytes: 100,
  responseBytes: 200,
}
const linesOf = async (file: string) =>
  (await Bun.file(file).text())
    .split('\n')
    .filter(line => line !== '')
    .map(line => JSON.parse(line))

test('a visit has a line, without its query, headers and bodies', async () => {
  const file = join(folder, 'visits.log')
  const log = accessLog({ file })
  {
    await using tunnel = await startTunnel(
      { fetch: () => new Response('body-of-the-app') },
      { server: { observers: [log] } },
    )
    const headers = { authorization: 'Bearer of-the-visitor', cookie: 'session=of-the-visitor' }
    await ask(tunnel.port, tunnel.host, {
      path: '/a%22"b?password=hunter2',
      method: 'POST',
      headers,
      body: 'posted',
    })
    await ask(tunnel.port, 'nobody.localhost')
  }
  await log.close()
  const text = await Bun.file(file).text()
  for (const secret of ['hunter2', 'of-the-visitor', 'posted', 'body-of-the-app'])
    expect(text).not.toContain(secret)
  const lines = await linesOf(file)
  expect(lines).toMatchObject([
    {
      kind: 'http',
      tunnel: 'app',
      client: 1,
      address: '127.0.0.1',
      method: 'POST',
      host: 'app.localhost',
      path: '/a%22"b',
      status: 200,
    },
    { tunnel: '', host: 'nobody.localhost', status: 404, code: 'TUNNEL_NOT_FOUND' },
  ])
  const [{ ms, waitMs, appMs, transferMs, time }] = lines
  expect(waitMs + appMs + transferMs).toBeCloseTo(ms, 1)
  expect(Date.parse(time)).toBeGreaterThan(0)
  expect((await stat(file)).mode & 0o777).toBe(0o600)
})

test('a line names the token that opened the tunnel, and never has the token itself', async () => {
  const file = join(folder, 'tokens.log')
  const log = accessLog({ file })
  {
    const tokens = [{ token: 'the-secret-itself', name: 'ci "1"' }]
    await using tunnel = await startTunnel(
      { fetch: () => new Response('hello'), token: 'the-secret-itself' },
      { server: { observers: [log], tokens } },
    )
    await ask(tunnel.port, tunnel.host)
    await ask(tunnel.port, 'nobody.localhost')
  }
  await log.close()
  const [visit, lost] = await linesOf(file)
  expect([visit.token, lost.token]).toEqual(['ci "1"', undefined])
  expect(await Bun.file(file).text()).not.toContain('the-secret-itself')
})

test('of a sample, what failed has its line all the same', async () => {
  const file = join(folder, 'sampled.log')
  const log = accessLog({ file, sample: 0, query: true })
  for (let count = 0; count < 100; count++) log.ended?.(seen, outcome)
  log.ended?.(seen, { ...outcome, status: 503, code: 'TUNNEL_BUSY' })
  log.ended?.(seen, { ...outcome, status: 500 })
  await log.close()
  const lines = await linesOf(file)
  expect(lines.map(({ status }) => status)).toEqual([503, 500])
  expect(lines[0].path).toBe('/path?token=secret')
  for (const sample of [-1, 2, Number.NaN]) expect(() => accessLog({ sample })).toThrow('sample')
})

function isWritten(file: string, id: number): boolean {
  return [file, `${file}.1`].some(one => existsSync(one) && readFileSync(one, 'utf8').includes(`"id":${id},`))
}

test('the file is renamed at its size, and so many old ones are kept', async () => {
  const file = join(folder, 'rotated.log')
  const log = accessLog({ file, maxFileBytes: 1_000, maxFiles: 2 })
  for (let id = 0; id < 40; id++) {
    log.ended?.({ ...seen, id }, outcome)
    // Lines that wait for the disk are written together, and the size is looked at behind them.
    await eventually(() => isWritten(file, id), `line ${id}`)
  }
  await log.close()
  const names = (await readdir(folder)).filter(name => name.startsWith('rotated.log')).sort()
  expect(names).toEqual(['rotated.log', 'rotated.log.1', 'rotated.log.2'])
  const ids: number[] = []
  for (const name of ['rotated.log.2', 'rotated.log.1', 'rotated.log'])
    for (const line of await linesOf(join(folder, name))) ids.push(line.id)
  // The newest lines, in their order, without a gap.
  expect(ids.at(-1)).toBe(39)
  expect(ids).toEqual(Array.from({ length: ids.length }, (_, index) => 40 - ids.length + index))
})

test('lines that come together go into as many files as they need, none of them cut or above the size', async () => {
  const file = join(folder, 'together.log')
  const log = accessLog({ file, maxFileBytes: 1_000, maxFiles: 50 })
  for (let id = 0; id < 40; id++) log.ended?.({ ...seen, id }, outcome)
  await log.close()
  const names = (await readdir(folder)).filter(name => name.startsWith('together.log'))
  const ids: number[] = []
  for (const name of names) {
    expect((await stat(join(folder, name))).size).toBeLessThanOrEqual(1_000)
    for (const line of await linesOf(join(folder, name))) ids.push(line.id)
  }
  expect(ids.sort((one, other) => one - other)).toEqual(Array.from({ length: 40 }, (_, id) => id))
})

test('a pipe is never renamed: rotation would take /dev/null away from the machine', async () => {
  const pipe = join(folder, 'device')
  await run(['mkfifo', pipe])
  const reader = Bun.spawn(['cat', pipe], { stdout: 'pipe' })
  const log = accessLog({ file: pipe, maxFileBytes: 1_000, maxFiles: 2 })
  for (let id = 0; id < 40; id++) log.ended?.({ ...seen, id }, outcome)
  await log.close()
  expect((await reader.stdout.text()).split('\n')).toHaveLength(41)
  expect((await stat(pipe)).isFIFO()).toBe(true)
  expect((await readdir(folder)).filter(name => name.startsWith('device'))).toEqual(['device'])
})

test('a link stays one, and the file behind it is rotated', async () => {
  const file = join(folder, 'linked.log')
  const link = join(folder, 'link')
  await symlink(file, link)
  const log = accessLog({ file: link, maxFileBytes: 1_000, maxFiles: 1 })
  for (let id = 0; id < 40; id++) log.ended?.({ ...seen, id }, outcome)
  await log.close()
  expect((await lstat(link)).isSymbolicLink()).toBe(true)
  expect((await readdir(folder)).filter(name => name.startsWith('link')).sort()).toEqual([
    'link',
    'linked.log',
    'linked.log.1',
  ])
})

test('lines that a slow disk does not take are dropped, counted and told of', async () => {
  const file = join(folder, 'dropped.log')
  const log = accessLog({ file, maxQueuedBytes: 1_000 })
  // All in one turn: nothing is written in between.
  for (let count = 0; count < 100; count++) log.ended?.(seen, outcome)
  expect(log.droppedLines).toBeGreaterThan(50)
  await log.close()
  const lines = await linesOf(file)
  expect(lines.at(-1)).toEqual({ dropped: log.droppedLines })
  expect(lines.length - 1 + log.droppedLines).toBe(100)
})

test('a pipe that is full and never read makes no visitor wait, fills no memory, and does not keep the server from ending', async () => {
  const pipe = join(folder, 'pipe')
  await run(['mkfifo', pipe])
  // Opening it waits for the other end.
  const reader = Bun.spawn(['sh', '-c', 'exec sleep 60 < "$0"', pipe])
  const log = accessLog({ file: pipe, maxQueuedBytes: 100_000 })
  {
    await using tunnel = await startTunnel(
      { fetch: () => new Response('hello') },
      { server: { observers: [log] } },
    )
    while (log.droppedLines === 0) for (let count = 0; count < 100; count++) log.ended?.(seen, outcome)
    expect(await ask(tunnel.port, tunnel.host)).toMatchObject({ status: 200, body: 'hello' })
  }
  const dropped = log.droppedLines
  await log.close()
  expect(log.droppedLines).toBeGreaterThan(dropped)
  reader.kill()
  await reader.exited
}, 60_000)

test('the metrics have the count of dropped lines', async () => {
  const log = accessLog({ file: join(folder, 'counted.log'), maxQueuedBytes: 0 })
  await using tunnel = await startTunnel(
    { fetch: () => new Response('') },
    { server: { observers: [log], admin: adminOptions() } },
  )
  await ask(tunnel.port, tunnel.host)
  await eventually(() => log.droppedLines === 1, 'the line to be dropped')
  expect(sampleOf(await metricsOf(tunnel.server), 'localtunnels_access_log_dropped_total')).toBe(1)
  await log.close()
})

test.skipIf(Bun.which('prlimit') === null)(
  'once a full disk has room again, a line says how many were lost, and only the one that was cut is no line',
  async () => {
    const file = join(folder, 'full.log')
    const program = `
      import { accessLog } from ${JSON.stringify(join(import.meta.dir, '../../src/index.ts'))}
      process.on('SIGXFSZ', () => {})
      const limit = size => Bun.spawnSync(['prlimit', '--pid', String(process.pid), '--fsize=' + size])
      const log = accessLog({ file: ${JSON.stringify(file)} })
      const write = () => log.ended(${JSON.stringify(seen)}, ${JSON.stringify(outcome)})
      limit('1000:unlimited')
      for (let count = 0; count < 20; count++) write()
      while (log.droppedLines === 0) await Bun.sleep(1)
      const before = log.droppedLines
      try { write() } catch {}
      while (log.droppedLines === before) await Bun.sleep(1)
      limit('unlimited:unlimited')
      try { write() } catch {}
      await log.close()
      console.log(log.droppedLines)`
    const { out } = await run([process.execPath, '-e', program])
    const lines = (await Bun.file(file).text()).split('\n').slice(0, -1)
    const whole = lines.filter(line => line.endsWith('}')).map(line => JSON.parse(line))
    expect(lines).toHaveLength(whole.length + 1)
    expect(whole.at(-1)).toEqual({ dropped: Number(out) })
    expect(whole.length - 1 + Number(out)).toBe(22)
  },
)

test('a disk that is full is an error event, and no visitor notices', async () => {
  const log = accessLog({ file: '/dev/full', maxFileBytes: 0 })
  await using tunnel = await startTunnel({ fetch: () => new Response('') }, { server: { observers: [log] } })
  const faults: string[] = []
  tunnel.server.on('error', error => faults.push(error.message))
  for (let count = 0; count < 500 && faults.length === 0; count++)
    expect((await ask(tunnel.port, tunnel.host)).status).toBe(200)
  expect(faults[0]).toContain('The observer "access log" failed: Error: lines were lost: ENOSPC')
  expect(log.droppedLines).toBeGreaterThan(0)
  await log.close()
  expect(() => accessLog({ file: join(folder, 'none/none.log') })).toThrow('cannot be opened')
})
