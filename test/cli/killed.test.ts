// The real bin that is killed: the next start has its name at once; one that runs beside a live one does not take it.

import { expect, test } from 'bun:test'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually } from '../support/events.ts'
import { closedAfterEach } from '../support/opened.ts'
import { TcpProxy } from '../support/tcp-proxy.ts'
import { startServer } from '../support/tunnel.ts'
import { finish, type Running, start } from './bin.ts'

const { open, defer } = closedAfterEach()

/** Starts in terminals of one user, and says which name each got. */
async function setting(port: number) {
  const XDG_STATE_HOME = await mkdtemp(join(tmpdir(), 'localtunnels-state-'))
  defer(() => rm(XDG_STATE_HOME, { recursive: true }))
  const args = ['3000', '--server', `127.0.0.1:${port}`, '--subdomain', 'v']
  return {
    folder: join(XDG_STATE_HOME, 'localtunnels'),
    run: () => open(start(args, { XDG_STATE_HOME })),
    exact: () => finish([...args, '--exact'], { XDG_STATE_HOME }),
  }
}

const nameOf = (run: Running): Promise<string> => run.printed(/^http:\/\/([\w-]+)\.localhost/m)

async function kill(run: Running): Promise<void> {
  run.kill('SIGKILL')
  await run.exited
}

test('two terminals: the second gets v-2; when the first is killed, the third gets v', async () => {
  const server = open(await startServer())
  const { run, exact, folder } = await setting(server.port)
  const first = run()
  expect(await nameOf(first)).toBe('v')
  const second = run()
  expect(await nameOf(second)).toBe('v-2')
  expect(await exact()).toMatchObject({ exitCode: 4, stderr: expect.stringMatching(/^error NAME_TAKEN: /) })
  await kill(first)
  const third = run()
  expect(await nameOf(third)).toBe('v')
  await kill(second)
  const fourth = run()
  expect(await nameOf(fourth)).toBe('v-2')
  for (const one of [third, fourth]) {
    one.kill('SIGTERM')
    expect(await one.exited).toBe(0)
  }
  // Given back in good order: nothing is left.
  expect(await readdir(folder)).toEqual([])
})

test('killed again and again, and while the server still takes it for alive: v each time', async () => {
  const server = open(await startServer())
  const proxy = new TcpProxy(server.port)
  defer(async () => proxy[Symbol.dispose]())
  const { run } = await setting(proxy.port)
  for (let round = 0; round < 3; round++) {
    const one = run()
    expect(await nameOf(one)).toBe('v')
    // What the machine says of the end of the process does not arrive.
    if (round === 1) proxy.isSilent = true
    await kill(one)
    proxy.isSilent = false
    if (round !== 1) await eventually(() => server.getStats().connections === 0, 'the server to notice')
  }
})
