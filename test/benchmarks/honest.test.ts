// Over 5 s in all on a busy machine: each test starts a whole benchmark suite with its processes.
// A benchmark that cannot fail says nothing: ours is broken in every way here, and the suite must end with 1.

import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { testWith } from '../support/needs.ts'

const BENCHMARKS = join(import.meta.dir, '../../benchmarks')
const CLIENT = join(import.meta.dir, 'broken-client.ts')

interface Run {
  readonly code: number
  readonly printed: string
}

async function suite(file: string, flags: string, env: Readonly<Record<string, string>> = {}): Promise<Run> {
  const child = Bun.spawn(['bun', join(BENCHMARKS, file), ...flags.split(' ')], {
    env: { ...process.env, BENCH_START_MS: '5000', ...env },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  return { code, printed: out + err }
}

const T50 = '--quick --only t50 --peers direct,ours'

testWith(['cc'], 'a suite whose tunnels work ends with 0', async () => {
  const { code, printed } = await suite('speed.ts', T50)
  expect(printed).not.toContain('error:')
  expect(code).toBe(0)
})

for (const [way, why] of [
  ['exits', 'ended with 3'],
  ['never connects', 'was not ready in time'],
  ['answers 502', 'wrong status (502)'],
  ['wrong bytes', 'wrong bytes in the answer'],
  ['cuts answers', 'answer'],
  ['dies under load', 'answers failed'],
] as const) {
  testWith(['cc'], `a suite ends with 1 when our client is broken: ${way}`, async () => {
    const env = {
      BENCH_CLIENT: CLIENT,
      BROKEN: way,
      ...(/never|cuts/.test(way) && { BENCH_START_MS: '1500' }),
    }
    const { code, printed } = await suite('speed.ts', T50, env)
    expect(printed).toMatch(/error: ours: .*/)
    expect(printed).toContain(why)
    expect(code).toBe(1)
  })
}

testWith(['cc'], 'a suite ends with 1 when our server does not start', async () => {
  const { code } = await suite('speed.ts', T50, { BENCH_SERVER: CLIENT, BROKEN: 'exits' })
  expect(code).toBe(1)
})

for (const [file, flags] of [
  ['raw.ts', '--only trips --peers ours'],
  ['memory.ts', '--only start --peers ours'],
  ['ours-only.ts', '--only processes'],
  ['features.ts', '--only features --peers ours'],
  ['fidelity.ts', '--only path --peers ours'],
  ['faults.ts', '--only cut --peers ours'],
] as const) {
  testWith(['cc'], `${file} ends with 1 when our client exits at once`, async () => {
    const { code, printed } = await suite(file, `--quick ${flags}`, { BENCH_CLIENT: CLIENT, BROKEN: 'exits' })
    expect(printed).toContain('ended with 3')
    expect(code).toBe(1)
  })
}

testWith(
  ['cc'],
  'the scorecard passes what ours passes, and notices a tunnel that answers wrongly',
  async () => {
    const flags = '--quick --only path,truncated,text --peers ours'
    expect(await suite('fidelity.ts', flags)).toMatchObject({ code: 0 })
    const { code, printed } = await suite('fidelity.ts', flags, {
      BENCH_CLIENT: CLIENT,
      BROKEN: 'wrong bytes',
    })
    expect(printed).toContain('error: ours: ours: path (RFC 9110 7.7)')
    expect(code).toBe(1)
  },
  // Two runs of a suite.
  60_000,
)

testWith(['cc'], 'a peer that is not installed is left out and said, and is no failure', async () => {
  const env = {
    LT_PEERS: process.env.LT_PEERS ?? join(BENCHMARKS, '../.cache/peers'),
    PATH: process.env.PATH!,
  }
  const { code, printed } = await suite('speed.ts', '--quick --only t50 --peers ours,localtunnels-0.2', env)
  expect(printed).toContain('localtunnels-0.2 is left out')
  expect(code).toBe(0)
})

testWith(['cc'], 'Ctrl+C keeps what was measured', async () => {
  const file = `${import.meta.dir}/.interrupted-${process.pid}.json`
  const flags = `--rounds 1000 --seconds 0.1 --only t50 --peers direct --json ${file}`
  const child = Bun.spawn(['bun', join(BENCHMARKS, 'speed.ts'), ...flags.split(' ')], {
    stdout: 'ignore',
    stderr: 'pipe',
  })
  try {
    let said = ''
    for await (const piece of child.stderr) {
      said += Buffer.from(piece).toString()
      if (said.includes('round 3 of')) {
        child.kill('SIGINT')
        break
      }
    }
    expect(await child.exited).toBe(130)
    const { suites } = (await Bun.file(file).json()) as {
      suites: readonly { tables: readonly { rows: readonly unknown[] }[] }[]
    }
    expect(suites[0]!.tables[0]!.rows).toHaveLength(1)
  } finally {
    await Bun.file(file)
      .delete()
      .catch(() => {})
  }
})

test('programs that are no suite refuse their flags in one line, too, and have --help', async () => {
  for (const [program, flags, why] of [
    ['soak.ts', '--hostile --bogus', '--bogus'],
    ['soak.ts', '--hours much', '--hours must be a number'],
    ['fuzz.ts', '--inputs many', '--inputs must be a number'],
  ] as const) {
    const { code, printed } = await suite(program, flags)
    expect(printed).toMatch(/^error: [^\n]*\n?$/)
    expect(printed).toContain(why)
    expect(code).toBe(2)
  }
  expect((await suite('fuzz.ts', '--help')).printed).toContain('--inputs N')
})

for (const [flags, why] of [
  ['--bogus', '--bogus'],
  ['--rounds abc', '--rounds must be a whole number'],
  ['--rounds 0', '--rounds must be a whole number from 1 to 1000'],
  ['--compare /nope', 'there is no file /nope'],
  [`--compare ${join(BENCHMARKS, '../package.json')}`, 'is not a run that this version'],
  ['t50', 'a suite takes no words'],
  ['--only nothing', 'there is no table nothing'],
  ['--peers nobody', 'no tunnel is called nobody'],
] as const) {
  testWith(['cc'], `${flags} is refused in one line`, async () => {
    const { code, printed } = await suite('speed.ts', flags)
    expect(printed.split('\n')[0]).toContain(`error: `)
    expect(printed).toContain(why)
    expect(printed).not.toContain('    at ')
    expect(code).toBe(2)
  })
}

test('a suite of small functions refuses a table that it does not have', async () => {
  const { code, printed } = await suite('utils.ts', '--quick --only nothing')
  expect(printed.split('\n')[0]).toContain('error: there is no table nothing')
  expect(code).toBe(2)
})
