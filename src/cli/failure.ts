// The error message for a user whose command failed: one line with a code, in the words of the command line.

import { inspect } from 'node:util'
import { type Command, CommanderError } from 'commander'
import { messageOf, optionInvalid, TunnelError } from '../errors.ts'
import { nearest } from '../option-names.ts'
import { pageOf, withPages } from './documentation.ts'
import { EXIT, exitCodeOf } from './exit-codes.ts'
import { commandHint, flagHint } from './other-tunnels.ts'
import type { Sink } from './output.ts'
import type { ChosenOutput } from './outputs/choose.ts'
import { visible, wrapped } from './terminal/format.ts'
import { paletteFor } from './terminal/palette.ts'
import { COMMANDS, isBareWord, unknownWord } from './words.ts'

export interface Failed {
  readonly chosen: ChosenOutput | undefined
  readonly log: Sink
  readonly words: readonly string[]
  /** The command that ran. Absent if the error came before. */
  readonly command: Command
}

/** Prints the error on stderr and, for a program that reads JSON, as an event. Returns the exit code. */
export function fail(error: unknown, { chosen, log, words, command }: Failed): number {
  const group = groupOf(error, words, command)
  if (group !== undefined) {
    log.write(group.helpInformation())
    return EXIT.usage
  }
  const known = knownError(error, words, command)
  const message = inUsersWords(known.message, command)
  chosen?.output.close()
  if (chosen?.isJson) chosen.last({ type: 'error', code: known.code, message })
  const { red, bold } = paletteFor(process.stderr.isTTY, process.env)
  const shown = visible(message)
  log.write(
    process.stderr.isTTY
      ? `${onTerminal(known.code, shown, log.columns)}\n`
      : `${red('error')} ${bold(known.code)}: ${shown}\n`,
  )
  const page = pageOf(known.code)
  if (page !== undefined) log.write(`${process.stderr.isTTY ? '    ' : '  '}${page}\n`)
  if (process.env.LOCALTUNNELS_DEBUG === '1') log.write(`${inspect(error)}\n`)
  return exitCodeOf(known.code)
}

/** Returns two paragraphs for a terminal: the error with its code, and the next step. */
function onTerminal(code: string, message: string, columns: number): string {
  const { red, bold, dim } = paletteFor(true, process.env)
  const [, what = '', todo = ''] = /^(.*?[.!])(?: (?=[A-Z`"-])(.*))?$/s.exec(message) ?? [message, message]
  const [first = '', ...more] = wrapped(`✗ ${what}  ${code}`, columns - 4)
  const head = [first, ...more].join('\n    ').replace(new RegExp(`${code}$`), dim(code))
  const below = todo === '' ? [] : wrapped(todo, columns - 4)
  return [`  ${bold(red(head))}`, ...below.map(line => `    ${line}`)].join('\n')
}

/** Returns the command with subcommands of which none was named. */
function groupOf(error: unknown, [first]: readonly string[], program: Command): Command | undefined {
  if (!(error instanceof CommanderError) || error.code !== 'commander.help') return undefined
  return program.commands.find(one => one.name() === first)
}

function knownError(error: unknown, argv: readonly string[], command: Command): TunnelError {
  if (error instanceof TunnelError) return error
  // `tpc 22` and `sever --domain x`: commander sees an app with an argument that it does not accept.
  const [first = '', second = ''] = argv
  const word = first === 'help' ? second : first
  if (error instanceof CommanderError && isBareWord(word) && !COMMANDS.includes(word))
    return unknownWord(word)
  if (error instanceof CommanderError) return optionInvalid(usageText(error, argv, command))
  return new TunnelError('INTERNAL', `${argv[0] ?? 'localtunnels'}: ${messageOf(error)}.`, { cause: error })
}

/** Returns the text of a usage error from commander's `error: unknown option '--prot'`. */
function usageText(error: CommanderError, argv: readonly string[], command: Command): string {
  const at = argv.findIndex(word => word.startsWith('-'))
  const help = `localtunnels ${[...argv.slice(0, at < 0 ? argv.length : at), '--help'].join(' ')}`
  const [what = ''] = error.message.replace(/^error: /, '').split('\n')
  // "option '-p, --port <port>' argument missing"
  const flag = /--\S+ \S+(?=' argument missing$)/.exec(what)
  if (flag !== null) return `A value is missing: ${flag[0]}.`
  const hint = error.code === 'commander.missingArgument' ? '' : hintFor(what, argv, command)
  return `${what[0]?.toUpperCase()}${what.slice(1).replace(/\.$/, '')}. ${hint || `See ${help}.`}`
}

/** Returns what to write in place of an unknown option or command. Empty if there is no suggestion. */
function hintFor(what: string, argv: readonly string[], command: Command): string {
  const [, kind, word = ''] = /^unknown (option|command) '([^'=]*)/.exec(what) ?? []
  const here = commandOf(command, argv)
  const below =
    here === command ? undefined : here.commands.find(one => one.options.some(({ long }) => long === word))
  if (below !== undefined)
    return `Write it behind the command: localtunnels ${here.name()} ${argv.find(one => here.commands.some(two => two.name() === one)) ?? below.name()}.`
  const other = kind === 'option' ? flagHint(word, here.name()) : commandHint(argv)
  if (kind === undefined || other !== undefined) return other ?? ''
  const known =
    kind === 'option' ? here.options.flatMap(({ long }) => long ?? []) : here.commands.map(one => one.name())
  const near = nearest(
    word.replace(/^--?/, ''),
    known.map(name => name.replace(/^--/, '')),
  )
  if (near !== undefined) return `Did you mean ${kind === 'option' ? '--' : ''}${near}?`
  return here.name() === 'up' ? 'Its file sets the server and the services: see localtunnels up --help.' : ''
}

function commandOf(command: Command, [first, ...rest]: readonly string[]): Command {
  const below = command.commands.find(one => one.name() === first)
  return below === undefined ? command : commandOf(below, rest)
}

/** Returns a message with flags in place of `tlsPort` and `idleTimeoutMs`, and with the path of the documentation. */
function inUsersWords(message: string, command: Command): string {
  let text = withPages(message)
  // For programs these are already next to their flags; some are flags of the operator.
  text = text.replace(/(--[a-z-]+) \([a-zA-Z]+\)/g, '$1')
  for (const option of command.options) {
    if (option.long !== undefined)
      text = text.replaceAll(`guard.${option.attributeName()}:`, `${option.long}:`)
    const name = option.attributeName()
    // One word, such as `port`, may be an ordinary word. Some options are in a group, such as `admin.token`.
    const grouped = name.replace(/[A-Z]/g, letter => `\\.${letter.toLowerCase()}`)
    if (grouped !== name)
      text = text.replace(new RegExp(`\\b(?:${name}|${grouped})(?:Ms|s)?\\b`, 'g'), option.long ?? name)
  }
  return text
}
