// What Prometheus itself says of the metrics and of the alert rules, and that rules and dashboard name metrics that there are.

import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { adminOptions, metricsOf } from '../../support/admin.ts'
import { ask } from '../../support/ask.ts'
import { testWith } from '../../support/needs.ts'
import { run } from '../../support/programs.ts'
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

test('alert rules, dashboard and docs/operating.md name only metrics that the server has', async () => {
  const families = new Set(
    [...(await metricsText()).matchAll(/^# TYPE (\S+)/gm)].map(([, name = '']) => name),
  )
  const known = (name: string) =>
    families.has(name) || families.has(name.replace(/_(?:bucket|sum|count)$/, ''))
  const operating = await Bun.file(join(folder, '../operating.md')).text()
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
