// The real bin whose server is away when it starts: it says so at once, and goes on until the server is there.

import { expect, test } from 'bun:test'
import { TunnelServer } from '../../src/index.ts'
import { ConfigFiles } from '../support/config-files.ts'
import { closedAfterEach } from '../support/opened.ts'
import { freePort } from '../support/ports.ts'
import { finish, start, startOnTerminal } from './bin.ts'

const { open } = closedAfterEach()

async function startServer(port: number, tokens: readonly string[] = []): Promise<void> {
  await open(new TunnelServer({ port, host: '127.0.0.1', tokens, limits: { drainTimeoutMs: 10 } })).start()
}

test.each([
  ['an app', (server: string) => ['3000', '--server', server], /^(http:\/\/\S+)\n/m],
  ['a TCP service', (server: string) => ['tcp', '22', '--server', server], /^(tcp:\/\/\S+)\n/m],
])('%s: the reason at once, in a pipe once, and the URL when the server is there', async (_, args, url) => {
  const port = freePort()
  const run = open(start(args(`127.0.0.1:${port}`)))
  await run.printed(/server unreachable, retrying\n/)
  await startServer(port)
  await run.printed(url)
  expect(run.stderr.match(/SERVER_UNREACHABLE/g)).toHaveLength(1)
  expect(run.stderr.match(/retrying/g)).toHaveLength(1)
  run.kill('SIGTERM')
  expect(await run.exited).toBe(0)
})

test('up does likewise, and says the reason for all services together', async () => {
  await using files = await ConfigFiles.make()
  const port = freePort()
  const file = await files.write(
    'a.json',
    `{"server": "127.0.0.1:${port}", "services": {"a": {"port": 1}, "b": {"port": 2}}}`,
  )
  const run = open(start(['up', '--config', file]))
  await run.printed(/server unreachable, retrying\n/)
  await startServer(port)
  await run.printed(/: 2 services\n/)
  // The URLs are on the other pipe: they may be read later.
  for (const url of [/^a +http:/m, /^b +http:/m]) await run.printed(url)
  expect(run.stdout.split('\n').toSorted().slice(1)).toEqual([
    expect.stringMatching(/^a +http:/),
    expect.stringMatching(/^b +http:/),
  ])
  expect(run.stderr.match(/SERVER_UNREACHABLE/g)).toHaveLength(1)
})

test('--json tells of every try, and a terminal in its status line', async () => {
  const args = ['3000', '--server', `127.0.0.1:${freePort()}`]
  const run = open(start([...args, '--json']))
  const third = JSON.parse(await run.printed(/.*"type":"reconnecting".*"attempt":3.*/))
  expect(third.delayMs).toBeGreaterThanOrEqual(0)
  const types = run.stdout.split('\n').map(line => /"type":"(\w+)"/.exec(line)?.[1])
  expect(types.slice(0, 5)).toEqual(['connecting', 'error', 'reconnecting', 'error', 'reconnecting'])
  run.kill('SIGINT')
  expect(await run.exited).toBe(130)
  const terminal = open(startOnTerminal(args, { NO_COLOR: '1' }))
  await terminal.printed(/SERVER_UNREACHABLE: http:\/\/127\.0\.0\.1:\d+ cannot be reached/)
  await terminal.printed(/◐ server unreachable, retrying/)
  terminal.type('\x03')
  expect(await terminal.exited).toBe(130)
})

test('Ctrl+C before anything was shared has exit code 130, SIGTERM 0, and a server that does not serve likewise', async () => {
  await using files = await ConfigFiles.make()
  const server = `127.0.0.1:${freePort()}`
  const file = await files.write('a.json', `{"server": "${server}", "services": {"a": {"port": 1}}}`)
  for (const args of [
    ['3000', '--server', server],
    ['tcp', '22', '--server', server],
    ['up', '--config', file],
  ])
    for (const [signal, wanted] of [
      ['SIGINT', 130],
      ['SIGTERM', 0],
    ] as const) {
      const run = open(start(args))
      await run.printed(/server unreachable, retrying\n/)
      run.kill(signal)
      expect([args[0], signal, await run.exited]).toEqual([args[0], signal, wanted])
    }
})

test('what does not pass by itself ends it, also when the server only came later', async () => {
  const port = freePort()
  const run = open(start(['3000', '--server', `127.0.0.1:${port}`, '--token', 'wrong']))
  await run.printed(/retrying/)
  await startServer(port, ['right'])
  expect(await run.exited).toBe(4)
  expect(run.stderr).toMatch(/\nerror TOKEN_REFUSED: /)
  const { exitCode, stderr } = await finish(['3000', '--server', `127.0.0.1:${port}`, '--token', 'wrong'])
  expect(exitCode).toBe(4)
  expect(stderr).toMatch(/^error TOKEN_REFUSED: [^\n]*\n$/)
})
