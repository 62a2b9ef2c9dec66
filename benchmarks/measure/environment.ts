// The machine and the versions behind a run: saved with every result, printed above every table.

import { cpus, release, totalmem } from 'node:os'
import { $ } from 'bun'

export interface Environment {
  readonly date: string
  readonly cpu: string
  readonly cores: number
  readonly memoryGb: number
  readonly system: string
  readonly bun: string
  readonly commit: string
  readonly tools: Readonly<Record<string, string>>
}

export async function environment(tools: Readonly<Record<string, string>> = {}): Promise<Environment> {
  const commit = await $`git rev-parse --short HEAD`
    .cwd(import.meta.dir)
    .nothrow()
    .quiet()
    .text()
  const dirty = await $`git status --porcelain`
    .cwd(import.meta.dir)
    .nothrow()
    .quiet()
    .text()
  return {
    date: new Date().toISOString().slice(0, 19),
    cpu: cpus()[0]?.model.trim() ?? 'unknown',
    cores: cpus().length,
    memoryGb: Math.round(totalmem() / 2 ** 30),
    system: `${process.platform} ${release()}`,
    bun: Bun.version,
    commit: (commit.trim() || 'unknown') + (dirty.trim() ? ' + changes' : ''),
    tools,
  }
}

export function environmentLine(env: Environment): string {
  return `${env.cpu}, ${env.cores} cores, ${env.memoryGb} GB, ${env.system}, Bun ${env.bun}, commit ${env.commit}, ${env.date}`
}
