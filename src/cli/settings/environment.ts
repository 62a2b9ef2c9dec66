// The variables of the command line, as commander is to see them.

import type { Command } from 'commander'

/**
 * Removes variables that say no: commander takes any value for a set flag, also `0` and the empty string, and an empty text for
 * a given one. Values that say no are removed first.
 */
export function normaliseEnvironment(environment: NodeJS.ProcessEnv, program: Command): void {
  const options = commandsOf(program).flatMap(command => command.options)
  const flags = new Set(options.filter(option => !option.required).map(option => option.envVar))
  for (const [name, value] of Object.entries(environment)) {
    if (!name.startsWith('TUNNEL_')) continue
    if (value === '' || (flags.has(name) && /^(?:0|no|false|off)$/i.test(value ?? '')))
      delete environment[name]
  }
}

/** A command and all below it. */
export function commandsOf(command: Command): readonly Command[] {
  return [command, ...command.commands.flatMap(commandsOf)]
}
