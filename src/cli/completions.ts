// The data with which shells complete commands and flags, made from the commands themselves so that it is always
// current.

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
