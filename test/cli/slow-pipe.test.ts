// Output to a pipe whose reader is slow is complete: the process waits for its reader before it exits.

import { afterAll, afterEach, expect, test } from 'bun:test'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ask } from '../support/ask.ts'
import { next } from '../support/events.ts'
import { startServer } from '../support/tunnel.ts'
import { within } from '../support/within.ts'

const BIN = join(import.meta.dir, '../../bin/localtunnels.ts')
const folder = await mkdtemp(join(tmpdir(), 'localtunnels-'))
afterAll(() => rm(folder, { recursive: true }))

const started: { readonly child: Bun.Subprocess; readonly pid: Promise<number> }[] = []
// A test that fails before it reads leaves a command that waits for its reader.
afterEach(async () => {
  for (const { child, pid } of started.splice(0)) {
    try {
      process.kill(await pid, 'SIGKILL')
    } catch {
      // It has ended by itself.
    }
    await child.exited
  }
})

/** A process whose output is not read until `read`: the pipe fills up at 64 KiB. */
function stalled(args: readonly string[]) {
  // A pipe of the kernel: one that Bun makes for its own child is read ahead.
  const script = 'exec 3<&0; { echo $BASHPID >&2; exec "$0" "$@" 2>/dev/null; } | { read -r go <&3; cat; }'
  const child = Bun.spawn(['bash', '-c', script, 'bun', BIN, ...args], {
    cwd: folder,
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const pid = child.stderr
    .getReader()
    .read()
    .then(({ value }) => Number(new TextDecoder().decode(value)))
  started.push({ child, pid })
  return {
    /** Of the command, not of the shell. */
    pid,
    async read(): Promise<string> {
      void child.stdin.write('go\n')
      await child.stdin.end()
      return within(child.stdout.text(), 'the whole output')
    },
  }
}

test('config schema: all of it, though the pipe holds less', async () => {
  const whole = await Bun.$`bun ${BIN} config schema`.text()
  expect(whole.length).toBeGreaterThan(65_536)
  expect(await stalled(['config', 'schema']).read()).toBe(whole)
})

test('config check: every service of a large file', async () => {
  const services = Array.from(
    { length: 2_000 },
    (_, index) => `[services.a-service-number-${index}]\nport = 3000\n`,
  )
  await writeFile(join(folder, 'localtunnels.toml'), services.join('\n'))
  const whole = await Bun.$`bun ${BIN} config check`.cwd(folder).text()
  expect(whole.length).toBeGreaterThan(65_536)
  expect(await stalled(['config', 'check']).read()).toBe(whole)
}, 60_000)

test('--json: every event, and the totals behind a SIGTERM', async () => {
  await using server = await startServer()
  using app = Bun.serve({ port: 0, fetch: () => new Response('ok') })
  const connected = next(server, 'connection')
  const reader = stalled([`${app.port}`, '--json', '--subdomain', 'slow', '--server', server.url])
  await connected
  // Each line has the path: 40 of 4 kB are more than the pipe holds.
  const path = `/${'x'.repeat(4_000)}`
  for (let request = 0; request < 40; request++) {
    expect((await ask(server.port, 'slow.localhost', { path })).status).toBe(200)
  }
  process.kill(await reader.pid, 'SIGTERM')
  await next(server, 'disconnection')
  const lines = (await reader.read()).trim().split('\n')
  const events = lines.map(line => JSON.parse(line) as { readonly type: string; readonly requests?: number })
  expect(events.filter(({ type }) => type === 'response')).toHaveLength(40)
  expect(events.at(-1)).toMatchObject({ type: 'totals', requests: 40 })
})

test('a reader that leaves behind the URL, as head -1 does, ends the command without another line', async () => {
  await using server = await startServer()
  const line = `bun ${BIN} 3000 --server ${server.url} --quiet 2>/dev/null | head -1`
  const child = Bun.spawn(['bash', '-c', line], { cwd: folder, stdout: 'pipe', stderr: 'inherit' })
  expect(await within(child.stdout.text(), 'the URL')).toMatch(/^http:\/\/[\w-]+\.localhost:\d+\n$/)
  // The shell ends when both ends of the pipe have.
  await within(child.exited, 'the end of the command')
})
