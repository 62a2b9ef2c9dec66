// docs/cli.md says what the program does: its flags, variables, events and exit codes. LT_WRITE_DOCS=1 writes the flags anew.

import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { EXIT, exitCodeOf } from '../../src/cli/exit-codes.ts'
import { commandsOf } from '../../src/cli/settings/environment.ts'
import { ERRORS, type ErrorCode } from '../../src/errors.ts'
import { idleProgram } from '../support/idle-program.ts'
import { finish } from './bin.ts'

const root = join(import.meta.dir, '../..')
const docs = await Bun.file(join(root, 'docs/cli.md')).text()
const program = await idleProgram()

/** Items of the list under a heading. */
function list(heading: string): readonly string[] {
  const section = docs.split(`\n## ${heading}\n`)[1]?.split('\n## ')[0] ?? ''
  return section.split('\n').filter(line => line.startsWith('- '))
}

const commandOf = (name: string) => program.commands.find(command => command.name() === name)!
const optionsOf = (command: typeof program) => command.options.filter(({ long }) => long !== '--version')
const lineOf = ({ flags, envVar, description }: (typeof program.options)[number]) =>
  `- \`${flags}\` \`${envVar}\`: ${description}`
    .replaceAll('<', '&lt;')
    .replaceAll(/`[^`]*`/g, code => code.replaceAll('&lt;', '<'))
const shared = new Set(optionsOf(program).map(lineOf))

/** By the headings of --help. Flags that a command has as `localtunnels [port]` has them are only named. */
function flagList(command: typeof program): readonly string[] {
  const lines = optionsOf(command).map(lineOf)
  if (command === program || command.name() === 'server') {
    const groups = Map.groupBy(optionsOf(command), option => option.helpGroupHeading ?? '')
    return [...groups].flatMap(([heading, options]) => [
      '',
      `**${heading.replace(/:$/, '')}**`,
      '',
      ...options.map(lineOf),
    ])
  }
  const same = lines.filter(line => shared.has(line)).map(line => `\`${/--[\w-]+/.exec(line)?.[0]}\``)
  const others = lines.filter(line => !shared.has(line))
  return same.length > 0 ? [...others, `- ${same.join(', ')}: as of \`localtunnels [port]\``] : others
}

test.each([
  ['[port]', program],
  ...['tcp', 'tls', 'udp', 'connect', 'server', 'up', 'run', 'requests', 'replay', 'wait', 'mcp'].map(
    name => [name, commandOf(name)] as const,
  ),
] as const)(
  'docs/cli.md has the flags and variables of %s, in the words of --help',
  async (name, command) => {
    const [begin, end] = [`<!-- flags of ${name}: begin -->\n`, `<!-- flags of ${name}: end -->`]
    const page = Bun.file(join(root, 'docs/cli.md'))
    const [before, rest] = (await page.text()).split(begin)
    const [written, after] = rest?.split(end) ?? []
    if (before === undefined || written === undefined || after === undefined)
      throw new Error('the marks are missing')
    const wanted = `${flagList(command).join('\n')}\n`
    if (process.env.LT_WRITE_DOCS !== undefined) await page.write(`${before}${begin}${wanted}${end}${after}`)
    else expect(written).toBe(wanted)
  },
)

test('every flag has a variable: --help shows the flag, docs/cli.md both', () => {
  for (const command of program.commands) {
    const help = command.helpInformation()
    for (const { flags, envVar, long } of command.options) {
      // What a login is to do is said each time.
      if (long !== undefined && ['--token-stdin', '--default', '--force'].includes(long)) continue
      expect(help).toContain(`  ${flags} `)
      // So is what a link is to do.
      if (command.name() === 'link') continue
      expect(envVar).toMatch(/^TUNNEL_/)
      expect(docs).toContain(`\`${envVar}\``)
    }
  }
})

