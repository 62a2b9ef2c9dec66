// Over 5 s in all on a busy machine: each test starts a whole benchmark suite with its processes.
// A benchmark that cannot fail says nothing: ours is broken in every way here, and the suite must end with 1.

import { expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readRun } from '../../benchmarks/measure/result.ts'
import { testWith } from '../support/needs.ts'

const FOLDER = join(import.meta.dir, '../../benchmarks/suites')
const TUNNEL = join(import.meta.dir, 'broken-tunnel.ts')

interface Run {
  readonly code: number
  readonly printed: string
}

async function suite(file: string, flags: string, env: Readonly<Record<string, string>> = {}): Promise<Run> {
  const child = Bun.spawn(['bun', join(FOLDER, file), ...flags.split(' ')], {
    env: { ...process.env, BENCH_START_MS: '5000', ...env },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  return { code, printed: out + err }
}

const T50 = '--quick --only t50 --peers direct,ours'

testWith(
  ['cc'],
  'a suite whose tunnels work ends with 0',
  async () => {
    const { code, printed } = await suite('speed.ts', T50)
    expect(printed).not.toContain('error:')
    expect(code).toBe(0)
  },
  60_000,
)

/** What the run says when ours is broken in this way. */
const WAYS = {
  exits: /ended with 3/,
  missing: /was not ready in time|ready/,
  'wrong bytes down': /wrong|changed|Answer|bytes/i,
  'wrong bytes up': /wrong|bytes|status|longer/i,
  '502': /502|wrong|bytes|reached/,
  stalls: /in time|timed out|no answer|failed/i,
} as const
type Way = keyof typeof WAYS
const EVERY = Object.keys(WAYS) as Way[]
const DOWN = EVERY.filter(way => way !== 'wrong bytes up')

/** Each suite with a row of it in which ours is asked often enough to be broken once. */
const SUITES: readonly (readonly [file: string, flags: string, ways: readonly Way[]])[] = [
  ['speed.ts', '--only t50 --peers direct,ours', DOWN],
  ['speed.ts', '--only post --peers ours', ['wrong bytes up']],
  ['memory.ts', '--only load --peers ours', DOWN],
  // Bytes without HTTP: a 502 is bytes like others.
  ['raw.ts', '--only trips --peers ours', EVERY],
  ['features.ts', '--only features --peers ours', DOWN],
  ['frameworks.ts', '--only polka --peers ours', DOWN],
  ['speed.ts', '--only echo1k --peers ours', ['wrong bytes up']],
  ['generators.ts', '--only wrk --peers ours', DOWN],
  ['comparison.ts', '--only concurrent10 --peers ours', DOWN],
  ['scaling.ts', '--only small --peers one', DOWN],
  ['wan.ts', '--only wan-small --peers ours', DOWN],
  ['faults.ts', '--only cut --peers ours', DOWN],
  ['fidelity.ts', '--only path,truncated --peers ours', DOWN],
]

// Network namespaces and a tun device: where there are none, the suite itself refuses.
const canBuildRoads = process.getuid?.() === 0 && existsSync('/dev/net/tun')
const TOGETHER = 2

for (const [file, flags, ways] of SUITES) {
  if (file === 'wan.ts' && !canBuildRoads) continue
  testWith(
    ['cc'],
    `${file} ${flags.split(' ')[1]} ends with 1 when ours is broken: ${ways.join(', ')}`,
    async () => {
      const left = [...ways]
      const next = async (): Promise<void> => {
        for (let way = left.shift(); way !== undefined; way = left.shift()) {
          const { code, printed } = await suite(file, `--quick ${flags}`, {
            BENCH_TUNNEL: TUNNEL,
            BROKEN: way,
            BENCH_START_MS: way === 'missing' ? '1500' : '8000',
            // They ask a few times only.
            ...(file === 'fidelity.ts' && { BROKEN_EVERY: '2' }),
            ...(/wan|echo/.test(file + flags) && { BROKEN_EVERY: '20' }),
          })
          const [said = printed] = /error: ours: .*/.exec(printed) ?? []
          expect(`${way}: ${said}`).toMatch(/: error: ours: /)
          // What a check says depends on the check.
          if (file !== 'fidelity.ts') expect(said).toMatch(WAYS[way])
          expect(`${way} ${code}`).toBe(`${way} 1`)
        }
      }
      await Promise.all(Array.from({ length: TOGETHER }, next))
    },
    120_000,
  )
}

const IN_ONE_PROCESS = DOWN.filter(way => way !== 'missing' && way !== 'stalls')
for (const [file, ways] of [
  ['throughput.ts', IN_ONE_PROCESS],
  ['latency.ts', IN_ONE_PROCESS],
  ['scalability.ts', IN_ONE_PROCESS],
  // It connects, and asks nothing.
  ['connection.ts', ['exits']],
] as const) {
  testWith(
    [],
    `${file} does not end with 0 when ours is broken`,
    async () => {
      const runs = ways.map(way =>
        suite(file, '--quick', { BENCH_TUNNEL: TUNNEL, BROKEN: way, BROKEN_EVERY: '20' }),
      )
      expect((await Promise.all(runs)).filter(({ code }) => code === 0)).toEqual([])
    },
    60_000,
  )
}

testWith(['cc'], 'a suite ends with 1 when our server does not start', async () => {
  const { code } = await suite('speed.ts', T50, { BENCH_TUNNEL: TUNNEL, BROKEN: 'server exits' })
  expect(code).toBe(1)
})

for (const [file, flags] of [
  ['speed.ts', '--only t1 --peers direct,ours'],
  ['raw.ts', '--only trips --peers direct,ours'],
  ['comparison.ts', '--only forward --peers direct,ours'],
  ['speed.ts', '--only echo1k --peers direct,ours'],
  ['latency.ts', '--rounds 1'],
  ['throughput.ts', '--rounds 1'],
  ['scalability.ts', '--rounds 1'],
  ['generators.ts', '--only wrk --peers direct,ours'],
  // No row of these is without ours: on the same machine the figures themselves are compared.
  ['features.ts', '--only inspected1 --peers ours'],
  ['scaling.ts', '--only single --peers one'],
] as const) {
  testWith(
    ['cc'],
    `--gate fails when ours takes 20 ms more: ${file}`,
    async () => {
      const saved = join(tmpdir(), `gate-${process.pid}-${file}-${flags.split(' ')[1]}.json`)
      try {
        expect(await suite(file, `--quick ${flags} --json ${saved}`)).toMatchObject({ code: 0 })
        const slow = { BENCH_TUNNEL: TUNNEL, BROKEN: 'slow' }
        const { code, printed } = await suite(file, `--quick ${flags} --gate ${saved}`, slow)
        expect(printed).toContain('error: ours: slower: ')
        expect(code).toBe(1)
      } finally {
        await Bun.file(saved)
          .delete()
          .catch(() => {})
      }
    },
    60_000,
  )
}

testWith(
  ['cc'],
  'the scorecard passes what ours passes, and notices a tunnel that answers wrongly',
  async () => {
    const flags = '--quick --only path,truncated,text --peers ours'
    expect(await suite('fidelity.ts', flags)).toMatchObject({ code: 0 })
    const { code, printed } = await suite('fidelity.ts', flags, {
      BENCH_TUNNEL: TUNNEL,
      BROKEN: 'wrong bytes down',
      BROKEN_EVERY: '2',
    })
    expect(printed).toContain('error: ours: ours: ')
    expect(code).toBe(1)
  },
  // Two runs of a suite.
  60_000,
)

testWith(['cc'], 'a peer that is not installed is left out and said, and is no failure', async () => {
  const empty = await mkdtemp(join(tmpdir(), 'no-peers-'))
  try {
    const { code, printed } = await suite('speed.ts', '--quick --only t50 --peers ours,piko', {
      LT_PEERS: empty,
    })
    expect(printed).toContain('piko is left out: piko is not installed')
    expect(code).toBe(0)
  } finally {
    await rm(empty, { recursive: true })
  }
})

testWith(['cc'], 'Ctrl+C keeps what was measured', async () => {
  const file = join(tmpdir(), `interrupted-${process.pid}.json`)
  const flags = `--rounds 1000 --seconds 0.1 --only t50 --peers direct --json ${file}`
  const child = Bun.spawn(['bun', join(FOLDER, 'speed.ts'), ...flags.split(' ')], {
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

test.skipIf(!canBuildRoads)('all programs of a run have reno, and the result says so', async () => {
  const saved = join(tmpdir(), `network-${process.pid}.json`)
  try {
    expect(await suite('../index.ts', `utils --quick --json ${saved}`)).toMatchObject({ code: 0 })
    const { suites } = await readRun(saved)
    expect(suites.map(({ environment }) => environment.congestion)).toEqual(['reno'])
  } finally {
    await Bun.file(saved)
      .delete()
      .catch(() => {})
  }
})

testWith(['node'], 'Node by mistake is told so in one line', async () => {
  const child = Bun.spawn(['node', join(FOLDER, '../index.ts')], { stdout: 'pipe', stderr: 'pipe' })
  const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  expect(out + err).toBe('error: the benchmarks run on Bun: bun benchmarks/index.ts\n')
  expect(code).toBe(2)
})

test('programs that are no suite refuse their flags in one line, too, and have --help', async () => {
  for (const [program, flags, why] of [
    ['../../test/hostile/run.ts', '--bogus', '--bogus'],
    ['../../test/soak/run.ts', '--hours much', '--hours must be a number'],
    ['../../test/fuzz.ts', '--inputs many', '--inputs must be a number'],
  ] as const) {
    const { code, printed } = await suite(program, flags)
    expect(printed).toMatch(/^error: [^\n]*\n?$/)
    expect(printed).toContain(why)
    expect(code).toBe(2)
  }
  expect((await suite('../../test/fuzz.ts', '--help')).printed).toContain('--inputs N')
})

for (const [flags, why] of [
  ['--bogus', '--bogus'],
  ['--rounds abc', '--rounds must be a whole number'],
  ['--rounds 0', '--rounds must be a whole number from 1 to 1000'],
  ['--gate /nope', 'there is no file /nope'],
  [`--gate ${join(FOLDER, '../../package.json')}`, 'is not a run that this version'],
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
