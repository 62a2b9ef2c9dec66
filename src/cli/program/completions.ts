// `localtunnels completions`.

import type { Command } from 'commander'
import type { Actions } from '../actions.ts'
import { createProgram } from '../program.ts'

export const SHELLS = ['bash', 'zsh', 'fish'] as const
export type Shell = (typeof SHELLS)[number]

export function addCompletions(command: Command, actions: Actions): void {
  command.registeredArguments[0]?.choices(SHELLS)
  command.action(async (shell: Shell) => actions.printCompletions(shell, await createProgram(actions)))
}
