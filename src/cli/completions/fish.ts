// Completions of fish.

import type { CommandShape, FlagShape } from './shape.ts'

export function fish(shapes: readonly CommandShape[]): string {
  const programs = ['localtunnels', 'lt']
  return `# Completions of localtunnels for fish. Use: localtunnels completions fish | source
function __localtunnels_is
    set -l given
    for word in (commandline -opc)[2..]
        string match -q -- '-*' $word; or set -a given $word
    end
    # A word that is no command, such as a port, belongs to the command before it.
    set -l command
    for word in $given
        contains -- (string join ' ' $command $word) ${shapes
          .filter(({ path }) => path.length > 0)
          .map(({ path }) => quoted(path.join(' ')))
          .join(' ')}; and set -a command $word
    end
    set -l joined (string join ' ' -- $command)
    test "$joined" = "$argv[1]"
end
${programs.map(program => `complete -c ${program} -f`).join('\n')}
${shapes.flatMap(shape => programs.flatMap(program => lines(program, shape))).join('\n')}
`
}

function lines(program: string, { path, flags, commands, takesFile }: CommandShape): readonly string[] {
  const when = `complete -c ${program} -n ${quoted(`__localtunnels_is "${path.join(' ')}"`)}`
  return [
    ...commands.map(({ name, meaning }) => `${when} -a ${name} -d ${quoted(meaning)}`),
    ...(takesFile ? [`${when} -F`] : []),
    ...flags.map(flag => `${when} ${wordsOf(flag)}`),
  ]
}

function wordsOf({ long, short, meaning, value }: FlagShape): string {
  const names = `-l ${long.slice(2)}${short === undefined ? '' : ` -s ${short.slice(1)}`}`
  const takes = value === undefined ? '' : value === 'text' ? ' -x' : ' -r -F'
  return `${names}${takes} -d ${quoted(meaning)}`
}

function quoted(text: string): string {
  return `'${text.replace(/[\\']/g, match => `\\${match}`)}'`
}
