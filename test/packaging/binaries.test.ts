// A single executable, built and run: with its threads, without the files of the current folder, and with what is inside it.
// About 6 s: a whole runtime is written to disk, and 300 MB pass through a tunnel.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { VERSION } from '../../src/version.ts'
import { expectThreadsToMove } from '../support/downloads.ts'
import { PAGES, release } from '../support/released.ts'

const root = resolve(import.meta.dir, '../..')
const PLATFORM = `${process.platform === 'darwin' ? 'macos' : process.platform}-${process.arch}`
let folder = ''
let program = ''

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'localtunnels-binaries-'))
  const sources = join(folder, 'sources')
  await release(sources)
  const build = ['bun', join(sources, 'tools/binaries.ts'), '--only', PLATFORM, '--to', folder]
  const { exitCode, stderr } = await finish([...build, '--runtime', process.execPath])
  if (exitCode !== 0) throw new Error(stderr)
  program = join(folder, `localtunnels-${PLATFORM}`)
}, 60_000)
afterAll(() => rm(folder, { recursive: true, force: true }))

interface Finished {
  readonly exitCode: number
  readonly stdout: string
  readonly stderr: string
}

/** An empty environment: neither Bun nor Node is on PATH for the executable. */
function start(cmd: readonly string[], env: Readonly<Record<string, string>> = {}) {
  return Bun.spawn({
    cmd: [...cmd],
    cwd: folder || undefined,
    env: {
      HOME: folder,
      XDG_STATE_HOME: folder,
      ...(cmd[0] === 'bun' && { PATH: process.env.PATH }),
      ...env,
    },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
}

async function finish(cmd: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Finished> {
  const child = start(cmd, env)
  const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()])
  return { exitCode: await child.exited, stdout, stderr }
}

test('it says its version and its messages lead to pages of that version', async () => {
  expect(await finish([program, '--version'])).toEqual({ exitCode: 0, stdout: `${VERSION}\n`, stderr: '' })
  const { stdout } = await finish([program, '--help'])
  expect(stdout).toContain(`\nDocumentation: ${PAGES}\n`)
  const { stderr } = await finish([program, '--port', '99999'])
  expect(stderr).toEndWith(`\n  ${PAGES}/errors.md#option_invalid\n`)
})

test('files of the current folder have no say', async () => {
  await writeFile(join(folder, '.env'), 'TUNNEL_SERVER=127.0.0.1:1\n')
  await writeFile(join(folder, 'bunfig.toml'), 'preload = ["./preload.ts"]\n')
  await writeFile(join(folder, 'preload.ts'), 'console.log("PRELOADED")\n')
  const { stdout, exitCode } = await finish([program, 'doctor', '--json'])
  expect(stdout).not.toContain('PRELOADED')
  expect(stdout).not.toContain('127.0.0.1:1')
  expect(exitCode).toBeLessThanOrEqual(6)
})

test.skipIf(process.platform !== 'linux')('its threads move the bytes of a download', () =>
  expectThreadsToMove(args => start([program, ...args])),
)

test('beside it are its checksum and what is inside', async () => {
  const [sums, sbom] = await Promise.all(
    ['SHA256SUMS', 'sbom.cdx.json'].map(name => readFile(join(folder, name), 'utf8')),
  )
  const sum = new Bun.CryptoHasher('sha256').update(await Bun.file(program).bytes()).digest('hex')
  expect(sums).toContain(`${sum}  localtunnels-${PLATFORM}\n`)
  // Written by tools/components.ts.
  const { components } = JSON.parse(sbom ?? '') as {
    readonly components: readonly { readonly name: string }[]
  }
  const { dependencies } = await Bun.file(join(root, 'package.json')).json()
  expect(components.map(({ name }) => name)).toEqual(
    expect.arrayContaining(['bun', ...Object.keys(dependencies)]),
  )
})

test('one without what a server of a cluster needs is not built', async () => {
  const bare = join(folder, 'bare')
  for (const name of ['package.json', 'src', 'tools'])
    await cp(join(root, name), join(bare, name), { recursive: true })
  const { exitCode, stderr } = await finish(['bun', join(bare, 'tools/binaries.ts'), '--only', PLATFORM])
  expect({ exitCode, stderr }).toEqual({
    exitCode: 2,
    stderr: 'error: ioredis is not installed, and would be missing in the executable.\n',
  })
  // One that was built has it: it looks for the Redis.
  const server = await finish([program, 'server', '--cluster', 'redis://127.0.0.1:1', '--port', '0'])
  expect(server.stderr).not.toContain('ioredis')
})

test('a platform that there is not is refused with those that there are', async () => {
  const { exitCode, stderr } = await finish([
    'bun',
    join(root, 'tools/binaries.ts'),
    '--only',
    'amiga',
    '--to',
    `${folder}/x`,
  ])
  expect(exitCode).toBe(2)
  expect(stderr).toContain('linux-x64, linux-arm64')
})
