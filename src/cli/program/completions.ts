// `localtunnels completions`.

import { Argument, type Command } from 'commander'
import type { Actions } from '../actions.ts'

export const SHELLS = ['bash', 'zsh', 'fish'] as const
export type Shell = (typeof SHELLS)[number]

/** The last to be added: what it prints has all the others. */
export function addCompletionsCommand(program: Command, actions: Actions): void {
  program
    .command('completions')
    .description('print completions for bash, zsh or fish')
    .addArgument(new Argument('<shell>', 'the shell').choices(SHELLS))
    .action((shell: Shell) => actions.printCompletions(shell, program))
}
