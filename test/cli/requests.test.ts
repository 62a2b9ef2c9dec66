// What came through a tunnel in one terminal, asked for in another.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { rawDial } from '../support/raw.ts'
import { finish, type Running, start } from './bin.ts'

let folder = ''
let env: Readonly<Record<string, string>> = {}
let session: Running
let app: Bun.Server<undefined>
let url: URL
let status = 500

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'localtunnels-requests-'))
  env = { XDG_RUNTIME_DIR: folder }
  app = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: ({ url: asked }) =>
      new Response('said', { status: new URL(asked).pathname === '/state' ? status : 200 }),
  })
  session = start([`127.0.0.1:${app.port}`, '--local', '--inspect'], env)
  url = new URL(await session.printed(/^(http:\/\/\S+)$/m))
})
afterAll(async () => {
  await session[Symbol.asyncDispose]()
  await app.stop(true)
  await rm(folder, { recursive: true })
})

async function visit(path: string, init: RequestInit = {}): Promise<void> {
  const headers = { host: url.host, connection: 'close' }
  await (await fetch(`http://127.0.0.1:${url.port}${path}`, { ...init, headers })).text()
}

test('they are listed, the newest last, filtered, and as JSON', async () => {
  await visit('/one?a=1')
  await visit('/two')
  const { stdout, exitCode } = await finish(['requests', 'path:/one?* is:done'], env)
  expect(stdout).toMatch(/^ +\d+ {2}\d\d:\d\d:\d\d {2}GET +200 .* 4 B {2}\/one\?a=1\n$/)
  expect(exitCode).toBe(0)
  const all = (await finish(['requests', '--json', '/two'], env)).stdout.trim().split('\n')
  expect(JSON.parse(all.at(-1) ?? '')).toMatchObject({ method: 'GET', path: '/two', status: 200 })
})

test('what a visitor sent does not steer the terminal, as JSON neither', async () => {
  const visitor = await rawDial(Number(url.port))
  await visitor.send(
    Buffer.from(`GET /steer\x9b2J HTTP/1.1\r\nHost: ${url.host}\r\nConnection: close\r\n\r\n`, 'latin1'),
  )
  await visitor.until('said')
  visitor.socket.terminate()
  const { stdout } = await finish(['requests', '--json', 'path:/steer*'], env)
  expect(stdout).toContain('/steer\\u009b2J')
  expect(stdout).not.toContain('\x9b')
})

test('--follow goes on with what comes, and ends with the session or by Ctrl+C', async () => {
  await using following = start(['requests', '/later', '--follow', '--json'], env)
  // Once it answers, events come: the same client would be asked in vain before.
  const visiting = setInterval(() => void visit('/later/again'), 50)
  expect(JSON.parse(await following.printed(/^(\{.*"path":"\/later\/again".*\})$/m))).toMatchObject({
    status: 200,
  })
  clearInterval(visiting)
  following.kill('SIGINT')
  expect(await following.exited).toBe(0)
})

test('a request is sent again, and what became worse is an exit code', async () => {
  status = 500
  await visit('/state')
  status = 200
  const fixed = await finish(['replay', 'latest', '--times', '2'], env)
  expect(fixed.stdout.match(/ {2}fixed\n/g)?.length).toBe(2)
  expect(fixed.exitCode).toBe(0)
  status = 500
  const worse = await finish(['replay', 'latest'], env)
  expect(worse.stdout).toEndWith('  regressed\n')
  expect(worse.exitCode).toBe(6)
  const none = await finish(['replay', '999999'], env)
  expect(none.stderr).toStartWith('error EXCHANGE_NOT_FOUND: ')
  expect(none.exitCode).toBe(2)
})

