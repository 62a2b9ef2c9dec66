// Random inputs for every parser, as many as wanted, counted: `bun benchmarks/fuzz.ts --inputs 10_000_000`.
//
//   --inputs N    for all parsers together (default 100,000): each gets its share
//   --only NAME   one parser
//
// Runs the fuzz tests of test/, one after the other at the lowest priority, so every input is judged by the reference of
// its test: node:http, ws, a plain reading. A failure prints its seed. Exits with 1 when there was one.

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { finish, interrupted } from './measure/children.ts'
import { table } from './measure/table.ts'
import { scratch } from './peers/binary.ts'

interface Parser {
  readonly name: string
  readonly file: string
  /** The test in it, by a part of its name. */
  readonly test: string
  readonly judgedBy: string
  /** Share of the inputs, against the others: those that are slow to judge get fewer. */
  readonly weight: number
}

const PARSERS: readonly Parser[] = [
  {
    name: 'request heads and bodies',
    file: 'test/http/fuzz.test.ts',
    test: 'random connections are read',
    judgedBy: 'node:http (llhttp)',
    weight: 2,
  },
  {
    name: 'answers',
    file: 'test/http/answer-fuzz.test.ts',
    test: 'random answers are read',
    judgedBy: 'the client of node:http (llhttp)',
    weight: 1,
  },
  {
    name: 'chunked bodies',
    file: 'test/http/body.test.ts',
    test: 'chunked bodies end where',
    judgedBy: 'a plain reading, any slices',
    weight: 4,
  },
  {
    name: 'frames',
    file: 'test/wire/decoder.test.ts',
    test: 'says the same of mutated frames',
    judgedBy: 'itself, any slices',
    weight: 2,
  },
  {
    name: 'JSON messages',
    file: 'test/wire/json.test.ts',
    test: 'whatever a stranger sends',
    judgedBy: 'what it yields is checked',
    weight: 2,
  },
  {
    name: 'control messages',
    file: 'test/wire/control.test.ts',
    test: 'mutated messages never throw',
    judgedBy: 'nothing is thrown',
    weight: 4,
  },
  {
    name: 'client hellos',
    file: 'test/wire/client-hello.test.ts',
    test: 'judges mutated hellos',
    judgedBy: 'a plain reading, any slices',
    weight: 2,
  },
  {
    name: 'PROXY headers',
    file: 'test/wire/proxy-protocol.test.ts',
    test: 'reads mutated headers',
    judgedBy: 'a plain reading, any slices',
    weight: 2,
  },
  {
    name: 'WebSocket conversations',
    file: 'test/wire/websocket-fuzz.test.ts',
    test: 'ws and we agree',
    judgedBy: 'the ws package',
    weight: 1,
  },
  {
    name: 'field blocks',
    file: 'test/http2/hpack.test.ts',
    test: 'mutated blocks get',
    judgedBy: 'a plain reading',
    weight: 1,
  },
  {
    name: 'HTTP/2 frames',
    file: 'test/http2/frame.test.ts',
    test: 'random and mutated frames',
    judgedBy: 'itself, any slices',
    weight: 2,
  },
  {
    name: 'HTTP/2 requests',
    file: 'test/http2/requests.test.ts',
    test: 'random requests become',
    judgedBy: 'a plain reading of RFC 9113',
    weight: 1,
  },
  {
    name: 'configuration files',
    file: 'test/config/fuzz.test.ts',
    test: 'nothing throws, every fault',
    judgedBy: 'places of faults and keys; a reference parser of TOML',
    weight: 0.5,
  },
]

const { values: options } = parseArgs({
  options: { inputs: { type: 'string', default: '100000' }, only: { type: 'string' } },
})
const wanted = Number(options.inputs.replaceAll(/[_,]/g, ''))
const chosen = PARSERS.filter(({ name }) => options.only === undefined || name.includes(options.only))
if (chosen.length === 0 || !(wanted >= 1)) {
  console.error(
    `--inputs is a number, --only a part of one of these: ${PARSERS.map(({ name }) => name).join(', ')}`,
  )
  process.exit(2)
}
const root = join(import.meta.dir, '..')
const folder = scratch('fuzz')
const weights = chosen.reduce((sum, { weight }) => sum + weight, 0)

/** Runs the test with so many times its usual inputs, and says how many these were. */
async function run(
  { name, file, test }: Parser,
  times: number,
): Promise<{ inputs: number; failure: string }> {
  const counts = folder.path('counts')
  writeFileSync(counts, '')
  const { code, stdout, stderr } = await finish(
    ['nice', '-n', '19', 'bun', 'test', '--timeout', '36000000', join(root, file), '-t', test],
    { env: { LT_FUZZ: `${times}`, LT_FUZZ_COUNTS: counts } },
  )
  const inputs = [...readFileSync(counts, 'utf8').matchAll(/^(\d+) (.*)$/gm)]
    .filter(([, , parser]) => parser === name)
    .reduce((sum, [, count]) => sum + Number(count), 0)
  const failure = code === 0 ? '' : `${stdout}\n${stderr}`.trim().split('\n').slice(-40).join('\n')
  return { inputs, failure: inputs === 0 && failure === '' ? 'no inputs were counted' : failure }
}

const rows: string[][] = []
const failures: string[] = []
let total = 0
for (const parser of chosen) {
  if (interrupted.aborted) break
  const began = performance.now()
  // How many inputs the test has by itself is its own business.
  const usual = await run(parser, 1)
  const share = (wanted * parser.weight) / weights
  const times = Math.ceil((share - usual.inputs) / Math.max(1, usual.inputs))
  const more = usual.failure !== '' || times <= 1 ? usual : await run(parser, times + 1)
  const seconds = Math.round((performance.now() - began) / 1_000)
  if (more.failure !== '') failures.push(`${parser.name}:\n${more.failure}`)
  else total += more.inputs
  const verdict = more.failure === '' ? 'passed' : '**failed**'
  rows.push([parser.name, more.inputs.toLocaleString('en-US'), parser.judgedBy, `${seconds}`, verdict])
  console.error(`${parser.name}: ${more.inputs.toLocaleString('en-US')} in ${seconds} s, ${verdict}`)
}
folder.remove()
console.log(`\n${table(['parser', 'inputs', 'judged by', 'seconds', 'verdict'], rows)}\n`)
console.log(`${total.toLocaleString('en-US')} inputs passed`)
for (const failure of failures) console.error(failure)
process.exit(failures.length === 0 && !interrupted.aborted ? 0 : 1)
