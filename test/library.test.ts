// docs/library.md lists what the code says: options, events and functions, in the words of their docstrings.
// LT_WRITE_DOCS=1 writes the lists anew.

import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { DEFAULT_CLIENT_LIMITS } from '../src/client/limits.ts'
import { camelOf, type Fields } from '../src/config/field.ts'
import { CLIENT_FIELDS, GUARD_FIELDS, SERVER_FIELDS, SERVICE_FIELDS } from '../src/config/schema/fields.ts'
import * as api from '../src/index.ts'
import { DEFAULT_LIMITS } from '../src/server/settings/options.ts'
import { tableIn } from './support/config-tables.ts'

const root = join(import.meta.dir, '..')
const page = Bun.file(join(root, 'docs/library.md'))

interface Member {
  readonly name: string
  readonly type: string
  /** Its docstring in one line; empty when there is none. */
  readonly text: string
}

/** Members of an interface of the source, in their order. */
async function membersOf(file: string, name: string): Promise<readonly Member[]> {
  const source = await Bun.file(join(root, file)).text()
  const body = new RegExp(`^export interface ${name}(?: extends [\\w, ]+)? \\{\\n([\\s\\S]*?)^\\}`, 'm').exec(
    source,
  )?.[1]
  if (body === undefined) throw new Error(`${file} has no interface ${name}`)
  const member =
    /(?: {2}\/\*\*([\s\S]*?)\*\/\n)? {2}(?:readonly )?(\w+)\??: ([\s\S]*?)(?=\n {2}(?:\/\*\*|\w)|\n$)/g
  return [...body.matchAll(member)].map(([, comment = '', key = '', type = '']) => ({
    name: key,
    type: typeOf(type),
    text: inOneLine(comment.replace(/^\s*\*/gm, '')),
  }))
}

