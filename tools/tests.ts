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

const isLong = process.argv.includes('--long')
const files = [...new Bun.Glob('test/**/*.test.ts').scanSync()]
  .filter(file => LONG.some(start => file.startsWith(start)) === isLong)
  .sort()
const command = ['bun', 'test', '--parallel', '--timeout', '20000', ...files]
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

/** A worker that ends in the middle of a file, or a file that another one hides, must not look as if all was well. */
const ran = Number(/^Ran \d+ tests? across (\d+) files?/m.exec(output)?.[1] ?? 0)
const faults = [
  ...(ran === files.length ? [] : [`${ran} of ${files.length} files ran`]),
  ...(process.env.CI === undefined ? [] : (output.match(/^\(skip\) .*/gm) ?? [])),
]
for (const fault of faults) console.error(`error: ${fault}`)
process.exit(status === 0 && faults.length > 0 ? 1 : status)
