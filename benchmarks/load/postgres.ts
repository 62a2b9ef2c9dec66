// A database session as load: a PostgreSQL of its own, asked by pgbench.

import { chownSync } from 'node:fs'
import { Glob } from 'bun'
import { finish, launch } from '../measure/children.ts'
import { freePort, listening } from '../measure/ports.ts'
import { scratch } from '../peers/binary.ts'

/** To take clients. */
const START_MS = 10_000
/** PostgreSQL refuses to be root. */
const isRoot = process.getuid?.() === 0
const AS_POSTGRES = isRoot ? ['setpriv', '--reuid=postgres', '--regid=postgres', '--clear-groups'] : []

/** Debian keeps the server's programs out of the path. */
function pathOf(name: string): string | undefined {
  const [debian] = [...new Glob(`/usr/lib/postgresql/*/bin/${name}`).scanSync('/')]
  return Bun.which(name) ?? debian
}

export function hasPostgres(): boolean {
  return ['initdb', 'postgres', 'pgbench', 'pg_isready'].every(name => pathOf(name) !== undefined)
}

function program(name: string): readonly string[] {
  return [...AS_POSTGRES, pathOf(name)!]
}

/** Starts one with the tables of pgbench, without fsync: the disk is not what is measured. */
export async function startPostgres(): Promise<{ readonly port: number; stop(this: void): Promise<void> }> {
  const files = scratch('postgres')
  const folder = files.path('.')
  if (isRoot) {
    const { stdout } = await finish(['id', '-u', 'postgres'])
    chownSync(folder, Number(stdout), Number(stdout))
  }
  const data = files.path('data')
  await succeed([...program('initdb'), '-D', data, ...'-U postgres -A trust --no-sync'.split(' ')])
  const port = freePort()
  const settings = `-c port=${port} -c listen_addresses=127.0.0.1 -c unix_socket_directories=${folder} -c fsync=off`
  const child = await launch([...program('postgres'), '-D', data, ...settings.split(' ')])
  await listening(port)
  await answering(port)
  await succeed(pgbench(port, '-i', '-s', '5', '-q'))
  return {
    port,
    async stop() {
      await child.stop()
      files.remove()
    },
  }
}

/** It listens before it takes clients: until it does, it refuses them. */
async function answering(port: number): Promise<void> {
  const ask = [...program('pg_isready'), '-q', '-h', '127.0.0.1', '-p', String(port)]
  const deadline = performance.now() + START_MS
  while ((await finish(ask)).code !== 0) {
    if (performance.now() > deadline) throw new Error(`PostgreSQL takes no clients after ${START_MS} ms`)
    await Bun.sleep(20)
  }
}

/** Transactions per second of ten clients that read one row each time. Throws when one failed. */
export async function transactions(
  port: number,
  seconds: number,
): Promise<{ readonly rate: number; readonly count: number }> {
  const said = await succeed(pgbench(port, '-n', '-S', '-c', '10', '-j', '2', '-T', String(seconds)))
  const rate = Number(/^tps = ([\d.]+)/m.exec(said)?.[1])
  const count = Number(/actually processed: (\d+)/.exec(said)?.[1])
  const failed = /failed transactions: (\d+)/.exec(said)?.[1] ?? '0'
  if (failed !== '0' || !(rate > 0) || !(count > 0))
    throw new Error(`pgbench: ${failed} failed, ${said.slice(-200)}`)
  return { rate, count }
}

function pgbench(port: number, ...flags: readonly string[]): readonly string[] {
  return [...program('pgbench'), ...`-h 127.0.0.1 -p ${port} -U postgres`.split(' '), ...flags, 'postgres']
}

async function succeed(command: readonly string[]): Promise<string> {
  const { stdout, stderr, code } = await finish(command, { timeoutMs: 60_000 })
  if (code !== 0) throw new Error(`${command.join(' ')}: ${stderr.slice(-300)}`)
  return stdout
}
