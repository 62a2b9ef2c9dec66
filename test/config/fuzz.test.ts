// No text makes reading or checking throw, and trees are what reference parsers read. LT_FUZZ=N runs N times as many.

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { getStaticTOMLValue, parseTOML } from 'toml-eslint-parser'
import { Check } from '../../src/config/check.ts'
import { checkClient } from '../../src/config/client-config.ts'
import { readText } from '../../src/config/load.ts'
import type { Node } from '../../src/config/node.ts'
import { formatDuration, formatSize, parseDuration, parseSize } from '../../src/config/quantity.ts'
import { checkServer } from '../../src/config/server-config.ts'
import { placesOf } from '../../src/config/syntaxes/typescript.ts'
import { expand } from '../../src/config/variables.ts'
import { distance, nearest } from '../../src/option-names.ts'
import { ConfigFiles } from '../support/config-files.ts'
import { countInputs, FUZZ, Random } from '../support/random.ts'

let files: ConfigFiles
beforeAll(async () => {
  files = await ConfigFiles.make()
})
afterAll(() => files[Symbol.asyncDispose]())

const SEEDS: Readonly<Record<'.toml' | '.yaml' | '.json', readonly string[]>> = {
  '.toml': [
    'server = "a"\n[services.web]\nport = 3000\nroutes = { "/api" = 8080 }\n[services.db]\nkind = "tcp"\nport = 1\n',
    'a.b.c = 1\na.b.d = [1, { x = 2, y.z = 3 }]\n[[t]]\nn = 1\n[t.sub]\nm = 2\n[[t]]\n[[t.sub]]\n"k k" = \'v\'\n[z."q.r"]\n',
    'domains = ["x.example"]\n[limits]\nmax-head = "64KiB"\n[[tokens]]\ntoken = "t"\nnames = ["a-*"]\n',
  ],
  '.yaml': [
    'server: a\nservices:\n  web: {port: 3000, routes: {/api: 8080}}\n  db:\n    kind: tcp\n    port: 1\n',
    'a: &x\n  - 1\n  - {b: "c"}\nd: *x\n? e\n: f\ng: |\n  text\n  more\nh: !!str 5\n',
  ],
  '.json': [
    '{"server":"a","services":{"web":{"port":3000,"routes":{"/api":8080}},"db":{"kind":"tcp","port":1}}}',
    '{"a":[1,{"b":null,"c":[true,false]},"\\u0041"],"d":-1.5e3,"":{}} // end',
  ],
}
const PIECES = [
  '[',
  ']',
  '{',
  '}',
  '"',
  "'",
  '\n',
  ' ',
  '=',
  ':',
  '.',
  ',',
  '#',
  '&a',
  '*a',
  '- ',
  '${',
  '}',
  '$',
  '\\',
  '1e9',
  '-',
  '__proto__',
  'constructor',
  'port',
  'services',
  '🦦',
  '\u202e',
  '\t',
  '\r',
  'null',
  '[[',
  ']]',
  '<<',
  '!!js',
  '%',
  '|',
  '>',
]

function mutate(text: string, random: Random): string {
  let mutated = text
  for (let count = 1 + random.below(4); count > 0; count--) {
    const at = random.below(mutated.length + 1)
    const until = at + random.below(random.chance(0.2) ? 20 : 3)
    const piece = random.chance(0.2)
      ? mutated.slice(random.below(mutated.length), random.below(mutated.length))
      : random.pick(PIECES)
    mutated = mutated.slice(0, at) + piece + mutated.slice(random.chance(0.5) ? at : until)
  }
  return mutated
}

/** The tree without places. */
function plain(node: Node): unknown {
  if (node.kind === 'value') return node.value
  if (node.kind === 'list') return node.items.map(plain)
  if (node.kind === 'other') return node.what
  // No prototype: `__proto__` is a key like others.
  const table: Record<string, unknown> = Object.create(null)
  for (const [key, entry] of node.entries) table[key] = plain(entry.node)
  return table
}

/** Every key of the tree stands where its place says; in YAML one may have several lines. */
function misplaced(node: Node, lines: readonly string[]): string[] {
  if (node.kind === 'list') return node.items.flatMap(item => misplaced(item, lines))
  if (node.kind !== 'table') return []
  return [...node.entries].flatMap(([key, { at, node: child }]) => {
    const there = lines[(at?.line ?? 0) - 1]?.slice((at?.column ?? 0) - 1) ?? ''
    const isThere = there.startsWith(key.split(/\s/)[0] ?? '') || /^["'?!&|>]/.test(there)
    return [...(isThere ? [] : [`${key} at ${JSON.stringify(at)}`]), ...misplaced(child, lines)]
  })
}

const normal = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value, (_, one: unknown) => (one instanceof Date ? 'a date' : one)) ?? 'null')

