// The facts about a command for shells and manual pages: its flags, and its subcommands.

import type { Command, Option } from 'commander'

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

/**
 * Whether the command is hidden, which commander stores in a field without a type; `help` is commander's own command.
 */
function isHidden(command: Command): boolean {
  return '_hidden' in command && command._hidden === true
}
