// What Prometheus itself says of the metrics and of the alert rules, and that rules and dashboard name metrics that there are.

import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { TunnelClient } from '../../../src/index.ts'
import { adminOptions, metricsOf, sampleOf } from '../../support/admin.ts'
import { ask } from '../../support/ask.ts'
import { ok } from '../../support/exchange.ts'
import { testWith } from '../../support/needs.ts'
import { run } from '../../support/programs.ts'
import { type RawConnection, RawOrigin, rawDial } from '../../support/raw.ts'
import { TEST_CERT, TEST_KEY } from '../../support/tls.ts'
import { startServer, startTunnel } from '../../support/tunnel.ts'

const folder = join(import.meta.dir, '../../../docs/operating')

/** Of a server that has something of everything. */
async function metricsText(): Promise<string> {
  await using tunnel = await startTunnel(
    { fetch: () => new Response('hello') },
    { server: { admin: adminOptions() } },
  )
  const raw = await tunnel.client.tcp({ port: 1 })
  await ask(tunnel.port, tunnel.host)
  await ask(tunnel.port, 'nobody.localhost')
  await fetch(raw.url.replace('tcp:', 'http:')).catch(() => {})
  return await metricsOf(tunnel.server)
}

async function promtool(words: readonly string[], input = ''): Promise<{ text: string; code: number }> {
  const program = Bun.spawn(['promtool', ...words], {
    stdin: Buffer.from(input),
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [out, err] = await Promise.all([
    new Response(program.stdout).text(),
    new Response(program.stderr).text(),
  ])
  return { text: out + err, code: await program.exited }
}

testWith(['promtool'], 'promtool accepts the metrics', async () => {
  expect(await promtool(['check', 'metrics'], await metricsText())).toEqual({ text: '', code: 0 })
})

testWith(['promtool'], 'promtool accepts the alert rules', async () => {
  const { text, code } = await promtool(['check', 'rules', join(folder, 'alerts.yml')])
  expect(text).toContain('SUCCESS')
  expect(code).toBe(0)
})

test('alert rules, dashboard and docs/monitoring.md name only metrics that the server has', async () => {
  const families = new Set(
    [...(await metricsText()).matchAll(/^# TYPE (\S+)/gm)].map(([, name = '']) => name),
  )
  const known = (name: string) =>
    families.has(name) || families.has(name.replace(/_(?:bucket|sum|count)$/, ''))
  const operating = await Bun.file(join(folder, '../monitoring.md')).text()
  for (const text of [
    await Bun.file(join(folder, 'alerts.yml')).text(),
    await Bun.file(join(folder, 'dashboard.json')).text(),
  ]) {
    const named = [...text.matchAll(/\b(?:localtunnels|process)_[a-z_]+/g)].map(([name]) => name)
    expect(named.length).toBeGreaterThan(9)
    expect(named.filter(name => !known(name))).toEqual([])
  }
  const undocumented = [...families].filter(name => !operating.includes(name.replace(/^localtunnels_/, '')))
  expect(undocumented).toEqual([])
})

test('the days that a certificate has left are among the metrics', async () => {
  await using server = await startServer({ tls: { cert: TEST_CERT, key: TEST_KEY }, admin: adminOptions() })
  const [, seconds = ''] =
    /^localtunnels_certificate_expiry_timestamp_seconds\{name="localhost"\} (\S+)$/m.exec(
      await metricsOf(server),
    ) ?? []
  expect(Number(seconds)).toBeGreaterThan(Date.now() / 1_000)
})

testWith(['sh'], 'a process without a free descriptor still has metrics', async () => {
  const program = join(import.meta.dir, '../../support/metrics-without-descriptors.ts')
  expect(await run(['sh', '-c', 'ulimit -n 256; exec bun "$0"', program])).toEqual({
    out: '200\n',
    err: '',
    code: 0,
  })
})

test('requests that are sent once more are counted: on a new connection to the app, and to another client of a pool', async () => {
  using origin = new RawOrigin()
  await using tunnel = await startTunnel(
    { port: origin.port, pool: true },
    { server: { admin: adminOptions() } },
  )
  const retried = async () => sampleOf(await metricsOf(tunnel.server), 'localtunnels_requests_retried_total')
  const first = ask(tunnel.port, tunnel.host)
  const stale = await origin.accept()
  await stale.until('\r\n\r\n')
  await stale.send(ok('one'))
  expect((await first).body).toBe('one')
  expect(await retried()).toBe(0)
  // The app closes its connection in place of an answer.
  const second = ask(tunnel.port, tunnel.host)
  await stale.until('\r\n\r\n')
  stale.socket.end()
  const fresh = await origin.accept()
  await fresh.until('\r\n\r\n')
  await fresh.send(ok('two'))
  expect((await second).body).toBe('two')
  expect(await retried()).toBe(1)
  // A POST of which the app has everything is not sent again.
  const posted = ask(tunnel.port, tunnel.host, { method: 'POST', body: 'once' })
  await fresh.until('once')
  fresh.socket.end()
  expect((await posted).code).toBe('ORIGIN_CLOSED')
  expect(await retried()).toBe(1)

  // A second client, whose app is not there.
  const other = new TunnelClient({ server: `http://127.0.0.1:${tunnel.port}` })
  await other.http({ subdomain: 'app', port: 1, pool: true })
  const serve = async (app: RawConnection) => {
    for (;;) {
      await app.until('\r\n\r\n')
      await app.send(ok('three'))
    }
  }
  const serving = (async () => {
    for (;;) serve(await origin.accept()).catch(() => {})
  })()
  serving.catch(() => {})
  for (let count = 0; count < 4; count++) expect((await ask(tunnel.port, tunnel.host)).body).toBe('three')
  expect(await retried()).toBeGreaterThan(1)
  await other.disconnect()
})

test('what is refused before it is known where it goes is counted by its code, too', async () => {
  await using tunnel = await startTunnel(
    { fetch: () => new Response('hello') },
    { server: { admin: adminOptions(), limits: { maxAddressVisitors: 3 } } },
  )
  const failed = async (code: string) =>
    sampleOf(await metricsOf(tunnel.server), `localtunnels_failed_total{tunnel="",code="${code}"}`)
  const broken = await rawDial(tunnel.port)
  await broken.send('GET / HTTP/1.1\r\nHost: a b\r\n\r\n')
  await broken.until('400')
  const long = await rawDial(tunnel.port)
  await long.send(`GET /${'x'.repeat(200_000)} HTTP/1.1\r\n`)
  await long.end()
  expect([await failed('BAD_REQUEST'), await failed('TARGET_TOO_LONG')]).toEqual([1, 1])
  const many = await Promise.all(Array.from({ length: 8 }, () => rawDial(tunnel.port)))
  await Promise.race(many.map(one => one.closed()))
  expect(await failed('ADDRESS_LIMIT')).toBeGreaterThan(0)
  for (const one of many) one.socket.terminate()
})
