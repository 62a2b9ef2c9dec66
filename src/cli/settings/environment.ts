// Prepares environment variables for commander.

import type { Command } from 'commander'

/** Removes variables that mean "no", because commander takes any value for a set flag, even `0` and the empty text. */
export function normaliseEnvironment(environment: NodeJS.ProcessEnv, program: Command): void {
  const options = commandsOf(program).flatMap(command => command.options)
  const flags = new Set(options.filter(option => !option.required).map(option => option.envVar))
  for (const [name, value] of Object.entries(environment)) {
    if (!name.startsWith('TUNNEL_')) continue
    if (value === '' || (flags.has(name) && /^(?:0|no|false|off)$/i.test(value ?? '')))
      delete environment[name]
  }
}

/** Returns a command and all of its subcommands. */
export function commandsOf(command: Command): readonly Command[] {
  return [command, ...command.commands.flatMap(commandsOf)]
}