for (const [extension, seeds] of Object.entries(SEEDS)) {
  test(
    `${extension}: nothing throws, every fault has a place in the file, every key stands where it is said to`,
    async () => {
      const random = new Random(extension.length * 7 + 1)
      let sound = 0
      countInputs('configuration files', 1_500 * FUZZ)
      for (let round = 0; round < 1_500 * FUZZ; round++) {
        const text = round < seeds.length ? seeds[round]! : mutate(random.pick(seeds), random)
        // Object.entries forgets that the keys are extensions.
        const read = await readText(text, extension as '.toml' | '.yaml' | '.json')
        const lines = text.split('\n')
        const options = { folder: files.folder, environment: { A: 'b' } }
        const faults =
          'faults' in read
            ? read.faults
            : [checkClient, checkServer].flatMap(check => check(read.root, options).faults)
        for (const { at, message } of faults) {
          if (message === '' || message.includes('undefined')) throw new Error(`${message}\n${text}`)
          if (at === undefined) continue
          const line = lines[at.line - 1]
          if (line === undefined || at.column < 1 || at.column > line.length + 1) {
            throw new Error(`${JSON.stringify(at)} is not in the file: ${message}\n${JSON.stringify(text)}`)
          }
        }
        if ('faults' in read) continue
        sound++
        const wrong = text.includes('\r') ? [] : misplaced(read.root, lines)
        if (wrong.length > 0) throw new Error(`${wrong.join(', ')}\n${JSON.stringify(text)}`)
        if (extension === '.toml' && !text.includes('__proto__')) {
          const reference = getStaticTOMLValue(parseTOML(text, { tomlVersion: '1.0' }))
          expect(normal(plain(read.root))).toEqual(normal(reference))
        }
      }
      // Most mutations break the syntax; enough must be left to check.
      expect(sound).toBeGreaterThan(100)
    },
    30_000 * FUZZ,
  )
}

test('JSON and YAML are read as Bun reads them', async () => {
  const random = new Random(5)
  for (let round = 0; round < 500 * FUZZ; round++) {
    const value = { root: randomValue(random, 0) }
    const json = JSON.stringify(value, null, random.below(3))
    for (const extension of ['.json', '.yaml'] as const) {
      const read = await readText(json, extension)
      if ('faults' in read) throw new Error(JSON.stringify(read.faults) + json)
      expect(normal(plain(read.root))).toEqual(value)
    }
  }
})

test('in TypeScript every key of a literal is found', () => {
  const random = new Random(6)
  for (let round = 0; round < 500 * FUZZ; round++) {
    const value = { root: randomValue(random, 0) }
    const text = `// export it: {\nconst x = { no: 1 }\nexport default defineConfig(${script(value, random)}) // }`
    const places = placesOf(text)
    const lines = text.split('\n')
    const visit = (one: unknown, path: string) => {
      const steps: readonly (readonly [string, unknown])[] =
        typeof one === 'object' && one !== null ? Object.entries(one) : []
      for (const [key, child] of steps) {
        const at = places.get(`${path}/${key}`)
        const there = lines[(at?.line ?? 0) - 1]?.slice((at?.column ?? 0) - 1) ?? ''
        const begins = Array.isArray(one)
          ? /^\S/.test(there)
          : there.startsWith(key) || there.startsWith(`"${key}"`)
        if (!begins) throw new Error(`${path}/${key} is not at ${JSON.stringify(at)}\n${text}`)
        visit(child, `${path}/${key}`)
      }
    }
    visit(value, '')
  }
})

/** A value as a person might write it: keys with and without quotes, comments, calls, all kinds of text. */
function script(value: unknown, random: Random): string {
  const gap = () => random.pick(['', ' ', '\n', ' /* a: { */ ', ' // b: [\n'])
  if (Array.isArray(value)) return `[${value.map(item => gap() + script(item, random)).join(',')}${gap()}]`
  if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value).map(([key, child]) => {
      const isBare = /^[a-z]\w*$/.test(key) && random.chance(0.7)
      return `${gap()}${isBare ? key : JSON.stringify(key)}${gap()}:${gap()}${script(child, random)}${gap()}`
    })
    return `{${entries.join(',')}${random.chance(0.5) && entries.length > 0 ? ',' : ''}${gap()}}`
  }
  if (typeof value === 'string' && random.chance(0.5)) return `\`${value.replace(/[`\\]/g, '\\$&')}\``
  return random.chance(0.1) ? `(call({ x: [1, 2] }, ${JSON.stringify(value)}) ?? 1)` : JSON.stringify(value)
}

