// `localtunnels completions`.

import { Argument, type Command } from 'commander'
import type { Actions } from '../actions.ts'

export const SHELLS = ['bash', 'zsh', 'fish'] as const
export type Shell = (typeof SHELLS)[number]

/** The last to be added: what it prints has all the others. */
export function addCompletionsCommand(program: Command, actions: Actions): void {
  program
    .command('completions')
    .description('print what a shell needs to complete commands and flags')
    .helpOption('-h, --help', 'print this help')
    .addArgument(new Argument('<shell>', 'whose completions').choices(SHELLS))
    .action((shell: Shell) => actions.printCompletions(shell, program))
}
