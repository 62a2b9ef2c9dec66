// The real bin running a real command: what it is told, where its visitors go, and how both end.

import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { TunnelServer } from '../../src/tunnel-server.ts'
import { ask } from '../support/ask.ts'
import { eventually } from '../support/events.ts'
import { closedAfterEach } from '../support/opened.ts'
import { freePort } from '../support/ports.ts'
import { finish, start, startOnTerminal } from './bin.ts'

const APP = ['bun', join(import.meta.dir, '../support/command-app.ts')]
const { open } = closedAfterEach()

async function server(): Promise<TunnelServer> {
  const one = open(
    new TunnelServer({ port: 0, host: '127.0.0.1', limits: { drainTimeoutMs: 10, startupHoldMs: 0 } }),
  )
  await one.start()
  return one
}

/** One that has ended and was not collected yet is none. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return process.platform !== 'linux' || !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'latin1'))
  } catch {
    return false
  }
}

const LEADS = /(http:\/\/app\.localhost:\d+) → localhost:\d+/
const sharing = (port: number, ...more: readonly string[]) => [
  'run',
  '--server',
  `http://127.0.0.1:${port}`,
  '--subdomain',
  'app',
  ...more,
]

/** Once visitors get there: the answer. */
async function visit(port: number, path: string, isWanted: (body: string) => boolean): Promise<string> {
  for (;;) {
    const { body } = await ask(port, 'app.localhost', { path })
    if (isWanted(body)) return body
  }
}

describe('a command', () => {
  test('knows its URL before it starts, and is found on whatever port it opens, below a shell as well', async () => {
    const { port } = await server()
    const running = open(
      start([...sharing(port), '--', 'sh', '-c', `${APP.join(' ')} --flag --port 1; exit $?`]),
    )
    await running.printed(LEADS)
    // What the command prints is its own: ours goes to standard error.
    expect(running.stdout).toStartWith('told ')
    expect(JSON.parse(running.stdout.slice('told '.length))).toEqual({
      url: `http://app.localhost:${port}`,
      hosts: 'app.localhost',
      words: ['--flag', '--port', '1'],
    })
    const first = await visit(port, '/', body => body.startsWith('port '))
    await ask(port, 'app.localhost', { path: '/move' })
    await visit(port, '/', body => body.startsWith('port ') && body !== first)
    // Its exit code is that of the command.
    await ask(port, 'app.localhost', { path: '/exit' })
    expect(await running.exited).toBe(3)
    expect((await ask(port, 'app.localhost')).code).toBe('TUNNEL_NOT_FOUND')
  })

  test('gets the port that was asked for, and what the user has set stays', async () => {
    const { port } = await server()
    const wished = freePort()
    const running = open(
      start([...sharing(port, '--port', `${wished}`), '--', ...APP], { PUBLIC_URL: 'https://mine.example' }),
    )
    await running.printed(LEADS)
    expect(running.stdout).toContain('"url":"https://mine.example"')
    expect(await visit(port, '/', body => body.startsWith('port '))).toBe(`port ${wished}`)
    running.kill('SIGTERM')
    expect(await running.exited).toBe(7)
  })

  test('is told to end by SIGTERM, with all that it started, and its own code counts', async () => {
    const { port } = await server()
    const running = open(start([...sharing(port), '--', ...APP]))
    await running.printed(LEADS)
    running.kill('SIGTERM')
    expect(await running.exited).toBe(7)
    expect(running.stdout).toContain('told to end')
  })

  test('on a terminal SIGTERM to us alone reaches it', async () => {
    const { port } = await server()
    const running = open(startOnTerminal([...sharing(port), '--', ...APP]))
    await running.printed(LEADS)
    running.kill('SIGTERM')
    expect(await running.exited).toBe(7)
    expect(running.stdout).toContain('told to end')
  })

  test('what it leaves in the background ends with it', async () => {
    const { port } = await server()
    const script = 'sleep 300 & echo "background $!"; exit 0'
    const running = open(start([...sharing(port), '--', 'sh', '-c', script]))
    const pid = Number(await running.printed(/background (\d+)/))
    expect(await running.exited).toBe(0)
    await eventually(() => !isAlive(pid), 'the end of what was left')
  })

  test('SIGKILL to us ends it with all that it started', async () => {
    const { port } = await server()
    const script = `sleep 300 & echo "background $!"; ${APP.join(' ')}`
    const running = open(start([...sharing(port), '--', 'sh', '-c', script]))
    const pid = Number(await running.printed(/background (\d+)/))
    await running.printed(LEADS)
    running.kill('SIGKILL')
    // Its output ends with the last process that has it.
    await running.exited
    expect(running.stdout).toContain('told to end')
    expect(isAlive(pid)).toBe(false)
  })

  test('Ctrl+C before there is a tunnel starts nothing', async () => {
    // It accepts, and says nothing.
    using silent = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } })
    const asked = Promise.withResolvers<void>()
    silent.reload({ socket: { data: () => asked.resolve() } })
    const running = open(start([...sharing(silent.port), '--', 'echo', 'started']))
    await asked.promise
    running.kill('SIGINT')
    expect(await running.exited).toBe(130)
    expect(running.stdout).toBe('')
  })

  test('on a terminal it has colours, the keys, and Ctrl+C', async () => {
    const { port } = await server()
    const program = `process.stdout.write('tty ' + process.stdin.isTTY + process.stdout.isTTY + '\\n'); process.stdin.once('data', data => console.log('typed ' + data)); process.on('SIGINT', () => process.exit(5)); setInterval(() => {}, 1000)`
    const running = open(startOnTerminal([...sharing(port), '--', 'bun', '-e', program]))
    await running.printed(/tty truetrue/)
    running.type('hello\r')
    await running.printed(/typed hello/)
    running.type('\x03')
    expect(await running.exited).toBe(5)
  })
})

describe('without a tunnel', () => {
  test('the command runs all the same, and its exit code counts', async () => {
    const { stdout, stderr, exitCode } = await finish([
      ...sharing(freePort()),
      '--',
      'sh',
      '-c',
      'echo "url=$PUBLIC_URL"; exit 9',
    ])
    expect(stdout).toBe('url=\n')
    expect(stderr).toContain('SERVER_UNREACHABLE: ')
    expect(stderr).toContain('The command runs without a public URL; --required prevents that.')
    expect(exitCode).toBe(9)
  })

  test('with --required it does not', async () => {
    const { stdout, exitCode } = await finish([...sharing(freePort(), '--required'), '--', 'echo', 'ran'])
    expect(stdout).toBe('')
    expect(exitCode).toBe(3)
  })
})

test('that the command failed is said', async () => {
  const { port } = await server()
  const { stdout, stderr, exitCode } = await finish([...sharing(port), '--', 'sh', '-c', 'exit 3'])
  expect(stdout + stderr).toContain('sh ended with exit code 3')
  expect(exitCode).toBe(3)
})

test('a program that is not there, and no command at all, are mistakes', async () => {
  const { port } = await server()
  const missing = await finish([...sharing(port), '--', 'no-such-program'])
  expect(missing.stderr).toContain(
    'error OPTION_INVALID: no-such-program cannot be run: there is no such program.',
  )
  expect(missing.exitCode).toBe(2)
  const none = await finish(['run'])
  expect(none.exitCode).toBe(2)
})
