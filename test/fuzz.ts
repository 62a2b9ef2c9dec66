// Random inputs for every parser, as many as wanted, counted: `bun test/fuzz.ts --inputs 10_000_000`.
//
//   --inputs N    for all parsers together (default 100,000): each gets its share
//   --only NAME   one parser
//
// Runs the fuzz tests of test/, one after the other at the lowest priority, so every input is judged by the reference of
// its test: node:http, ws, a plain reading. A failure prints its seed. Exits with 1 when there was one.

import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { finish, interrupted } from '../benchmarks/measure/children.ts'
import { readFlags } from '../benchmarks/measure/flags.ts'
import { table } from '../benchmarks/measure/table.ts'
import { scratch } from '../benchmarks/peers/binary.ts'

interface Parser {
  readonly name: string
  readonly file: string
  readonly test: string
  readonly judgedBy: string
  readonly weight: number
}

/** Name, file, a part of the name of the test in it, who judges, and the share of the inputs: slow ones get fewer. */
const PARSERS: readonly Parser[] = `
request heads and bodies | test/http/fuzz.test.ts | random connections are read | node:http (llhttp) | 2
answers | test/http/answer-fuzz.test.ts | random answers are read | the client of node:http (llhttp) | 1
chunked bodies | test/http/body.test.ts | chunked bodies end where | a plain reading, any slices | 4
frames | test/wire/decoder.test.ts | says the same of mutated frames | itself, any slices | 2
JSON messages | test/wire/json.test.ts | whatever a stranger sends | what it yields is checked | 2
control messages | test/wire/control.test.ts | mutated messages never throw | nothing is thrown | 4
client hellos | test/wire/client-hello.test.ts | judges mutated hellos | a plain reading, any slices | 2
PROXY headers | test/wire/proxy-protocol.test.ts | reads mutated headers | a plain reading, any slices | 2
WebSocket conversations | test/wire/websocket-fuzz.test.ts | ws and we agree | the ws package | 1
field blocks | test/http2/hpack.test.ts | mutated blocks get | a plain reading | 1
HTTP/2 frames | test/http2/frame.test.ts | random and mutated frames | itself, any slices | 2
HTTP/2 connections | test/http2/server-connection.test.ts | random frames never throw | itself, any slices | 2
HTTP/2 requests | test/http2/requests.test.ts | random requests become | a plain reading of RFC 9113 | 1
configuration files | test/config/fuzz.test.ts | nothing throws, every fault | places of faults and keys; a reference parser of TOML | 0.5`
  .trim()
  .split('\n')
  .map(line => {
    const [name, file, test, judgedBy, weight] = line.split(' | ') as [string, string, string, string, string]
    return { name, file, test, judgedBy, weight: Number(weight) }
  })

const options = readFlags(
  import.meta.path,
  {
    inputs: { type: 'string', default: '100000' },
    only: { type: 'string' },
  },
  ['inputs'],
)
const wanted = Number(options.inputs)
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
