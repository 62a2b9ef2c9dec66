// The command that runs the tests: whatever keeps a file from running to its end is a failure.

import { expect, test } from 'bun:test'
import { mkdir, writeFile } from 'node:fs/promises'
import { folder } from '../support/programs.ts'

const PASSES = "import { test } from 'bun:test'\ntest('passes', () => {})\n"

/** What `bun tools/tests.ts` says of a project with one good file and another. */
async function run(other: string, env: Readonly<Record<string, string>> = {}): Promise<[number, string]> {
  await using dir = await folder('tracks')
  await mkdir(`${dir.path}/test`)
  await writeFile(`${dir.path}/test/good.test.ts`, PASSES)
  await writeFile(`${dir.path}/test/other.test.ts`, other)
  const tests = Bun.spawn([process.execPath, `${import.meta.dir}/../../tools/tests.ts`], {
    cwd: dir.path,
    env: { PATH: process.env.PATH, HOME: dir.path, ...env },
    stdout: 'ignore',
    stderr: 'pipe',
  })
  const text = await tests.stderr.text()
  return [await tests.exited, text]
}

test('all files ran and passed: the command succeeds', async () => {
  const [status, text] = await run(PASSES)
  expect(text).toContain('Ran 2 tests across 2 files')
  expect(status).toBe(0)
})

const FAULTS: [what: string, file: string, fault: string][] = [
  [
    'whose process is killed',
    'process.kill(process.pid, "SIGKILL"); await Bun.sleep(5000)',
    '✗ test/other.test.ts',
  ],
  ['that ends its process without an error', 'process.exit(0)', '✗ test/other.test.ts'],
  ['that fails', 'throw new Error("wrong")', '(fail) is other'],
  [
    'that throws behind its tests',
    'setTimeout(() => { throw new Error("late") }); await Bun.sleep(50)',
    'late',
  ],
]
test.each(FAULTS)('a test %s fails the command', async (_what, code, fault) => {
  const [status, text] = await run(
    `import { test } from 'bun:test'\ntest('is other', async () => { ${code} })\n`,
  )
  expect(text).toContain(fault)
  expect(status).not.toBe(0)
})

test.each([
  'setTimeout(() => { throw new Error("too late") }, 5)',
  'void (async () => { await Bun.sleep(5); throw new Error("too late") })()',
])('an error behind the last test of a file fails the command: %s', async code => {
  const [status, text] = await run(`import { test } from 'bun:test'\ntest('passes', () => { ${code} })\n`)
  expect(text).toContain('too late')
  expect(status).not.toBe(0)
})

test('a file without a test fails the command', async () => {
  const [status, text] = await run("import 'bun:test'\n")
  expect(text).toContain('error: test/other.test.ts has no test')
  expect(status).toBe(1)
})

test('a file that cannot be loaded fails the command', async () => {
  const [status, text] = await run('throw new Error("cannot be loaded")')
  expect(text).toContain('cannot be loaded')
  expect(status).not.toBe(0)
})

test('a skipped test fails the command in CI, and only there', async () => {
  const skips = "import { test } from 'bun:test'\ntest.skip('is skipped', () => {})\n"
  expect((await run(skips))[0]).toBe(0)
  const [status, text] = await run(skips, { CI: 'true' })
  expect(text).toContain('error: (skip) is skipped')
  expect(status).not.toBe(0)
})
