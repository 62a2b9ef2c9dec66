// Runs the tests of a track, and fails unless every file of it ran to its end: `bun tools/tests.ts` runs those of the protocol, the
// server, the client and the command line; `bun tools/tests.ts --long` runs all others. In CI a skipped test is a failure.

/** Tests that take long: browsers, frameworks, other programs, floods, clusters, the package. Each entry begins a path. */
const LONG = [
  'accelerator/',
  'benchmarks/',
  'certificates/acme/dns/name-server',
  'certificates/acme/killed',
  'cli/inbox',
  'cli/login',
  'cli/up',
  'cli/workers',
  'cluster/',
  'examples',
  'fidelity/stalled-readers',
  'integrations/',
  'package',
  'plugins/shared-rate',
  'readme',
  'server/draining',
  'server/hostile-control',
  'server/turns',
  'server/visitors',
  'simulation/',
  'site',
  'tunnels/guards-browser',
  'tunnels/http2-third-parties',
  'tunnels/http3',
  'tunnels/shaping',
  'tunnels/tcp-third-parties',
  'ui/',
].map(start => `test/${start}`)

/** These keep both cores busy by themselves, and browsers wait for them: one file after the other. */
const ALONE = ['integrations/', 'site', 'ui/'].map(start => `test/${start}`)

const isIn = (starts: readonly string[], file: string): boolean =>
  starts.some(start => file.startsWith(start))
const isLong = process.argv.includes('--long')
const files = [...new Bun.Glob('test/**/*.test.ts').scanSync()]
  .filter(file => isIn(LONG, file) === isLong)
  .sort()

/** Runs files, and says what keeps them from being good; empty: nothing does. */
async function run(files: readonly string[], options: readonly string[]): Promise<readonly string[]> {
  if (files.length === 0) return []
  const preloads = ['late-errors', 'lent-arrays'].flatMap(name => [
    '--preload',
    `${import.meta.dir}/../test/support/${name}.ts`,
  ])
  const command = ['bun', 'test', ...options, ...preloads, '--timeout', '60000', ...files]
  const tests = Bun.spawn(command, {
    stdout: 'inherit',
    stderr: 'pipe',
    env: { ...process.env, NO_COLOR: '1' },
  })
  let output = ''
  const decoder = new TextDecoder()
  for await (const bytes of tests.stderr) {
    process.stderr.write(bytes)
    output += decoder.decode(bytes, { stream: true })
  }
  const status = await tests.exited
  // A worker that ends in the middle of a file must not look as if all was well.
  const ran = Number(/^Ran \d+ tests? across (\d+) files?/m.exec(output)?.[1] ?? 0)
  return [
    ...(status === 0 ? [] : [`the tests ended with ${status}`]),
    // Once more at the end, where a reader of a long log looks first, with what was printed before.
    ...(output.match(/(?:^(?!\((?:pass|fail)\)).*\n){0,25}^\(fail\) .*/gm) ?? []),
    ...(ran === files.length ? [] : [`${ran} of ${files.length} files ran`]),
    ...files.filter(file => !output.includes(`\n${file}:\n`)).map(file => `${file} has no test`),
    ...(process.env.CI === undefined ? [] : (output.match(/^\((?:skip|todo)\) .*/gm) ?? [])),
  ]
}

const faults = [
  ...(await run(
    files.filter(file => !isIn(ALONE, file)),
    ['--parallel'],
  )),
  ...(await run(
    files.filter(file => isIn(ALONE, file)),
    ['--parallel=1'],
  )),
]
for (const fault of faults) console.error(`error: ${fault}`)
process.exit(faults.length > 0 ? 1 : 0)
