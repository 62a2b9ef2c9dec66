// docs/cli.md says what the program does: its flags, variables, events and exit codes.

import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { EXIT, exitCodeOf } from '../../src/cli/exit-codes.ts'
import { ERRORS, type ErrorCode } from '../../src/errors.ts'
import { idleProgram } from '../support/idle-program.ts'

const root = join(import.meta.dir, '../..')
const docs = await Bun.file(join(root, 'docs/cli.md')).text()
const program = idleProgram()

/** Cells of the table under a heading, without its head. */
function table(heading: string): readonly (readonly string[])[] {
  const section = docs.split(`\n## ${heading}\n`)[1]?.split('\n## ')[0] ?? ''
  const rows = section.split('\n').filter(line => line.startsWith('|'))
  return rows.slice(2).map(row =>
    row
      .split('|')
      .slice(1, -1)
      .map(cell => cell.trim()),
  )
}

const unquoted = (cell: string | undefined) => cell?.replaceAll('`', '') ?? ''

test.each([
  ['localtunnels [port]', program],
  ['localtunnels tcp <port>', program.commands.find(command => command.name() === 'tcp')!],
  ['localtunnels tls <port>', program.commands.find(command => command.name() === 'tls')!],
  ['localtunnels udp <port>', program.commands.find(command => command.name() === 'udp')!],
  ['localtunnels up', program.commands.find(command => command.name() === 'up')!],
  ['localtunnels server', program.commands.find(command => command.name() === 'server')!],
] as const)('the flags and variables of %s', (heading, command) => {
  const documented = table(heading).map(([flag, variable]) => `${unquoted(flag)} ${unquoted(variable)}`)
  const real = command.options.filter(option => option.long !== '--version')
  expect(documented).toEqual(real.map(option => `${option.flags} ${option.envVar}`))
})

test('every flag has a variable, and --help shows both', () => {
  for (const command of [program, ...program.commands]) {
    const help = command.helpInformation().replace(/\s+/g, ' ')
    for (const { flags, envVar, long } of command.options) {
      // What a login is to do is said each time.
      if (long !== undefined && ['--version', '--token-stdin', '--default', '--force'].includes(long))
        continue
      expect(help).toContain(flags)
      // So is what a link is to do.
      if (command.name() !== 'link') expect(help).toContain(`(env: ${envVar})`)
    }
  }
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
  const documented = table('JSON events').map(
    ([type, fields]) => [unquoted(type), unquoted(fields).split(', ')] as const,
  )
  for (const [type, fields] of documented) {
    expect([type, declared.get(type)]).toEqual([type, fields])
  }
  expect([...declared.keys()].sort()).toEqual(documented.map(([type]) => type).sort())
})

test('the exit codes', () => {
  const rows = table('Exit codes')
  expect(rows.map(([exitCode]) => Number(exitCode))).toEqual(Object.values(EXIT))
  const documented = new Map(
    rows.map(([exitCode, , codes = '']) => [
      Number(exitCode),
      [...codes.matchAll(/`(\w+)`/g)].map(([, code]) => code),
    ]),
  )
  // Object.keys of ERRORS are its codes.
  for (const code of Object.keys(ERRORS) as ErrorCode[]) {
    const exitCode = exitCodeOf(code)
    if (exitCode !== EXIT.unexpected) expect(documented.get(exitCode)).toContain(code)
  }
  for (const [exitCode, codes] of documented) {
    for (const code of codes) expect<number>(exitCodeOf(code as ErrorCode)).toBe(exitCode)
  }
})