test('--help is 60 lines at most, commands before options; no help is wider than 80 columns', async () => {
  const { stdout } = await finish(['--help'])
  expect(stdout.trimEnd().split('\n').length).toBeLessThanOrEqual(60)
  expect(stdout.indexOf('\nShare:\n')).toBeLessThan(stdout.indexOf('\nCommon options'))
  const all = commandsOf(program).slice(1)
  for (const command of program.commands)
    expect(stdout).toMatch(new RegExp(`^  ${command.name()} .*\\w`, 'm'))
  const helps = all.map(command => {
    let text = ''
    command.configureOutput({ writeOut: piece => (text += piece) }).outputHelp()
    return text
  })
  expect(helps.length).toBeGreaterThan(30)
  const wide = [stdout, ...helps].flatMap(text => text.split('\n')).filter(line => line.length > 80)
  // The folder of this clone.
  expect(wide.filter(line => !line.startsWith('Documentation: '))).toEqual([])
  // A long list of options has headings.
  for (const command of all) {
    const headings = new Set(command.options.map(option => option.helpGroupHeading))
    if (command.options.length > 16) expect(headings.size).toBeGreaterThan(2)
  }
})

test('the variable of a shared or server flag is its name in capitals', () => {
  const http = commandOf('http').options.map(({ long, envVar }) => [long, envVar, 'TUNNEL_'] as const)
  const server = commandOf('server').options.map(
    ({ long, envVar }) => [long, envVar, 'TUNNEL_SERVER_'] as const,
  )
  for (const [long = '', variable, prefix] of [...http, ...server])
    expect(variable).toBe(prefix + long.slice(2).replaceAll('-', '_').toUpperCase())
})

test('the JSON events and their fields', async () => {
  const source = await Bun.file(join(root, 'src/cli/output.ts')).text()
  const declarations = source
    .split('Whole declarations')[0]!
    .split(/(?=readonly type: ')/)
    .slice(1)
  const declared = new Map(
    declarations.map(text => {
      const [type = '', ...fields] = [
        ...text.split(/\n\}|\}\n/)[0]!.matchAll(/readonly (\w+)\??: (?:'(\w+)')?/g),
      ].map(([, name = '', literal]) => (name === 'type' ? (literal ?? '') : name))
      return [type, fields] as const
    }),
  )
  const documented = list('JSON events').map(item => {
    const [, type = '', fields = ''] = /^- `(\w+)` \((.*?)\):/.exec(item) ?? []
    return [type, fields.replaceAll('`', '').split(', ')] as const
  })
  for (const [type, fields] of documented) {
    expect([type, declared.get(type)]).toEqual([type, fields])
  }
  expect([...declared.keys()].sort()).toEqual(documented.map(([type]) => type).sort())
})

test('the exit codes', () => {
  const items = list('Exit codes').map(item => {
    const [, exitCode = '', text = ''] = /^- `(\d+)`: (.*)$/.exec(item) ?? []
    return [Number(exitCode), [...text.matchAll(/`([A-Z\d_]+)`/g)].map(([, code]) => code)] as const
  })
  expect(items.map(([exitCode]) => exitCode)).toEqual(Object.values(EXIT))
  const documented = new Map(items)
  // Object.keys of ERRORS are its codes.
  for (const code of Object.keys(ERRORS) as ErrorCode[]) {
    const exitCode = exitCodeOf(code)
    if (exitCode !== EXIT.unexpected) expect(documented.get(exitCode)).toContain(code)
  }
  for (const [exitCode, codes] of documented) {
    for (const code of codes) expect<number>(exitCodeOf(code as ErrorCode)).toBe(exitCode)
  }
})

test('the manual has each exit code, each variable and each command', async () => {
  expect(await Bun.spawn(['bun', join(root, 'tools/man.ts')], { cwd: root }).exited).toBe(0)
  const page = (await Bun.file(join(root, 'dist/man/localtunnels.1')).text()).replaceAll('\\-', '-')
  const codes = page.split('.SH EXIT STATUS\n')[1]?.split('.SH')[0] ?? ''
  for (const exitCode of Object.values(EXIT)) expect(codes).toContain(`.TP\n${exitCode}\n`)
  for (const command of program.commands) {
    expect(page).toContain(`\nlocaltunnels ${command.name()} `)
    for (const { envVar } of command.options)
      if (envVar !== undefined) expect(page).toContain(`Variable: ${envVar}\n`)
  }
  expect(page).toContain('\nlocaltunnels <command> [options]\n')
})