test('what cannot be sent again is refused, with a code and an exit code', async () => {
  await visit('/upload', { method: 'POST', body: 'x'.repeat(300_000) })
  const cut = await finish(['replay', 'latest'], env)
  expect(cut.stderr).toStartWith('error BODY_TRUNCATED: ')
  expect(cut).toMatchObject({ stdout: '', exitCode: 4 })
  await visit('/unsigned')
  const unsigned = await finish(['replay', 'latest', '--resign'], env)
  expect(unsigned.stderr).toStartWith('error REPLAY_IMPOSSIBLE: It is no webhook ')
  expect(unsigned.exitCode).toBe(4)
})

test('a request is edited first, in the editor that the user has', async () => {
  await visit('/edit?a=1')
  // As `sed`, whose name has blanks in it; ends as it began when it finds no file.
  const edits = ['s#^GET /edit?a=1$#PUT /edited?b=2#', 's#^[Aa]ccept: .*#X-New: yes#']
  const EDITOR = `sed -i ${edits.map(edit => `-e '${edit}'`).join(' ')} -e '$ a {"new":true}'`
  const { stdout, exitCode } = await finish(['replay', 'latest', '--edit', '--diff'], { ...env, EDITOR })
  expect(stdout).toMatch(/ {2}PUT .* {2}\/edited\?b=2 {2}(?:same|different)\n/)
  expect(stdout).toContain('\n  request\n- GET /edit?a=1\n+ PUT /edited?b=2\n')
  expect(stdout).toContain('\n+ X-New: yes\n')
  expect(stdout).toContain('\n+ {"new":true}\n')
  expect(exitCode).toBe(0)
  for (const [failing, says] of [
    ['false', 'error OPTION_INVALID: The editor "false" ended with 1: nothing was sent.'],
    ['/nowhere/vi', 'error OPTION_INVALID: The editor "/nowhere/vi" ended with 127'],
    ['truncate -s 0', 'error OPTION_INVALID: The edited request is empty: nothing was sent.'],
    ["sed -i '3s/ .*//'", 'error OPTION_INVALID: "PUT" is not a method and a path'],
  ]) {
    const failed = await finish(['replay', 'latest', '--edit'], { ...env, EDITOR: failing! })
    expect(failed.stderr).toContain(says!)
    expect(failed).toMatchObject({ stdout: '', exitCode: 2 })
  }
})

test('what did not change is sent byte for byte, and is no difference', async () => {
  await visit('/unchanged')
  const same = await finish(['replay', 'latest', '--edit', '--diff', '--json'], { ...env, EDITOR: 'true' })
  const { verdict, diff } = JSON.parse(same.stdout)
  expect(verdict).toBe('same')
  expect(diff.request.first.isSame && diff.request.body.isSame).toBe(true)
})

test('a script waits for a request, and no longer than it says', async () => {
  await using waiting = start(['wait', '/awaited', '--timeout', '10s', '--json'], env)
  const visiting = setInterval(() => void visit('/awaited'), 50)
  expect(JSON.parse(await waiting.printed(/^(\{.*\})$/m))).toMatchObject({ path: '/awaited' })
  clearInterval(visiting)
  expect(await waiting.exited).toBe(0)
  const late = await finish(['wait', '/never', '--timeout', '100ms'], env)
  expect(late.stderr).toStartWith('error WAIT_TIMEOUT: No request that matches the filter ended in time.')
  expect(late).toMatchObject({ stdout: '', exitCode: 7 })
})

test('a wrong filter, another process, and no session at all are said', async () => {
  const wrong = await finish(['requests', 'slower:soon'], env)
  expect(wrong.stderr).toStartWith('error OPTION_INVALID: Character ')
  expect(wrong.exitCode).toBe(2)
  const other = await finish(['requests', '--pid', '1'], env)
  expect(other.stderr).toStartWith('error INSPECTOR_NOT_FOUND: No process 1 of this user has an inspector.')
  expect(other.exitCode).toBe(3)
  const nowhere = await finish(['wait'], { XDG_RUNTIME_DIR: join(folder, 'empty') })
  expect(nowhere.stderr).toStartWith('error INSPECTOR_NOT_FOUND: ')
})
