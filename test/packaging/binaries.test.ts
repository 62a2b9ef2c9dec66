// A single executable, built and run: with its threads, without the files of the current folder, and with what is inside it.
// About 6 s: a whole runtime is written to disk, and 300 MB pass through a tunnel.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { VERSION } from '../../src/version.ts'
import { eventually } from '../support/events.ts'

const root = resolve(import.meta.dir, '../..')
const PLATFORM = `${process.platform === 'darwin' ? 'macos' : process.platform}-${process.arch}`
let folder = ''
let program = ''

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'localtunnels-binaries-'))
  const build = ['bun', join(root, 'tools/binaries.ts'), '--only', PLATFORM, '--to', folder]
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

test('it says its version and names pages of that version', async () => {
  expect(await finish([program, '--version'])).toEqual({ exitCode: 0, stdout: `${VERSION}\n`, stderr: '' })
  const { stdout } = await finish([program, '--help'])
  expect(stdout).toContain(`https://unpkg.com/localtunnels@${VERSION}/docs`)
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

test.skipIf(process.platform !== 'linux')('its threads move the bytes of a download', async () => {
  const app = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: () => new Response(new Uint8Array(300_000_000)),
  })
  const sharing = start([program, `127.0.0.1:${app.port}`, '--subdomain', 'app', '--local'])
  try {
    const reader = sharing.stdout.getReader()
    const decoder = new TextDecoder()
    let printed = ''
    let url: URL | undefined
    while (url === undefined) {
      const { value, done } = await reader.read()
      if (done) throw new Error(`no URL: ${printed}${await sharing.stderr.text()}`)
      printed += decoder.decode(value, { stream: true })
      const [found] = /http:\/\/app\.localhost:\d+/.exec(printed) ?? []
      if (found !== undefined) url = new URL(found)
    }
    const answer = await fetch(`http://127.0.0.1:${url.port}/`, { headers: { host: url.host } })
    let bytes = 0
    for await (const piece of answer.body ?? []) bytes += piece.length
    expect(bytes).toBe(300_000_000)
    // The runtime calls them so. Without the thread's program they would be gone again at once.
    await eventually(() => threadsOf(sharing.pid).includes('Worker'), 'a worker thread')
  } finally {
    sharing.kill('SIGINT')
    await sharing.exited
    await app.stop(true)
  }
})

function threadsOf(pid: number): readonly string[] {
  return readdirSync(`/proc/${pid}/task`).map(one =>
    readFileSync(`/proc/${pid}/task/${one}/comm`, 'utf8').trim(),
  )
}

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
