// The first words of command lines: our commands, those of other tunnels, and the command that a misspelt word was meant to be.

import { optionInvalid, type TunnelError } from '../errors.ts'
import { nearest } from '../option-names.ts'
import { commandHint, ofOtherTunnel, shareFlags } from './other-tunnels.ts'

/** The commands, in the order of --help. */
export const COMMANDS: readonly string[] = [
  'http',
  'tcp',
  'udp',
  'tls',
  'run',
  'up',
  'connect',
  'requests',
  'replay',
  'fixture',
  'wait',
  'mcp',
  'login',
  'logout',
  'whoami',
  'link',
  'server',
  'token',
  'admin',
  'service',
  'doctor',
  'config',
  'completions',
  'help',
]

/** Returns the command line in our own words: `start --port 3000` shares an app as `http 3000` does, `serve ./dist` a folder. */
export function translate(argv: readonly string[]): readonly string[] {
  const [first = '', ...rest] = argv
  const ours = ofOtherTunnel(argv)
  if (ours !== undefined) return ours
  if (first === 'start' || first === 'http') return ['http', ...shareFlags(rest)]
  if (first === 'serve') return ['--serve', ...rest]
  if (first === '-v') return ['--version', ...rest]
  // `help config check` means `config check --help`.
  if (first === 'help' && COMMANDS.includes(rest[0] ?? '')) return [...rest, '--help']
  return COMMANDS.includes(first) ? argv : shareFlags(argv)
}

/** Returns a message in which `--app-ca (appCa)` became `--app-ca`, or `app-ca` for the author of a file. */
export function asFlags(message: string, isFile = false): string {
  return message.replace(/--([a-z-]+) \([a-z]+[A-Z]\w*\)/g, isFile ? '$1' : '--$1')
}

/** Whether a word cannot name an app. */
export function isBareWord(word: string): boolean {
  return /^[a-z-]+$/i.test(word) && !word.startsWith('-')
}

/** Returns the error for a word that is neither an app nor a command. */
export function unknownWord(word: string): TunnelError {
  const near = nearest(word, [...COMMANDS, 'start', 'serve'])
  const nearHint = near === undefined ? `Commands: ${COMMANDS.join(', ')}.` : `Did you mean ${near}?`
  const hint = commandHint([word]) ?? nearHint
  return optionInvalid(`"${word}" is neither a port, a URL nor a command. ${hint}`)
}
