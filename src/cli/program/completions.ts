// `localtunnels completions`.

import type { Command } from 'commander'
import type { Actions } from '../actions.ts'

export const SHELLS = ['bash', 'zsh', 'fish'] as const
export type Shell = (typeof SHELLS)[number]

/** This command needs the options of every command, which are loaded because it is the first word. */
export function addCompletions(command: Command, actions: Actions): void {
  command.registeredArguments[0]?.choices(SHELLS)
  command.action((shell: Shell) => actions.printCompletions(shell, command.parent ?? command))
}
