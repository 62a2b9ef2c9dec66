// The data that a shell needs to complete commands and flags: made from the commands themselves, so that it is never behind
// them.

import type { Command } from 'commander'
import { bash } from './completions/bash.ts'
import { fish } from './completions/fish.ts'
import { shapesOf } from './completions/shape.ts'
import { zsh } from './completions/zsh.ts'
import type { Shell } from './program/completions.ts'

const WRITERS = { bash, zsh, fish } as const

export function completions(shell: Shell, program: Command): string {
  return WRITERS[shell](shapesOf(program))
}
