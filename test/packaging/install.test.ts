// install.sh, run: the executable for this machine, only with the right checksum.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { lstatSync, readlinkSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

const SCRIPT = resolve(import.meta.dir, '../../packaging/install.sh')
const PLATFORM = `${process.platform === 'darwin' ? 'macos' : process.platform}-${process.arch}`
/** In place of the executable, which takes seconds to build: what the script does with it is the same. */
const PROGRAM = '#!/bin/sh\necho 9.9.9\n'
let folder = ''

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'localtunnels-install-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

/** A folder as tools/binaries.ts makes it. */
async function release(name: string, sumOf: string): Promise<string> {
  const place = join(folder, name)
  const sum = new Bun.CryptoHasher('sha256').update(sumOf).digest('hex')
  await mkdir(place)
  await writeFile(join(place, `localtunnels-${PLATFORM}`), PROGRAM)
  await writeFile(join(place, 'SHA256SUMS'), `${sum}  localtunnels-${PLATFORM}\n`)
  return place
}

async function install(...args: readonly string[]) {
  const child = Bun.spawn({
    cmd: ['sh', SCRIPT, ...args],
    env: { PATH: process.env.PATH, HOME: folder },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text()])
  return { exitCode: await child.exited, stdout, stderr }
}

test('the right checksum: it is installed, and again over itself', async () => {
  const from = await release('right', PROGRAM)
  const to = join(folder, 'bin')
  for (let round = 0; round < 2; round++) {
    const { exitCode, stdout, stderr } = await install('--from', from, '--to', to)
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: '' })
    expect(stdout).toBe(
      `Installed 9.9.9 as ${to}/localtunnels.\n${to} is not on PATH: add it, or give --to a folder that is.\n`,
    )
  }
  expect(readlinkSync(join(to, 'lt'))).toBe('localtunnels')
  expect(lstatSync(join(to, 'localtunnels')).mode & 0o777).toBe(0o755)
})

test('another checksum: nothing is installed', async () => {
  const from = await release('wrong', 'something else')
  const to = join(folder, 'wrong-bin')
  const { exitCode, stderr } = await install('--from', from, '--to', to)
  expect(exitCode).toBe(1)
  expect(stderr).toContain('is not the one in SHA256SUMS: nothing was installed.')
  expect(await Bun.file(join(to, 'localtunnels')).exists()).toBe(false)
})

test.each([
  [[], 'Say where the files are'],
  [['--from', '/nowhere'], 'There is no SHA256SUMS at /nowhere.'],
  [['--from', 'http://127.0.0.1:1/'], 'Files come by https or from a folder.'],
  [['--form', '/x'], 'Unknown option --form.'],
])('%p is refused', async (args, says) => {
  const { exitCode, stderr } = await install(...args)
  expect(exitCode).toBe(1)
  expect(stderr).toContain(says)
})