const inOneLine = (text: string) => text.replace(/\s+/g, ' ').trim()
/** `{ a: string; b: number }`, however many lines the declaration has. */
const typeOf = (text: string) =>
  inOneLine(
    text
      .replace(/\s*\/\*\*[\s\S]*?\*\//g, '')
      .replaceAll('readonly ', '')
      .replace(/(?<=[^{])\n(?= *\w)/g, '; '),
  )
/** Fields of payloads that are texts have no type in the list. */
const payload = (type: string) =>
  type === 'Readonly<Record<string, never>>' ? 'nothing' : type.replace(/(?<=\w\??): string(?=[; ])/g, '')

/** Sentences that the list has besides the first: defaults, bounds, codes. The docstring has the others. */
const NEEDED =
  /^Default|^None|^Empty|^If (?:exceeded|in use|less|longer|more)\b|^For others|^Exactly|`[A-Z_]{4,}`|`0`|Streams wire only|most /
const SENTENCE = /(?<=[.!?]) (?=[A-Z`])/

/** Without reasons, which follow the colon of a number. */
const terse = (text: string) =>
  text
    .split(SENTENCE)
    .filter((sentence, at) => at === 0 || NEEDED.test(sentence))
    .map(sentence => sentence.replace(/^(Default [\d,]+(?: \w+)?)[:,] .*$/, '$1.'))
    .join(' ')
    .replaceAll('<', '&lt;')

const optionList = (members: readonly Member[]) =>
  members.map(({ name, type, text }) => `- \`${name}\` \`${type}\`: ${terse(text)}`)

/** Options that the configuration file has, too, are explained there: here stand their types and codes. */
const besides =
  (fields: Fields, heading: string) =>
  (members: readonly Member[]): string[] => {
    const keys = new Set(
      Object.entries(fields).flatMap(([key, { option }]) => [option ?? '', unitless(camelOf(key))]),
    )
    const isKey = ({ name }: Member) => keys.has(name) || keys.has(unitless(name))
    const named = members.filter(isKey).map(({ name, type, text }) => {
      const codes = [...new Set([...text.matchAll(/`([A-Z_]+)`/g)].map(([, code = '']) => code))]
        .filter(code => Object.hasOwn(api.ERRORS, code) && code !== 'OPTION_INVALID')
        .map(code => `\`${code}\``)
      const known = /^(?:string|number|boolean)(?:\[\])?$/.test(type)
      return `\`${name}\`${known ? '' : ` \`${type}\``}${codes.length > 0 ? ` (${codes.join(', ')})` : ''}`
    })
    const others = optionList(members.filter(member => !isKey(member)))
    return [...others, `- As [in the file](configuration.md#${heading}): ${named.join(', ')}`]
  }

const unitless = (name: string) => name.replace(/(?:Ms|Bytes)$/, '')

const eventList = (members: readonly Member[]) =>
  members.map(({ name, type, text }) => `- \`${name}\` \`${payload(type)}\`: ${text.replaceAll('<', '&lt;')}`)

/** The table that a key holds. */
const fieldsOf = (fields: Fields, key: string): Fields => {
  const field = fields[key]
  return (field && tableIn(field.value)) ?? {}
}

const CLIENT = 'src/client/options.ts'
const SERVER = 'src/server/settings/options.ts'

const tables: readonly (readonly [string, string, string, (members: readonly Member[]) => string[]])[] = [
  ['client options', CLIENT, 'TunnelClientOptions', besides(CLIENT_FIELDS, 'a-clients-file')],
  ['origin options', CLIENT, 'OriginOptions', besides(SERVICE_FIELDS, 'a-service')],
  ['HTTP tunnel options', CLIENT, 'HttpTunnelOptions', besides(SERVICE_FIELDS, 'a-service')],
  ['TCP tunnel options', CLIENT, 'TcpTunnelOptions', besides(SERVICE_FIELDS, 'a-service')],
  ['TLS tunnel options', CLIENT, 'TlsTunnelOptions', besides(SERVICE_FIELDS, 'a-service')],
  ['health options', CLIENT, 'HealthOptions', besides(fieldsOf(SERVICE_FIELDS, 'health'), 'health')],
  ['UDP tunnel options', CLIENT, 'UdpTunnelOptions', besides(SERVICE_FIELDS, 'a-service')],
  ['connect options', CLIENT, 'ConnectOptions', besides(SERVICE_FIELDS, 'a-service')],
  ['shared tunnel options', CLIENT, 'SharedTunnelOptions', besides(SERVICE_FIELDS, 'a-service')],
  ['guard options', 'src/guard.ts', 'GuardOptions', besides(GUARD_FIELDS, 'guard')],
  ['ways in', 'src/guard.ts', 'SignInMethods', besides(GUARD_FIELDS, 'guard')],
  ['link options', 'src/guard.ts', 'LinkOptions', optionList],
  ['client events', CLIENT, 'TunnelClientEvents', eventList],
  ['server options', SERVER, 'TunnelServerOptions', besides(SERVER_FIELDS, 'a-servers-file')],
  ['token rules', SERVER, 'TokenRule', besides(fieldsOf(SERVER_FIELDS, 'tokens'), 'tokens')],
  ['server events', SERVER, 'TunnelServerEvents', eventList],
  ['server statistics', 'src/server/settings/stats.ts', 'ServerStats', optionList],
]

/** In the list of docs/configuration.md. */
const LIMITS = [
  ['src/client/limits.ts', 'ClientLimits'],
  [SERVER, 'ServerLimits'],
] as const

for (const [mark, file, name, rows] of tables) {
  test(`docs/library.md lists the ${mark} of the code`, async () => {
    const text = await page.text()
    const begin = `<!-- ${mark}: begin -->\n`
    const end = `<!-- ${mark}: end -->`
    const [before, rest] = text.split(begin)
    const [written, after] = rest?.split(end) ?? []
    if (before === undefined || written === undefined || after === undefined)
      throw new Error('the marks are missing')
    const wanted = `${rows(await membersOf(file, name)).join('\n')}\n`
    if (process.env.LT_WRITE_DOCS !== undefined) await page.write(`${before}${begin}${wanted}${end}${after}`)
    else expect(written).toBe(wanted)
  })
}

test('every option, limit and event says what it means', async () => {
  const silent: string[] = []
  for (const [file, name] of [...tables.map(([, file, name]) => [file, name] as const), ...LIMITS]) {
    for (const member of await membersOf(file, name)) {
      if (member.text === '') silent.push(`${name}.${member.name}`)
    }
  }
  expect(silent).toEqual([])
})

test('the docstring of every limit names its default', async () => {
  const wrong: string[] = []
  const tables: readonly (readonly [string, string, object])[] = [
    [SERVER, 'ServerLimits', DEFAULT_LIMITS],
    ['src/client/limits.ts', 'ClientLimits', DEFAULT_CLIENT_LIMITS],
  ]
  const defaults = await Promise.all(
    tables.map(async ([file, of, values]) =>
      (await membersOf(file, of)).map(member => ({
        ...member,
        value: new Map(Object.entries(values)).get(member.name),
      })),
    ),
  )
  for (const { name, text, value = Number.NaN } of defaults.flat()) {
    const spellings = [value.toLocaleString('en'), `${value / 1_048_576} MiB`]
    if (!spellings.some(spelling => text.includes(`Default ${spelling}`))) wrong.push(`${name} is ${value}`)
  }
  expect(wrong).toEqual([])
})

test('docs/library.md names everything that the package exports', async () => {
  const text = await page.text()
  const files = ['src/index.ts', 'src/client.ts'].map(path => Bun.file(join(root, path)).text())
  const source = (await Promise.all(files)).join('')
  const names = [...source.replace(/\/\/.*/g, '').matchAll(/(\w+)(?=,|\s*\})/g)].map(([name]) => name)
  expect(names).toEqual(expect.arrayContaining(Object.keys(api)))
  expect(names.filter(name => !new RegExp(`\\b${name}\\b`).test(text))).toEqual([])
})

test('the version is that of package.json, and the changelog begins with it', async () => {
  const { version } = await Bun.file(join(root, 'package.json')).json()
  expect(api.VERSION).toBe(version)
  const changelog = await Bun.file(join(root, 'CHANGELOG.md')).text()
  expect(/^## (\S+)/m.exec(changelog)?.[1]).toBe(version)
})
