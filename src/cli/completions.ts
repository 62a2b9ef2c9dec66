// The data with which shells complete commands and flags, made from the commands themselves so that it is always current.

import type { Command, Option } from 'commander'
import type { Shell } from './program/completions.ts'

const WRITERS = { bash, zsh, fish } as const

export function completions(shell: Shell, program: Command): string {
  return WRITERS[shell](shapesOf(program))
}

export function bash(shapes: readonly CommandShape[]): string {
  const deeper = shapes.filter(({ path }) => path.length > 0).map(({ path }) => `'${path.join(' ')}'`)
  return `# Completions of localtunnels for bash. Use: source <(localtunnels completions bash)
_localtunnels() {
  local word=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD-1]} command='' next i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    next="\${command:+$command }\${COMP_WORDS[i]}"
    case $next in ${deeper.join('|')}) command=$next ;; esac
  done
  local flags='' commands='' files='' folders='' texts='' takes_file=''
  case $command in
${shapes.map(bashCase).join('\n')}
  esac
  case " $files " in *" $before "*) COMPREPLY=($(compgen -f -- "$word")); return ;; esac
  case " $folders " in *" $before "*) COMPREPLY=($(compgen -d -- "$word")); return ;; esac
  case " $texts " in *" $before "*) return ;; esac
  case $word in
    -*) COMPREPLY=($(compgen -W "$flags" -- "$word")) ;;
    *)
      COMPREPLY=($(compgen -W "$commands" -- "$word"))
      [ -n "$takes_file" ] && COMPREPLY+=($(compgen -f -- "$word"))
      ;;
  esac
}
complete -o bashdefault -F _localtunnels localtunnels lt
`
}

function bashCase({ path, flags, commands, takesFile }: CommandShape): string {
  const named = (value: string) =>
    flags
      .filter(flag => flag.value === value)
      .flatMap(({ long, short }) => (short === undefined ? [long] : [short, long]))
      .join(' ')
  return `    '${path.join(' ')}')
      flags='${flags.map(({ long }) => long).join(' ')}'
      commands='${commands.map(({ name }) => name).join(' ')}'
      files='${named('file')}' folders='${named('folder')}' texts='${named('text')}' takes_file='${takesFile ? 'yes' : ''}'
      ;;`
}

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
          .map(({ path }) => fishQuoted(path.join(' ')))
          .join(' ')}; and set -a command $word
    end
    set -l joined (string join ' ' -- $command)
    test "$joined" = "$argv[1]"
end
${programs.map(program => `complete -c ${program} -f`).join('\n')}
${shapes.flatMap(shape => programs.flatMap(program => fishLines(program, shape))).join('\n')}
`
}

function fishLines(program: string, { path, flags, commands, takesFile }: CommandShape): readonly string[] {
  const when = `complete -c ${program} -n ${fishQuoted(`__localtunnels_is "${path.join(' ')}"`)}`
  return [
    ...commands.map(({ name, meaning }) => `${when} -a ${name} -d ${fishQuoted(meaning)}`),
    ...(takesFile ? [`${when} -F`] : []),
    ...flags.map(flag => `${when} ${fishWords(flag)}`),
  ]
}

function fishWords({ long, short, meaning, value }: FlagShape): string {
  const names = `-l ${long.slice(2)}${short === undefined ? '' : ` -s ${short.slice(1)}`}`
  const takes = value === undefined ? '' : value === 'text' ? ' -x' : ' -r -F'
  return `${names}${takes} -d ${fishQuoted(meaning)}`
}

function fishQuoted(text: string): string {
  return `'${text.replace(/[\\']/g, match => `\\${match}`)}'`
}

export function zsh(shapes: readonly CommandShape[]): string {
  const deeper = shapes.filter(({ path }) => path.length > 0).map(({ path }) => zshQuoted(path.join(' ')))
  return `#compdef localtunnels lt
# Completions of localtunnels for zsh. Use: source <(localtunnels completions zsh)
_localtunnels() {
  local command='' next i
  for ((i = 2; i < CURRENT; i++)); do
    next="\${command:+$command }\${words[i]}"
    case $next in (${deeper.join('|')}) command=$next ;; esac
  done
  local -a commands
  case $command in
${shapes.map(zshCase).join('\n')}
  esac
}
compdef _localtunnels localtunnels lt
`
}

function zshCase({ path, flags, commands, takesFile }: CommandShape): string {
  const described = commands.map(({ name, meaning }) => zshQuoted(`${name}:${meaning}`))
  const follows = takesFile ? "'*:file:_files'" : "'*: :{_describe command commands}'"
  return `    (${zshQuoted(path.join(' '))})
      commands=(${described.join(' ')})
      _arguments ${[...flags.map(zshWord), follows].join(' \\\n        ')}
      ;;`
}

function zshWord({ long, short, meaning, value }: FlagShape): string {
  const text = meaning.replace(/[\\[\]:]/g, match => `\\${match}`)
  const takes = value === undefined ? '' : `:${value}:${COMPLETERS[value]}`
  const names = short === undefined ? long : `{${short},${long}}`
  return `${names}${zshQuoted(`[${text}]${takes}`)}`
}

const COMPLETERS = { file: '_files', folder: '_files -/', text: ' ' } as const

function zshQuoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}

export interface FlagShape {
  /** The long form: `--server`. */
  readonly long: string
  /** The short form: `-p`. */
  readonly short: string | undefined
  /** The form in the help: `-p, --port <port>`. */
  readonly written: string
  /** The environment variable that does the same. */
  readonly variable: string | undefined
  readonly meaning: string
  /** The kind of the value. `undefined` if it has none. */
  readonly value: 'file' | 'folder' | 'text' | undefined
}

export interface CommandShape {
  /** The words of the command, without the program's name: `['config', 'check']`. */
  readonly path: readonly string[]
  /** The text after its name: `[options] [file]`. */
  readonly usage: string
  readonly meaning: string
  readonly flags: readonly FlagShape[]
  /** The words that may follow it. */
  readonly commands: readonly { readonly name: string; readonly meaning: string }[]
  readonly takesFile: boolean
}

export function shapesOf(command: Command, path: readonly string[] = []): readonly CommandShape[] {
  const below = command.commands.filter(one => !isHidden(one))
  const own: CommandShape = {
    path,
    usage: command.usage(),
    meaning: command.description(),
    flags: [...command.options.filter(one => !one.hidden).map(flagOf), HELP],
    commands: below.map(one => ({ name: one.name(), meaning: one.description() })),
    takesFile: command.registeredArguments.some(one => one.name() === 'file'),
  }
  return [own, ...below.flatMap(one => shapesOf(one, [...path, one.name()]))]
}

const HELP: FlagShape = {
  long: '--help',
  short: '-h',
  written: '-h, --help',
  variable: undefined,
  meaning: 'print this help',
  value: undefined,
}

function flagOf(option: Option): FlagShape {
  // Every option of ours has a long name.
  const long = option.long ?? ''
  return {
    long,
    short: option.short,
    written: option.flags,
    variable: option.envVar,
    meaning: option.description,
    value: valueKind(option),
  }
}

function valueKind({ flags, required, optional }: Option): FlagShape['value'] {
  if (!required && !optional) return undefined
  const [, name = ''] = /[<[]([^>\]]*)/.exec(flags) ?? []
  if (name === 'file') return 'file'
  return name === 'folder' ? 'folder' : 'text'
}

/** Whether the command is hidden, which commander stores in a field without a type; `help` is commander's own command. */
function isHidden(command: Command): boolean {
  return '_hidden' in command && command._hidden === true
}
