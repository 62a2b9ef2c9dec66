// The keys of a running session, pressed on a real terminal.

import { expect, test } from 'bun:test'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { testWith } from '../support/needs.ts'
import { closedAfterEach } from '../support/opened.ts'
import { type Running, start, startOnTerminal } from './bin.ts'

const { open } = closedAfterEach()

/** An app whose answers change, and a folder with an `xdg-open` that notes what it was asked to open. */
async function setUp(status = 200) {
  const answers = { status }
  const seen: string[] = []
  const app = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      seen.push(`${request.method} ${new URL(request.url).pathname} ${await request.text()}`)
      return new Response('x', { status: answers.status })
    },
  })
  const folder = await mkdtemp(join(tmpdir(), 'localtunnels-keys-'))
  await Bun.write(
    join(folder, 'xdg-open'),
    `#!/bin/sh\nprintf '%s' "$1" > ${folder}/opening && mv ${folder}/opening ${folder}/opened\n`,
  )
  await chmod(join(folder, 'xdg-open'), 0o755)
  open({
    async [Symbol.asyncDispose]() {
      await app.stop(true)
      await rm(folder, { recursive: true })
    },
  })
  const env = { NO_COLOR: '1', PATH: `${folder}:${process.env.PATH ?? ''}`, XDG_RUNTIME_DIR: folder }
  return { app, answers, seen, env, folder }
}

const KEYS = /i inspect {2}r replay {2}h help/

async function visit(run: Running, path: string, body = ''): Promise<number> {
  const url = new URL(await run.printed(/ (http:\/\/\S+\.localhost:\d+)\r\n/))
  const headers = { host: url.host }
  return (await fetch(`http://127.0.0.1:${url.port}${path}`, { method: 'POST', body, headers })).status
}

test('r replays the last request into the app, and says what came of it', async () => {
  const { app, answers, seen, env } = await setUp(500)
  const run = open(startOnTerminal([`${app.port}`, '--local', '--inspect'], env))
  await run.printed(KEYS)
  run.type('r')
  await run.printed(/There is no request to replay yet/)
  expect(await visit(run, '/hooks', 'paid')).toBe(500)
  await run.printed(/500 {2}POST/)
  answers.status = 200
  run.type('r')
  await run.printed(/↻ POST \/hooks {2}500 → 200 {2}fixed/)
  run.type('r')
  await run.printed(/↻ POST \/hooks {2}200 → 200 {2}same/)
  expect(seen).toEqual(['POST /hooks paid', 'POST /hooks paid', 'POST /hooks paid'])
  // Neither what is pasted nor a key that means nothing does anything.
  run.type('error')
  await visit(run, '/next')
  await run.printed(/\/next/)
  run.type('q')
  await visit(run, '/last')
  await run.printed(/\/last/)
  expect(seen.slice(3)).toEqual(['POST /next ', 'POST /last '])
  await app.stop(true)
  run.type('r')
  await run.printed(/Cannot connect to/)
})

testWith(['sh'], 'i opens the page in the browser', async () => {
  const { app, env, folder } = await setUp()
  const run = open(startOnTerminal([`${app.port}`, '--local', '--inspect'], env))
  const page = await run.printed(/Inspect +(\S+)/)
  await run.printed(KEYS)
  run.type('i')
  const file = join(folder, 'opened')
  while (!(await Bun.file(file).exists())) await Bun.sleep(10)
  expect(await Bun.file(file).text()).toBe(page)
})

test('Ctrl+C ends it as without keys, and the terminal is as it was', async () => {
  const { app, env } = await setUp()
  const run = open(startOnTerminal([`${app.port}`, '--local', '--inspect'], env))
  await run.printed(KEYS)
  run.type('\x03')
  expect(await run.exited).toBe(0)
  expect(run.stdout).toMatch(/0 requests, 0 errors, [^\n]*\r\n$/)
})

testWith(
  ['bash', 'stty'],
  'in a shell: Ctrl+Z stops it, in the background it leaves the keys to the shell, fg brings them back',
  async () => {
    const { app, env } = await setUp()
    const bin = join(import.meta.dir, '../../bin/localtunnels.ts')
    let text = ''
    const changes = new Set<() => void>()
    const shell = Bun.spawn({
      cmd: ['bash', '--norc', '-i'],
      env: { ...env, HOME: env.XDG_RUNTIME_DIR, TERM: 'xterm', PS1: 'shell-', XDG_STATE_HOME: '/dev/null/x' },
      terminal: {
        cols: 100,
        rows: 30,
        data(_, bytes) {
          text += new TextDecoder().decode(bytes)
          for (const change of changes) change()
        },
      },
    })
    const printed = async (pattern: RegExp) => {
      for (;;) {
        const match = pattern.exec(text)
        if (match !== null) {
          text = text.slice(match.index + match[0].length)
          return
        }
        await new Promise<void>(resolve => changes.add(resolve))
      }
    }
    const type = (keys: string) => shell.terminal?.write(keys)
    try {
      await printed(/shell-/)
      type(`bun ${bin} ${app.port} --local --inspect\n`)
      await printed(KEYS)
      type('\x1a')
      await printed(/Stopped[\s\S]*shell-/)
      type('bg; stty -a | tr ";" "\\n" | grep -w -o -e "-*icanon"; echo the-end\n')
      await printed(/[^-]icanon[\s\S]*the-end\r\n/)
      // What is typed now is the shell's; a job that read it would be stopped.
      type('r\necho jobs: $(jobs)\n')
      await printed(/jobs: .*Running/)
      type('fg\n')
      await printed(/localtunnels\.ts/)
      // Until it has noticed; before, what is typed waits for whoever reads next.
      for (let tries = 0; !text.includes('There is no request'); tries++) {
        if (tries > 200) throw new Error(text)
        type('r')
        await Bun.sleep(50)
      }
      type('\x03')
      await printed(/0 requests, 0 errors[\s\S]*shell-/)
    } finally {
      type('exit\n')
      await shell.exited
    }
  },
)

test('without an inspector there are no keys', async () => {
  const { app, env } = await setUp()
  const run = open(startOnTerminal([`${app.port}`, '--local', '--no-inspect'], env))
  await run.printed(/● live/)
  expect(run.stdout).not.toContain('keys:')
  const piped = open(start([`${app.port}`, '--local', '--inspect'], env))
  await piped.printed(/http:\/\/\S+/)
  expect(piped.stdout + piped.stderr).not.toContain('keys:')
})

test('a server leaves what is typed off the screen, and ends with Ctrl+C', async () => {
  const { env } = await setUp()
  const run = open(startOnTerminal(['server', '--host', '127.0.0.1', '--port', '0', '--token', 'x'], env))
  await run.printed(/● live/)
  run.type('xyzzy\x03')
  expect(await run.exited).toBe(0)
  expect(run.stdout).not.toContain('xyzzy')
})

test('without an inspector keys do nothing, and leave no letter in the status line', async () => {
  const { app, env } = await setUp()
  const run = open(startOnTerminal([`${app.port}`, '--local', '--no-inspect'], env))
  await run.printed(/● live/)
  run.type('xyzzy')
  await visit(run, '/after')
  await run.printed(/\/after/)
  expect(run.stdout).not.toContain('xyzzy')
  run.type('\x03')
  expect(await run.exited).toBe(0)
})
