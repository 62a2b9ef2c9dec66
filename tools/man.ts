// Writes the page of the manual from the commands themselves and the list of exit codes.
//
//   bun tools/man.ts        into dist/man/localtunnels.1, which lt.1 names, as `bun run build` does

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Actions } from '../src/cli/actions.ts'
import { type CommandShape, type FlagShape, shapesOf } from '../src/cli/completions.ts'
import { createProgram } from '../src/cli/program.ts'
import { VERSION } from '../src/version.ts'

const root = resolve(import.meta.dir, '..')
const folder = join(root, 'dist/man')

// No command runs: the program is only looked at.
const shapes = shapesOf(await createProgram({} as Actions))
mkdirSync(folder, { recursive: true })
writeFileSync(
  join(folder, 'localtunnels.1'),
  page(shapes, exitCodes(readFileSync(join(root, 'docs/cli.md'), 'utf8'))),
)
// npm links both into the same folder.
writeFileSync(join(folder, 'lt.1'), '.so man1/localtunnels.1\n')

function page(
  [program, ...commands]: readonly CommandShape[],
  codes: readonly (readonly [string, string])[],
): string {
  if (program === undefined) throw new Error('no program')
  const lines = [
    `.TH LOCALTUNNELS 1 "" "localtunnels ${VERSION}" "User Commands"`,
    '.SH NAME',
    'localtunnels, lt \\- a public URL for a local port, through a server of your own',
    '.SH SYNOPSIS',
    '.nf',
    ...[program, ...commands].map(({ path, usage }) =>
      text(['localtunnels', ...path, usage].join(' ').replace(/\n +/, '\n')),
    ),
    '.fi',
    '.SH DESCRIPTION',
    text(program.meaning),
    '.SH OPTIONS',
    ...program.flags.flatMap(flag),
    '.SH COMMANDS',
    ...commands.flatMap(one => command(one, program.flags)),
    '.SH EXIT STATUS',
    ...codes.flatMap(([code, meaning]) => ['.TP', text(code), text(meaning)]),
    '.SH SEE ALSO',
    'The pages in the folder that',
    '.B localtunnels \\-\\-help',
    'names.',
  ]
  return `${lines.join('\n')}\n`
}

/** `above`: flags that the page has already. */
function command(
  { path, usage, meaning, flags }: CommandShape,
  above: readonly FlagShape[],
): readonly string[] {
  const known = new Set(above.map(one => flag(one).join('\n')))
  const own = flags.filter(one => !known.has(flag(one).join('\n')))
  const shared = flags.filter(one => !own.includes(one)).map(({ written }) => written.replace(/ <.*/, ''))
  return [
    `.SS "${text([...path, usage].join(' '))}"`,
    text(meaning),
    ...own.flatMap(flag),
    ...(shared.length > 0 ? ['.PP', text(`As under OPTIONS: ${shared.join(', ')}.`)] : []),
  ]
}

function flag({ written, variable, meaning }: FlagShape): readonly string[] {
  const also = variable === undefined ? [] : ['.br', `Variable: ${text(variable)}`]
  return ['.TP', `.B ${text(written)}`, text(meaning), ...also]
}

/** A hyphen is one to copy, all is ASCII, as there may be no locale, and no line begins with a command of the typesetter. */
function text(plain: string): string {
  return plain
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replaceAll('…', '...')
    .replace(/^[.']/, match => `\\&${match}`)
}

/** The list in docs/cli.md. */
function exitCodes(markdown: string): readonly (readonly [string, string])[] {
  const [, section = ''] = markdown.split('\n## Exit codes\n')
  return [...section.matchAll(/^- `(\d+)`: (.*)$/gm)].map(([, code = '', meaning = '']) => [
    code,
    meaning.replaceAll('`', ''),
  ])
}