function randomValue(random: Random, depth: number): unknown {
  const text = () =>
    random.pick([
      '',
      'a',
      'b-c',
      'x: {',
      '"',
      '\\',
      '//',
      '/*',
      '🦦',
      'É',
      'null',
      '0x10',
      '~',
      'true',
      "it's",
      '[,]',
    ])
  if (depth < 4 && random.chance(0.6)) {
    const count = random.below(4)
    if (random.chance(0.3)) return Array.from({ length: count }, () => randomValue(random, depth + 1))
    return Object.fromEntries(
      Array.from({ length: count }, (_, index) => [
        `k${index}${random.pick(['', '-x', ' y', '.z'])}`,
        randomValue(random, depth + 1),
      ]),
    )
  }
  return random.pick<() => unknown>([
    text,
    () => random.below(100_000),
    () => random.chance(0.5),
    () => -1.5,
  ])()
}

test('variables: what expands without fault has no reference left, and values are not expanded again', () => {
  const random = new Random(7)
  const environment = { A: '1', B: '${A}', EMPTY: '' }
  for (let round = 0; round < 2_000 * FUZZ; round++) {
    const parts = Array.from({ length: random.below(6) }, () =>
      random.pick([
        '$',
        '$$',
        '${A}',
        '${B}',
        '${EMPTY}',
        '${EMPTY:-d}',
        '${NO:-x y}',
        '${NO}',
        '${',
        '}',
        'text',
        '${constructor}',
      ]),
    )
    const text = parts.join('')
    const result = expand(text, environment)
    if ('message' in result) expect(text).toContain('$')
    else if (!text.includes('$')) expect(result.text).toBe(text)
  }
  expect(expand('a${A}$$${B}${NO:-}${EMPTY:-d}', environment)).toEqual({ text: 'a1$${A}d' })
  expect(expand('${constructor}', environment)).toHaveProperty('message')
})

test('durations and sizes come back from how they are shown', () => {
  const random = new Random(8)
  for (let round = 0; round < 1_000; round++) {
    const amount = Math.floor(2 ** (random.below(3_000) / 100))
    expect(parseDuration(formatDuration(amount))).toBe(amount)
    expect(parseSize(formatSize(amount))).toBe(amount)
  }
  expect(
    ['30s', '1m30s', '1.5h', '250', '1d', '500ms', '-1', '1 s', 's', '1x', ''].map(parseDuration),
  ).toEqual([
    30_000,
    90_000,
    5_400_000,
    250,
    86_400_000,
    500,
    undefined,
    undefined,
    undefined,
    undefined,
    undefined,
  ])
  expect(['64KiB', '1.5 MiB', '10MB', '5', '1kB', '2GiB', '1k', 'B', '-1B', '1TiB'].map(parseSize)).toEqual([
    65_536,
    1_572_864,
    10_000_000,
    5,
    1_000,
    2_147_483_648,
    undefined,
    undefined,
    undefined,
    undefined,
  ])
})

test('the distance between words is the least number of slips', () => {
  const random = new Random(9)
  /** Every word that one slip makes of another. */
  const slips = (word: string): string[] => {
    const cuts = Array.from(
      { length: word.length + 1 },
      (_, at) => [word.slice(0, at), word.slice(at)] as const,
    )
    return cuts.flatMap(([left, right]) => [
      left + right.slice(1),
      ...['a', 'b'].flatMap(letter => [left + letter + right, left + letter + right.slice(1)]),
      left + (right[1] ?? '') + (right[0] ?? '') + right.slice(2),
    ])
  }
  for (let round = 0; round < 300; round++) {
    const word = Array.from({ length: 1 + random.below(6) }, () => random.pick(['a', 'b'])).join('')
    const other = random.pick(slips(word))
    expect(distance(word, other)).toBe(word === other ? 0 : 1)
    expect(distance(word, random.pick(slips(other)))).toBeLessThanOrEqual(2)
    expect(distance(other, word)).toBe(distance(word, other))
  }
  expect(nearest('subdomian', ['domain', 'subdomain'])).toBe('subdomain')
  expect(nearest('colour', ['host', 'port'])).toBeUndefined()
  expect(nearest('prot', ['port', 'proxy'])).toBe('port')
})

test('keys of a prototype are keys like others, and unknown', async () => {
  const lines = await files.faults(
    'prototype.json',
    '{"__proto__": {"x": 1}, "constructor": 1, "services": {"__proto__": {"port": 2}}}',
  )
  expect(lines.map(line => line.replace(/.*?:1:\d+ /, ''))).toEqual([
    'unknown key "__proto__"',
    'unknown key "constructor"',
    expect.stringContaining('services.__proto__ needs "subdomain"'),
  ])
  expect(new Check({ folder: '/', environment: {} }).isGiven('constructor')).toBe(false)
})
