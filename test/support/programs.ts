// Other people's programs in tests: run to the end, or in the background until the test is over.

import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { within } from './within.ts'

/** Failure only. */
const DEADLINE_MS = 30_000

export interface Ran {
  readonly out: string
  readonly err: string
  readonly code: number
}

type Environment = Readonly<Record<string, string>>

/** Runs a command to its end. */
export async function run(
  command: readonly string[],
  env: Environment = {},
  input = '',
  deadlineMs: number = DEADLINE_MS,
): Promise<Ran> {
  const child = Bun.spawn([...command], {
    env: { ...process.env, ...env },
    stdin: Buffer.from(input),
    stdout: 'pipe',
    stderr: 'pipe',
    timeout: deadlineMs,
    killSignal: 'SIGKILL',
  })
  const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  return { out, err, code }
}

/** A program in the background that listens on `port`, gone when the test is. */
export async function startProgram(
  command: readonly string[],
  port: number,
  env: Environment = {},
): Promise<AsyncDisposable> {
  const child = Bun.spawn([...command], {
    env: { ...process.env, ...env },
    stdin: 'ignore',
    stdout: 'ignore',
    stderr: 'pipe',
  })
  const said = child.stderr.text()
  const ended = child.exited.then(async code => {
    throw new Error(`${command[0]} ended with ${code}: ${await said}`)
  })
  ended.catch(() => {})
  await within(Promise.race([listening(port), ended]), `${command[0]} on port ${port}`)
  return {
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM')
      await child.exited
    },
  }
}

async function listening(port: number): Promise<void> {
  while (!(await accepts(port))) await Bun.sleep(20)
}

function accepts(port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const socket = connect({ port, host: '127.0.0.1' })
  socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
  return promise.finally(() => socket.destroy())
}

export interface Folder extends AsyncDisposable {
  readonly path: string
}

/** A folder that everybody may enter: some programs give up the rights of who started them. */
export async function folder(name: string): Promise<Folder> {
  const path = await mkdtemp(`${tmpdir()}/localtunnels-${name}-`)
  await chmod(path, 0o755)
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) }
}

export const isRoot: boolean = process.getuid?.() === 0
